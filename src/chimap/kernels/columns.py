"""A kernel of selected bins, from which kernels of several descriptors are made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from chimap import _arrays
from chimap._onnx import Value
from chimap._types import MatrixLike, Rows
from chimap.kernels.base import Factors, Kernel


@dataclass(frozen=True, eq=False)
class OnColumns(Kernel):
    """A kernel K(x[columns], y[columns]) of selected bins.

    A sum of such kernels is the kernel of several descriptors side by side.

    Parameters
    ----------
    kernel : Kernel
        Kernel of the selected bins.
    columns : array-like of int of shape (m,)
        Indices of the bins.

    Examples
    --------
    >>> import numpy as np
    >>> from chimap import chi2, hellinger
    >>> both = OnColumns(chi2, [0, 1]) + OnColumns(hellinger, [2])
    >>> both(np.array([[0.25, 0.75, 4.0]]), np.array([[0.75, 0.25, 9.0]]))
    array([[6.75]])
    """

    kernel: Kernel
    columns: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", np.asarray(self.columns, dtype=np.int64))

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the kernel, with the number of its bins."""
        return f"{self.kernel.name}[{self.columns.size} bins]"

    @property
    def is_signed(self) -> bool:  # type: ignore[override]
        """Whether the selected bins may be negative."""
        return bool(self.kernel.is_signed)

    @property
    def compares_entries(self) -> bool:  # type: ignore[override]
        """Whether values come from the entries that two rows share."""
        return bool(self.kernel.compares_entries)

    @property
    def degree(self) -> float | None:
        return self.kernel.degree

    def factors(self, columns: np.ndarray | None = None) -> Factors | None:
        """Return those of the kernel, of the selected columns."""
        return self.kernel.factors(self.columns if columns is None else columns[self.columns])

    def with_factors(self, factors: Iterator[Kernel]) -> Self:
        """Return the same selection for the kernel with other factors."""
        return replace(self, kernel=self.kernel.with_factors(factors))

    def rescaled(self, factor: float) -> Self:
        """Return the same selection for the rescaled kernel."""
        return replace(self, kernel=self.kernel.rescaled(factor))

    def fitted(self, X: MatrixLike, random_state: int | None = 0) -> Self:
        """Return the same selection for the kernel fitted to these columns of X."""
        return replace(self, kernel=self.kernel.fitted(self._selected(X), random_state))

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        return self.kernel(self._selected(X), None if Y is None else self._selected(Y))

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        return self.kernel.diagonal(self._selected(X))

    def distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        return self.kernel.distance(self._selected(X), None if Y is None else self._selected(Y))

    def onnx(self, x: Value, Y: np.ndarray) -> Value:
        columns = np.asarray(self.columns)
        return self.kernel.onnx(x.take(columns, 1), Y[:, columns])

    def _selected(self, X: MatrixLike) -> Rows:
        return _arrays.take_columns(_arrays.as_rows(X), self.columns)
