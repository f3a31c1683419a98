"""How good ridge on principal components is on rows that it has not seen, for every pair that can be chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from chimap.moments import Moments
from chimap.solvers import PrincipalRidge


@dataclass(frozen=True)
class ComponentCurves:
    """Scores on n_rows rows for numbers of components (P,) and strengths (S,), both ascending.

    r2: (P, S), share of the targets' variance that is explained. accuracy: (P, S), or None for real targets.
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
    """Scores on features Z (n, D) and targets Y (n, t) of what the moments say: one decomposition for all pairs.

    is_right: whether each row is, of outputs (n, t); None where there is nothing to be right about.

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
