"""Variances of ridge outputs: the posterior of Bayesian ridge, from the factor of its solution.

With noise of variance s^2 and a normal prior of variance s^2 / alpha on the weights, the ridge solution is the
mean of the posterior, and a new target at features z has the variance s^2 (1 + q(z)) about the prediction,

    q(z) = 1/n + (z - m)'(Hc + alpha I)^-1 (z - m),

where m are the mean features and Hc their scatter. The first term comes from the intercept, which has no prior. On a
kernel matrix, with A = K + alpha I, the same is

    q(x) = (K(x, x) - k'A^-1 k + (1 - 1'A^-1 k)^2 / 1'A^-1 1) / alpha,   k_j = K(x, x_j).

The inverse L^-1 of the triangular factor is stored, with L L' the matrix, so that q is the squared norm of a product.
Making it costs D^3/3 operations (n^3/3 on a kernel matrix), storing it D (D + 1) / 2 numbers, and a prediction D^2.

References
----------
Rasmussen and Williams, Gaussian processes for machine learning (2006), sec. 2.2 and 2.7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np

from chimap._cholesky import inverse_columns
from chimap._errors import InputError
from chimap._types import Shape
from chimap.model_files import register

if TYPE_CHECKING:
    from chimap.solvers.exact import DualRidge
    from chimap.solvers.ridge import Factor

_COLUMNS = 256  # columns of the inverse that are made together


@dataclass(frozen=True)
class InverseFactor:
    """L^-1 of a positive definite matrix L L' (n, n), of which the triangle is stored.

    Parameters
    ----------
    packed : ndarray of shape (n (n + 1) / 2,)
        Columns of L^-1 one after the other, each from the diagonal down.
    """

    packed: Annotated[np.ndarray, Shape("numbers")]

    def __post_init__(self) -> None:
        if self.packed.ndim != 1 or self.size * (self.size + 1) // 2 != self.packed.size:
            raise InputError(f"InverseFactor: {self.packed.shape} numbers do not make a triangle.")

    @classmethod
    def of_columns(cls, n: int, columns: Callable[[int, int], np.ndarray], dtype: np.dtype) -> InverseFactor:
        """Make the factor from a function that returns its columns start to stop.

        ``columns(start, stop)`` returns them from row ``start`` on, as rows (stop - start, n - start).
        """
        packed, filled = np.empty(n * (n + 1) // 2, dtype=dtype), 0
        for start in range(0, n, _COLUMNS):
            for i, column in enumerate(columns(start, min(start + _COLUMNS, n))):
                length = n - start - i
                packed[filled : filled + length] = column[i:]
                filled += length
        return cls(packed)

    @property
    def size(self) -> int:
        """Number of rows n."""
        return int((np.sqrt(8.0 * self.packed.size + 1) - 1) / 2 + 0.5)

    @cached_property
    def transposed(self) -> np.ndarray:
        """L^-T (n, n), upper triangular."""
        n, first = self.size, 0
        square = np.zeros((n, n), dtype=self.packed.dtype)
        for i in range(n):
            square[i, i:] = self.packed[first : first + n - i]
            first += n - i
        return square

    def squared_norms(self, rows: np.ndarray) -> np.ndarray:
        """Return x'(L L')^-1 x of the rows x (m, n), shape (m,) float64."""
        return np.square(rows @ self.transposed).sum(axis=1, dtype=np.float64)


@dataclass(frozen=True)
class Posterior:
    """q(z) of features z (D,). See the module.

    Parameters
    ----------
    factor : InverseFactor
        Inverse factor of Hc + alpha I or, where the rows span fewer coordinates, of that matrix in these coordinates.
    mean : ndarray of shape (D,)
        Mean features m.
    count : float
        Number of rows n, or their total weight.
    alpha : float
        Strength of the penalty.
    basis : ndarray of shape (D, p), default=None
        Orthonormal columns that span the rows. Features beside the span have q = |z|^2 / alpha.
    unit : float, default=1.0
        The weight that counts as one row, by which q is multiplied: the noise is that of one row.
    """

    factor: InverseFactor
    mean: Annotated[np.ndarray, Shape("D")]
    count: float
    alpha: float
    basis: Annotated[np.ndarray | None, Shape("D", "p")] = None
    unit: float = 1.0

    @classmethod
    def of(
        cls,
        factor: Factor,
        mean: np.ndarray,
        count: float,
        alpha: float,
        dtype: np.dtype,
        basis: np.ndarray | None = None,
        unit: float = 1.0,
    ) -> Posterior:
        """Make the posterior from a factor of Hc + alpha I."""
        n = mean.size if basis is None else basis.shape[1]

        def columns(start: int, stop: int) -> np.ndarray:
            unit = np.zeros((n, stop - start), order="F")
            unit[np.arange(start, stop), np.arange(stop - start)] = 1
            return np.asarray(factor.cholesky.whiten(unit)[start:].T)

        inverse = InverseFactor.of_columns(n, columns, dtype)
        return cls(inverse, mean, count, alpha, None if basis is None else basis.astype(dtype), unit)

    def variances(self, Z: np.ndarray) -> np.ndarray:
        """Return q (m,) of rows of features Z (m, D)."""
        centred = Z - self.mean.astype(Z.dtype)
        if self.basis is None:
            return self.unit * (self.factor.squared_norms(centred) + 1 / self.count)
        inside = centred @ self.basis
        beside = np.square(centred).sum(axis=1) - np.square(inside).sum(axis=1)
        q = self.factor.squared_norms(inside) + np.maximum(beside, 0) / self.alpha + 1 / self.count
        return np.asarray(self.unit * q)


@dataclass(frozen=True)
class DualPosterior:
    """q(x) of kernel values with all training rows. See the module.

    Parameters
    ----------
    factor : InverseFactor
        Inverse factor of A.
    solved : ndarray of shape (n,)
        A^-1 1.
    alpha : float
        Strength of the penalty.
    unit : float, default=1.0
        As in ``Posterior``.
    """

    factor: InverseFactor
    solved: Annotated[np.ndarray, Shape("n")]
    alpha: float
    unit: float = 1.0

    @classmethod
    def of(cls, ridge: DualRidge, dtype: np.dtype, unit: float = 1.0) -> DualPosterior:
        """Make the posterior from kernel ridge, for the strength of its factor."""
        assert ridge.factor_of is not None
        square = ridge.square
        inverse = InverseFactor.of_columns(
            ridge.n_rows, lambda start, stop: inverse_columns(square, start, stop), dtype
        )
        return cls(inverse, ridge.solved_ones, ridge.factor_of, unit)

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        return int(self.solved.size)

    def variances(self, K: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        """Return q (m,) of rows with kernel values K (m, n) and K(x, x) (m,)."""
        left = diagonal - self.factor.squared_norms(K)
        off = 1 - K.astype(np.float64) @ self.solved
        q = np.maximum(left + np.square(off) / self.solved.sum(), 0) / self.alpha
        return np.asarray(self.unit * q)


register(InverseFactor, Posterior, DualPosterior)
