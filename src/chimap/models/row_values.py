"""Rows as the kernel of a model sees them, and the machine on them from which rows can leave."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from chimap._types import Rows
from chimap.models.model import Model
from chimap.solvers.downdates import Downdates, FeatureDowndates, MatrixDowndates, at_best_strength

if TYPE_CHECKING:
    from chimap.features.exact.row_kernel import RowKernel

_UNPENALISED = 1e4  # scatter of columns whose weights are as good as free, over that of the rows


def kernel_of_rows(model: Model, prepared: Rows) -> RowKernel | None:
    """Return the kernel of an exact machine with prepared rows in place of its own; None for other machines."""
    kernel = model.features.row_kernel
    if kernel is None:
        return None
    kernel = kernel.take(slice(1))
    kernel.extend(model.features.as_kept(prepared))
    kernel.keep(slice(1, None))
    return kernel


@dataclass(frozen=True, eq=False)
class RowValues:
    """Rows as a kernel sees them: values among them (n, n), or features (n, D) whose products these are.

    Parameters
    ----------
    values : ndarray of shape (n, n) or (n, D), float64
        The values.
    is_matrix : bool
        Whether these are values of the kernel.
    """

    values: np.ndarray
    is_matrix: bool

    @classmethod
    def of(cls, model: Model, rows: Rows, after: RowKernel | None = None) -> RowValues:
        """Return the values of rows as they were read, with the columns of a model.

        after: the kernel of an exact machine, whose own rows stand before these.
        """
        prepared, n = model.preparation(rows, 0, "X"), rows.shape[0]
        kernel = kernel_of_rows(model, prepared) if after is None else after
        if after is not None:
            n += after.diagonal().size
            after.extend(model.features.as_kept(prepared))
        if kernel is not None:
            square = np.empty((n, n), dtype=model.recipe.dtype)
            diagonal = kernel.gram_into(square)
            square = np.tril(square.astype(np.float64), -1)
            square += square.T
            square[np.diag_indices(n)] = diagonal
            return cls(square, True)
        Z = np.empty((n, model.features._n_features_out), dtype=model.recipe.dtype)
        model.features.features_into(prepared, Z)
        return cls(Z.astype(np.float64), False).smaller()

    def smaller(self) -> RowValues:
        """Return the matrix in place of more features than rows."""
        if self.is_matrix or self.values.shape[1] < self.values.shape[0]:
            return self
        centred = self.values - self.values.mean(axis=0)
        return RowValues(centred @ centred.T, True)

    @cached_property
    def scatter(self) -> float:
        """The mean squared distance of a row from the mean of all."""
        if self.is_matrix:
            return max(float(self.values.diagonal().mean() - self.values.mean()), np.finfo(np.float64).tiny)
        return max(float(self.values.var(axis=0).sum()), np.finfo(np.float64).tiny)

    def machine(self, Y: np.ndarray, alpha: float | None, weights: np.ndarray | None = None) -> Downdates:
        """Return ridge on targets (n, t), at the best strength by left-out rows if ``alpha`` is None."""
        kind = MatrixDowndates if self.is_matrix else FeatureDowndates

        def make(strength: float) -> Downdates:
            return kind.of(self.values, Y, strength, weights)

        return at_best_strength(make, self.scatter) if alpha is None else make(alpha)

    def width(self, columns: np.ndarray) -> float:
        """Return the factor of columns (n, k) beside these values with which their weights are hardly penalised."""
        return float(np.sqrt(_UNPENALISED * self.scatter / max(float(columns.var(axis=0).sum()), 1e-30)))

    def beside(self, wide: np.ndarray) -> RowValues:
        """Return the values with columns (n, k) beside them."""
        if self.is_matrix:
            return RowValues(self.values + wide @ wide.T, True)
        return RowValues(np.column_stack([self.values, wide]), False)

    def closeness(self, rows: slice) -> np.ndarray:
        """Return squared distances (m, n) of some rows from all, as a share of the mean one between rows."""
        own = self.values[rows]
        if self.is_matrix:
            squares, among = self.values.diagonal(), own
        else:
            squares, among = np.square(self.values).sum(axis=1), own @ self.values.T
        return np.asarray((squares[rows, None] + squares - 2 * among).clip(0) / (2 * self.scatter))
