"""Ridge regression from moments.

The problem is

    min_{w, b}  sum_i w_i |z_i'w + b - y_i|^2 + alpha |w|^2,   that is   (Hc + alpha I) w = Vc,

solved by a Cholesky factorisation for all targets at once. A strength costs D^3/3 operations for the factor and
2 D^2 t for the solutions; memory is one (D, D) float64 buffer, which the next strength overwrites.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._validation import DataError
from chimap.backends import backend_of
from chimap.backends.base import Cholesky
from chimap.moments import Moments


@dataclass(frozen=True)
class LinearSolution:
    """A linear model f(z) = z'coef + intercept.

    Parameters
    ----------
    coef : ndarray of shape (D, t)
        Weights of the features.
    intercept : ndarray of shape (t,)
        Intercepts of the targets.
    alpha : float
        Strength of the penalty at which the weights were found.

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
    """Minimise sum |z'w + b - y|^2 + alpha |w|^2 by solving (Hc + alpha I) w = Vc with a Cholesky factor.

    The strength is scikit-learn's ``alpha``; the intercept is not penalised.

    Parameters
    ----------
    moments : Moments
        Moments of the rows.
    alpha : float
        Strength of the penalty.
    factor : Factor, default=None
        Factor whose memory and device are used. None makes a new one.

    Returns
    -------
    LinearSolution
        Weights (D, t) and intercepts (t,).

    Raises
    ------
    DataError
        If the matrix is singular to rounding at this strength.

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
    """Add the intercept to coefficients (D, t): the mean prediction is the mean target."""
    return LinearSolution(coef, moments.target_mean - moments.mean @ coef, alpha)


class Factor:
    """The Cholesky factor of Hc + alpha I in one (D, D) buffer, which each strength overwrites.

    Parameters
    ----------
    n_features : int
        D.
    device : str, default="cpu"
        Device of the backend that factorises.
    """

    def __init__(self, n_features: int, device: str = "cpu"):
        self._square = np.empty((n_features, n_features))
        self._backend = backend_of(device)
        self._cholesky: Cholesky | None = None
        self._made_of: tuple[Moments, float, np.ndarray] | None = None  # moments, their count, strengths

    def of(self, moments: Moments, alpha: float | np.ndarray, less: Callable[[np.ndarray], None] | None = None) -> None:
        """Factorise Hc + alpha I, unless that was done last.

        Parameters
        ----------
        moments : Moments
            Moments that hold the scatter Hc.
        alpha : float or ndarray of shape (D,)
            One strength, or one for each feature.
        less : callable, default=None
            Subtracts the scatter of a fold that is left out from the upper triangle of a matrix (D, D), in place.

        Raises
        ------
        DataError
            If the matrix is not positive definite to rounding.
        """
        if less is None and self._is_made_of(moments, alpha):
            return
        self._made_of = None
        moments.scatter_into(self._square)
        if less is not None:
            less(self._square)
        self._square[np.diag_indices_from(self._square)] += alpha
        self._cholesky = None  # free the old factor before the new one is made
        self._cholesky = self._backend.cholesky(self._square)
        if self._cholesky is None:
            raise DataError(
                Message(
                    "{alpha=:g} is too small: the features are linearly dependent to rounding. Use a larger one, or "
                    "{alpha='auto'}.",
                    float(np.min(alpha)),
                )
            )

        if less is None:
            self._made_of = moments, moments.count, np.array(alpha)

    def _is_made_of(self, moments: Moments, alpha: float | np.ndarray) -> bool:
        """Whether this is the factor for these moments, of as many rows as they have now, and these strengths."""
        if self._made_of is None:
            return False
        own, count, strengths = self._made_of
        return own is moments and count == moments.count and np.array_equal(strengths, alpha)

    @property
    def cholesky(self) -> Cholesky:
        """The factor. Raises ValueError before the first call of ``of``."""
        if self._cholesky is None:
            raise InputError("nothing is factorised yet: call of(moments, alpha) first.")
        return self._cholesky

    def solve(self, B: np.ndarray) -> np.ndarray:
        """Return (Hc + alpha I)^-1 B for B (D, columns)."""
        return self.cholesky.solve(B)
