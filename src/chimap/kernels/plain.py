"""The linear kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from chimap import _arrays
from chimap._onnx import Value
from chimap._types import MatrixLike
from chimap.kernels.base import Kernel, paired_rows


@dataclass(frozen=True)
class Linear(Kernel):
    """Linear kernel K(x, y) = x . y, for bins of either sign.

    Examples
    --------
    >>> import numpy as np
    >>> Linear()(np.array([[1.0, 2.0]]))
    array([[5.]])
    """

    degree = 2.0
    name = "linear"
    is_signed = True
    linear_in = "rows"

    @property
    def inner(self) -> Self:
        """The kernel itself."""
        return self

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        from sklearn.utils.extmath import safe_sparse_dot

        left, right = paired_rows(X, Y, signed=True)
        return np.asarray(safe_sparse_dot(left, right.T, dense_output=True))

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        """Return |x|^2 for every row, (n,)."""
        rows, _ = paired_rows(X, None, signed=True)
        return np.asarray(_arrays.map_values(rows, np.square).sum(axis=1)).reshape(-1)

    def distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return |x - y|^2, (n, m), computed from the products: close rows that lie far from 0 lose digits."""
        from sklearn.metrics.pairwise import euclidean_distances  # loads half of scikit-learn

        left, right = paired_rows(X, Y, signed=True)
        squares = euclidean_distances(left, None if Y is None else right, squared=True)
        return squares.astype(left.dtype, copy=False)

    def onnx(self, x: Value, Y: np.ndarray) -> Value:
        return x @ Y.T

    def onnx_distance(self, x: Value, Y: np.ndarray) -> Value:
        """Return the squared distances (n, m) of rows x and constant rows Y as nodes of an ONNX graph.

        Parameters
        ----------
        x : Value
            The rows, in float64.
        Y : ndarray of shape (m, bins)
            Rows that are written into the graph, in float64.
        """
        return x.graph.each_row(Y, lambda y: ((x - y) * (x - y)).sum(1))
