"""Ridge regression from moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from chimap._validation import DataError
from chimap.backends import backend_of
from chimap.backends.base import Cholesky
from chimap.moments import Moments


@dataclass(frozen=True)
class LinearSolution:
    """f(z) = z'coef + intercept; coef (D, t), intercept (t,), strength that of the penalty.

    Examples
    --------
    >>> solution = LinearSolution(np.array([[2.0]]), np.array([1.0]), alpha=0.1)
    >>> (np.array([[3.0]]) @ solution.coef + solution.intercept).tolist()
    [[7.0]]
    """

    coef: np.ndarray
    intercept: np.ndarray
    alpha: float


def ridge(moments: Moments, alpha: float, factor: Factor | None = None) -> LinearSolution:
    """Minimise sum |z'w + b - y|^2 + alpha |w|^2: (Hc + alpha I) w = Vc, by Cholesky.

    The strength is scikit-learn's ``alpha``; the intercept is not penalised. factor: whose memory (and device) is used,
    or None for a new one. Raises DataError if the matrix is singular at this strength.

    Examples
    --------
    >>> Z = np.arange(10.0)[:, None]
    >>> solution = ridge(Moments(1, 1).update(Z, 2 * Z[:, 0] + 1), alpha=1e-9)
    >>> solution.coef.round(6).tolist(), solution.intercept.round(6).tolist()
    ([[2.0]], [1.0])
    """
    factor = factor or Factor(moments.n_features)
    factor.of(moments, alpha)
    return solution(moments, factor.solve(moments.cross_scatter()), alpha)


def solution(moments: Moments, coef: np.ndarray, alpha: float) -> LinearSolution:
    """The intercept that goes with the coefficients: mean prediction = mean target."""
    return LinearSolution(coef, moments.target_mean - moments.mean @ coef, alpha)


class LeftOut(Protocol):
    """A fold whose rows are left out."""

    def take_from(self, square: np.ndarray) -> None:
        """Subtract its scatter from the upper triangle of a matrix (D, D)."""
        ...


class Factor:
    """The Cholesky factor of Hc + alpha I, made by a backend in one (D, D) buffer that each strength overwrites."""

    def __init__(self, n_features: int, device: str = "cpu"):
        self._square = np.empty((n_features, n_features))
        self._backend = backend_of(device)
        self._cholesky: Cholesky | None = None

    def of(self, moments: Moments, alpha: float | np.ndarray, less: LeftOut | None = None) -> None:
        """Factorise at a strength, or one for each feature (D,).

        less: a fold that is left out; its ``take_from`` subtracts it from the upper triangle. Raises DataError if the
        matrix is not positive definite.
        """
        moments.scatter_into(self._square)
        if less is not None:
            less.take_from(self._square)
        self._square[np.diag_indices_from(self._square)] += alpha
        self._cholesky = None  # let go before there is another
        self._cholesky = self._backend.cholesky(self._square)
        if self._cholesky is None:
            raise DataError(
                f"alpha={float(np.min(alpha)):g} is too small: the features are linearly dependent to rounding. "
                "Use a larger one, or alpha='auto'."
            )

    @property
    def cholesky(self) -> Cholesky:
        """The factor. Raises ValueError before ``of``."""
        if self._cholesky is None:
            raise ValueError("nothing is factorised yet: call of(moments, alpha) first.")
        return self._cholesky

    def solve(self, B: np.ndarray) -> np.ndarray:
        """(Hc + alpha I)^-1 B for B (D, columns)."""
        return self.cholesky.solve(B)
