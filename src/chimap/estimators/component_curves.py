"""Held-out scores of ridge on principal components for every pair of a number of components and a strength."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from chimap.moments import Moments
from chimap.solvers import PrincipalRidge


@dataclass(frozen=True)
class ComponentCurves:
    """Scores on ``n_rows`` rows for numbers of components (P,) and strengths (S,), both ascending.

    Parameters
    ----------
    n_components : ndarray of shape (P,)
        Numbers of components, ascending.
    alphas : ndarray of shape (S,)
        Strengths, ascending.
    r2 : ndarray of shape (P, S)
        Share of the variance of the targets that is explained.
    accuracy : ndarray of shape (P, S) or None
        Accuracy; None for real targets.
    n_rows : int
        Number of rows that the scores are measured on.
    """

    n_components: np.ndarray
    alphas: np.ndarray
    r2: np.ndarray
    accuracy: np.ndarray | None
    n_rows: int


def component_curves(
    moments: Moments,
    n_components: Sequence[int],
    alphas: Sequence[float],
    Z: np.ndarray,
    Y: np.ndarray,
    is_right: Callable[[np.ndarray], np.ndarray] | None,
) -> ComponentCurves:
    """Return scores on features Z (n, D) and targets Y (n, t) for all pairs, from one decomposition of the moments.

    is_right: returns whether each row is right, given outputs (n, t); None for real targets.

    Source: Li, Lebanon and Sminchisescu, A linear approximation to the chi2 kernel, sec. 6, Algorithm 4.
    """
    numbers, lambdas = np.unique(n_components), np.unique(np.asarray(alphas, dtype=np.float64))
    model = PrincipalRidge.of(moments, int(numbers[-1]))
    total = float(np.square(Y - Y.mean(axis=0)).sum()) or 1.0
    r2, accuracy = np.empty((2, numbers.size, lambdas.size))
    for s, alpha in enumerate(lambdas):
        for i, (_, outputs) in enumerate(model.predictions(Z, numbers.tolist(), float(alpha))):
            r2[i, s] = 1 - float(np.square(outputs - Y).sum()) / total
            accuracy[i, s] = np.mean(is_right(outputs)) if is_right is not None else np.nan
    return ComponentCurves(numbers, lambdas, r2, accuracy if is_right is not None else None, Z.shape[0])
