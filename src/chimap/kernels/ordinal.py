"""The PQ kernel: how alike two rows order their bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap import _arrays, _loops, _threads
from chimap._types import MatrixLike, Rows
from chimap.kernels.base import Kernel, paired_rows


@dataclass(frozen=True)
class PQKernel(Kernel):
    """K(x, y) = (P - Q) / sqrt(T(x) T(y)): concordant minus discordant pairs of bins, over the pairs not tied.

    A pair of bins i < j is concordant where (x_i - x_j)(y_i - y_j) > 0 and discordant where it is < 0; T(x) counts the
    pairs with x_i != x_j. That is Kendall's tau_b over the bins of two rows, and the dot product of the vectors of
    sign(x_i - x_j), scaled to length 1, so K(x, x) = 1; a row whose bins are all equal orders nothing and has K = 0. A
    pair of rows takes O(s + g h), s non-zero bins of which g and h differ in value, as with counts, or O(s log s).
    ``jensen_shannon + PQKernel()``, or "jensen_shannon+pq" by name, adds what the sizes say.

    Source: Ionescu and Popescu, PQ kernel: a rank correlation kernel for visual word histograms.

    >>> import numpy as np
    >>> PQKernel()(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 3.0, 2.0]])).round(4)
    array([[0.3333]])
    """

    name = "pq"

    @property
    def degree(self) -> float:
        """0: order alone counts."""
        return 0.0

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Gram matrix (n, m) of non-negative rows, dense or sparse, in their floating type."""
        left, right = paired_rows(X, Y, signed=False)
        own = _Ordered(left)
        other = own if right is left else _Ordered(right)
        out = np.empty((right.shape[0], left.shape[0]), np.int64)
        _threads.over_rows(
            right.shape[0],
            max(1, 8 * own.bins.size),
            lambda rows: _loops.concordance(
                other.bins, other.ranks, other.starts[rows.start : rows.stop + 1],
                own.bins, own.ranks, own.starts, left.shape[1], out[rows],
            ),
        )  # fmt: skip
        return (out.T * own.scale[:, None] * other.scale).astype(left.dtype)

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        """1 for every row, and 0 for those whose bins are all equal, (n,)."""
        rows, _ = paired_rows(X, None, signed=False)
        return (_Ordered(rows).scale > 0).astype(rows.dtype)

    def distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """K(x,x) + K(y,y) - 2 K(x,y), (n, m)."""
        other = self.diagonal(X if Y is None else Y)
        return np.asarray(self.diagonal(X)[:, None] + other - 2 * self(X, Y))


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
        new = np.ones(values.size, dtype=bool)  # where a group of equal values of a row begins
        new[1:] = (values[1:] != values[:-1]) | (row[1:] != row[:-1])
        group = np.cumsum(new)
        before = np.r_[0, group][self.starts[:-1]]  # groups of the rows above
        self.ranks = (group - before[row]).astype(np.uint32)
        sizes = np.bincount(group, minlength=1)[1:] if values.size else np.zeros(0, np.int64)
        tied = np.bincount(row[new], sizes * (sizes - 1) // 2, minlength=n)
        zeros = n_bins - lengths.astype(np.int64)
        untied = n_bins * (n_bins - 1) // 2 - tied - zeros * (zeros - 1) // 2
        self.scale = np.where(untied > 0, 1 / np.sqrt(np.maximum(untied, 1)), 0.0)
