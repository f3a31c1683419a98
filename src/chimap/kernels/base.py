"""Kernels as objects: call one for the Gram matrix, ask it for distances and diagonals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, Self

import numpy as np

from chimap import _arrays
from chimap._validation import DataError, check_histograms


class Kernel(ABC):
    """An exact kernel, the oracle of the maps that approximate it.

    Calling it with rows X (n, bins) and Y (m, bins), dense or sparse, gives the Gram matrix (n, m) in the
    floating type of the data; Y defaults to X. Raises DataError for NaN, infinite or (unless ``is_signed``) negative
    entries, and for rows of different widths.

    >>> import numpy as np
    >>> from chimap import Exponential, chi2, intersection
    >>> X = np.array([[0.25, 0.75], [0.75, 0.25]])
    >>> (0.5 * chi2 + 0.5 * intersection)(X).tolist()
    [[1.0, 0.625], [0.625, 1.0]]
    """

    name: str
    is_signed = False  # whether bins may be negative

    @property
    def degree(self) -> float | None:
        """Of homogeneity: scaling both rows by a factor, and its parameters as ``rescaled`` does, scales the kernel by
        that power of the factor. None where there is no such power."""
        return None

    def rescaled(self, factor: float) -> Kernel:
        """The kernel K' with K'(factor x, factor y) = factor^degree K(x, y); itself where it has no parameters."""
        return self

    def fitted(self, X: Any, random_state: int | None = 0) -> Self:
        """This kernel with the parameters that it takes from data X set to numbers; itself where it has none."""
        return self

    @abstractmethod
    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        """Gram matrix (n, m): entry i, j is K(X[i], Y[j])."""

    @abstractmethod
    def diagonal(self, X: Any) -> np.ndarray:
        """K(x, x) of every row, (n,)."""

    @abstractmethod
    def distance(self, X: Any, Y: Any = None) -> np.ndarray:
        """Squared distances K(x,x) + K(y,y) - 2 K(x,y), (n, m)."""

    def __add__(self, other: Kernel) -> Kernel:
        """The sum of two kernels."""
        from chimap.kernels.combined import Sum

        return Sum((self, other)) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        """The product with another kernel, or with a positive number."""
        from chimap.kernels.combined import Product, Sum

        if isinstance(other, Kernel):
            return Product((self, other))
        return Sum((self,), (float(other),)) if isinstance(other, Real) else NotImplemented

    __rmul__ = __mul__


def paired_rows(X: Any, Y: Any, *, signed: bool) -> tuple[Any, Any]:
    """X and Y checked and brought to one kind and one dtype; Y is X where it is None.

    Raises DataError for negative (unless ``signed``), NaN or infinite entries and for widths that differ.
    """
    left = _rows(X, "X", signed)
    right = left if Y is None else _rows(Y, "Y", signed)
    if left.shape[1] != right.shape[1]:
        raise DataError(
            f"X has {left.shape[1]} bins and Y has {right.shape[1]}: a kernel compares rows of the same bins."
        )
    if _arrays.is_sparse(left) != _arrays.is_sparse(right):
        # One dense side means that dense fits; two code paths are enough.
        left, right = _arrays.to_dense(left), _arrays.to_dense(right)
    dtype = np.result_type(left.dtype, right.dtype)
    return _arrays.as_rows(left, dtype), _arrays.as_rows(right, dtype)


def _rows(X: Any, name: str, signed: bool) -> Any:
    dtype = X.dtype if _arrays.is_sparse(X) else np.asarray(X).dtype
    if dtype.kind not in "fiubO":
        raise DataError(
            f"{name} holds {dtype}, and bins are real numbers. Convert it, such as by X.astype(float)."
        )
    rows = _arrays.as_rows(X)
    if rows.ndim != 2:
        raise DataError(f"{name} must be a matrix of rows of bins; got {rows.ndim} axes.")
    check_histograms(rows, name=name, signed=signed)
    return rows
