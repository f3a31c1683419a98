"""The PQ kernel, which compares the order of the bins in two rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap import _arrays, _loops, _threads
from chimap._onnx import Value
from chimap._types import MatrixLike, Rows
from chimap.kernels.base import Kernel, paired_rows


@dataclass(frozen=True)
class PQKernel(Kernel):
    """PQ kernel K(x, y) = (P - Q) / sqrt(T(x) T(y)): concordant minus discordant pairs of bins, over untied pairs.

    A pair of bins i < j is concordant if (x_i - x_j)(y_i - y_j) > 0 and discordant if it is < 0; P and Q count these
    pairs, and T(x) counts those with x_i != x_j. K is Kendall's tau_b over the bins of two rows. It is also the dot
    product of the vectors of sign(x_i - x_j), scaled to length 1, so K(x, x) = 1; a row whose bins are all equal has no
    order, and K = 0. A pair of rows with s non-zero bins takes O(s + g h), with g and h the numbers of different values
    in the two rows, if these are few, as with counts; otherwise O(s log s). ``jensen_shannon + PQKernel()``, or
    "jensen_shannon+pq" by name, adds the information in the sizes of the bins.

    References
    ----------
    Ionescu and Popescu, PQ kernel: a rank correlation kernel for visual word histograms.

    Examples
    --------
    >>> import numpy as np
    >>> PQKernel()(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 3.0, 2.0]])).round(4)
    array([[0.3333]])
    """

    degree = 0.0  # only order counts
    name = "pq"

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the Gram matrix (n, m) of non-negative rows, dense or sparse, in their floating type."""
        left, right = paired_rows(X, Y, signed=False)
        left_ordered = _Ordered(left)
        right_ordered = left_ordered if right is left else _Ordered(right)
        out = np.empty((right.shape[0], left.shape[0]), np.int64)
        _threads.over_rows(
            right.shape[0],
            max(1, 8 * left_ordered.bins.size),
            lambda rows: _loops.concordance(
                right_ordered.bins,
                right_ordered.ranks,
                right_ordered.starts[rows.start : rows.stop + 1],
                left_ordered.bins,
                left_ordered.ranks,
                left_ordered.starts,
                left.shape[1],
                out[rows],
            ),
        )
        return (out.T * left_ordered.scale[:, None] * right_ordered.scale).astype(left.dtype)

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        """Return 1 for every row, and 0 for rows whose bins are all equal, (n,)."""
        rows, _ = paired_rows(X, None, signed=False)
        return (_Ordered(rows).scale > 0).astype(rows.dtype)

    def distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        right_diagonal = self.diagonal(X if Y is None else Y)
        return np.asarray(self.diagonal(X)[:, None] + right_diagonal - 2 * self(X, Y))

    def onnx(self, x: Value, Y: np.ndarray) -> Value:
        """See ``Kernel``: the dot products of the vectors of sign(x_i - x_j), i < j, scaled to unit length."""
        left, right = np.triu_indices(Y.shape[1], 1)
        signs = (x.take(left, 1) - x.take(right, 1)).apply("Sign")
        others = np.sign(Y[:, left] - Y[:, right])
        lengths = np.maximum(np.sqrt((others * others).sum(axis=1)), 1.0)
        norms = (signs * signs).sum(1, keep=True).at_least(1.0).apply("Sqrt")
        return (signs @ (others / lengths[:, None]).T) / norms


class _Ordered:
    """Rows as their non-zero bins in the order of the values, with dense ranks from 1."""

    def __init__(self, rows: Rows):
        sparse = _arrays.without_zeros(_arrays.to_sparse(rows))
        n, n_bins = sparse.shape
        lengths = np.diff(sparse.indptr)
        row = np.repeat(np.arange(n), lengths)
        order = np.lexsort((sparse.data, row))
        values = sparse.data[order]
        self.bins = sparse.indices[order].astype(np.uint32)
        self.starts = sparse.indptr.astype(np.int64)
        new = np.ones(values.size, dtype=bool)  # True where a group of equal values of a row begins
        new[1:] = (values[1:] != values[:-1]) | (row[1:] != row[:-1])
        group = np.cumsum(new)
        before = np.r_[0, group][self.starts[:-1]]  # number of groups in the rows above
        self.ranks = (group - before[row]).astype(np.uint32)
        sizes = np.bincount(group, minlength=1)[1:] if values.size else np.zeros(0, np.int64)
        tied = np.bincount(row[new], sizes * (sizes - 1) // 2, minlength=n)
        zeros = n_bins - lengths.astype(np.int64)
        untied = n_bins * (n_bins - 1) // 2 - tied - zeros * (zeros - 1) // 2
        self.scale = np.where(untied > 0, 1 / np.sqrt(np.maximum(untied, 1)), 0.0)
