"""Ridge regression from moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from chimap._validation import DataError
from chimap.backends import on_host
from chimap.moments import Moments


@dataclass(frozen=True)
class LinearSolution:
    """f(z) = z'coef + intercept; coef (D, t), intercept (t,), strength that of the penalty."""

    coef: np.ndarray
    intercept: np.ndarray
    alpha: float


def ridge(moments: Moments, alpha: float, factor: Factor | None = None) -> LinearSolution:
    """Minimise sum |z'w + b - y|^2 + alpha |w|^2: (Hc + alpha I) w = Vc, by Cholesky.

    The strength is scikit-learn's ``alpha``; the intercept is not penalised. factor: whose memory (and device) is used,
    or None for a new one. Raises DataError if the matrix is singular at this strength.
    """
    factor = factor or Factor(moments.n_features)
    factor.of(moments, alpha)
    return solution(moments, factor.solve(moments.cross_scatter()), alpha)


def solution(moments: Moments, coef: np.ndarray, alpha: float) -> LinearSolution:
    """The intercept that goes with the coefficients: mean prediction = mean target."""
    return LinearSolution(coef, moments.target_mean - moments.mean @ coef, alpha)


def too_small(alpha: float) -> DataError:
    """What to say where the matrix is not positive definite."""
    return DataError(
        f"alpha={alpha:g} is too small: the features are linearly dependent to rounding. "
        "Use a larger one, or alpha='auto'."
    )


def factor_of(n_features: int, device: str) -> Factor:
    """A factor on the device, if that has the room."""
    if on_host(device):
        return Factor(n_features)
    from chimap.solvers.device import DeviceFactor

    return DeviceFactor(n_features, device) if DeviceFactor.fits(n_features, device) else Factor(n_features)


class Factor:
    """The Cholesky factor of Hc + alpha I, in one (D, D) buffer that each strength overwrites."""

    def __init__(self, n_features: int):
        self._square = np.empty((n_features, n_features))

    def of(self, moments: Moments, alpha: float, less: Any = None) -> None:
        """Factorise, less a fold where one is given (its ``take_from`` subtracts it from the upper triangle).

        Raises DataError if the matrix is not positive definite at this strength.
        """
        self._fill(moments, alpha, less)
        # our upper triangle in C order is the lower one in Fortran's
        _, info = dpotrf(self._square.T, lower=1, clean=0, overwrite_a=1)
        if info:
            raise too_small(alpha)

    def _fill(self, moments: Moments, alpha: float, less: Any) -> None:
        moments.scatter_into(self._square)
        if less is not None:
            less.take_from(self._square)
        self._square[np.diag_indices_from(self._square)] += alpha

    def solve(self, B: np.ndarray) -> np.ndarray:
        """(Hc + alpha I)^-1 B for B (D, columns)."""
        return dpotrs(self._square.T, B, lower=1)[0]

    def whiten(self, B: np.ndarray) -> np.ndarray:
        """L^-1 B for B (D, columns), L L' being the matrix."""
        return dtrtrs(self._square.T, B, lower=1)[0]

    def unwhiten(self, V: np.ndarray) -> np.ndarray:
        """L^-T V, the weights whose ``coordinates`` are V."""
        return dtrtrs(self._square.T, V, lower=1, trans=1)[0]

    def coordinates(self, W: np.ndarray) -> np.ndarray:
        """L' W, whose square is W' (Hc + alpha I) W."""
        return dtrmm(1.0, self._square.T, W, lower=1, trans_a=1)
