"""The min-max kernel: the common share of two histograms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chimap import _arrays, _loops, _threads
from chimap._onnx import Value
from chimap._types import CSR, MatrixLike
from chimap.kernels.additive import intersection
from chimap.kernels.base import Kernel, paired_rows

_BLOCK = 256  # rows whose sums with all others are in memory at once, in float64
# Of whole numbers that are compared as bits. A bit costs a pair of rows a 64th of a word, and saves the entries that
# they share in its column; for few pairs, setting the bits takes longer than that saves.
_LEVELS, _LEAST_SHARE, _FEWEST_PAIRS = 16, 0.03, 2**20


@dataclass(frozen=True)
class MinMax(Kernel):
    """Min-max kernel K(x, y) = sum_i min(x_i, y_i) / sum_i max(x_i, y_i) of non-negative rows; 1 for two empty rows.

    Also known as the Ruzicka similarity, weighted Jaccard and, for counts of substructures, generalised Tanimoto. With
    s the sums of the rows and D their l1 distance, K = (s(x) + s(y) - D) / (s(x) + s(y) + D). It does not change if
    both rows are multiplied by the same factor.

    References
    ----------
    Ruzicka, Anwendung mathematisch-statistischer Methoden in der Geobotanik. Ioffe, Improved consistent sampling,
    weighted minhash and L1 sketching (proof that it is positive definite).

    Examples
    --------
    >>> import numpy as np
    >>> MinMax()(np.array([[1.0, 2.0, 0.0]]), np.array([[2.0, 1.0, 1.0]]))
    array([[0.4]])
    """

    degree = 0.0  # a common factor changes nothing
    name = "minmax"
    compares_entries = True

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the Gram matrix (n, m) of rows X (n, bins) and Y (m, bins), in their floating type."""
        if _arrays.is_sparse(Y) and isinstance(X, np.ndarray):
            X = _arrays.to_sparse(X)  # a pair of rows then costs the bins of one of them, and not all
        left, right = paired_rows(X, Y, signed=False)
        if _arrays.is_sparse(left) and _arrays.is_sparse(right):
            return _of_sparse(left, right)
        return self._shares(
            left,
            None if Y is None else right,
            lambda total, distance: (total - distance) / (total + distance),
            empty=1.0,
        )

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        """Return ones of shape (n,)."""
        rows, _ = paired_rows(X, None, signed=False)
        return np.ones(rows.shape[0], rows.dtype)

    def distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the squared distances 2 - 2 K(x, y), (n, m), without cancellation for close rows."""
        return self._shares(X, Y, lambda total, distance: 4 * distance / (total + distance), empty=0.0)

    def _shares(
        self, X: MatrixLike, Y: MatrixLike | None, share: Callable[[np.ndarray, np.ndarray], np.ndarray], empty: float
    ) -> np.ndarray:
        left, right = paired_rows(X, Y, signed=False)
        out = intersection.distance(left, None if Y is None else right)
        left_sums, right_sums = _arrays.row_norms_l1(left), _arrays.row_norms_l1(right)
        for first in range(0, out.shape[0], _BLOCK):
            block = out[first : first + _BLOCK]
            total = left_sums[first : first + _BLOCK, None] + right_sums
            is_empty = total == 0
            total[is_empty] = 1
            # The distance and the sums add up the same numbers in different orders, and may round differently.
            block[:] = np.where(is_empty, empty, share(total, np.minimum(block, total)))
        return out

    def onnx(self, x: Value, Y: np.ndarray) -> Value:
        minima = x.graph.each_row(Y, lambda y: x.at_most(y).sum(1))
        maxima = x.graph.each_row(Y, lambda y: x.at_least(y).sum(1))
        return (maxima > 0.0).where(minima / maxima, 1.0)


def _of_sparse(left: CSR, right: CSR) -> np.ndarray:
    """Return the values (n, m) of CSR rows, by the entries of each column: a pair costs the bins that it shares.

    Small whole numbers of columns that many rows fill are compared 64 levels at a time, as bits, with the same result.
    """
    sums, whole = np.zeros(right.shape[0]), right.tocsc()
    _loops.sums_of_rows(whole.data, whole.indices, whole.indptr, sums)
    places = _places_of_levels(left, right)
    ahead, left = _split(left, places)
    behind, right = _split(right, places)
    columns, behind = right.tocsc(), np.ascontiguousarray(behind.T)
    others = behind, columns.data, columns.indices, columns.indptr
    out = np.empty((left.shape[0], right.shape[0]), left.dtype)

    def part(rows: slice) -> None:
        some = ahead[rows], left.data, left.indices, left.indptr[rows.start : rows.stop + 1]
        _loops.minmax_sparse(*some, *others, sums, out[rows])

    _threads.over_rows(out.shape[0], right.nnz + ahead.shape[1] * right.shape[0], part)
    return out


def _places_of_levels(left: CSR, right: CSR) -> np.ndarray | None:
    """Return the places (bins, levels) of the bits of levels, -1 where a level has none; None without any.

    A level of a bin, 1, 2, .., has a bit where a share of rows reaches it, those of most rows first. Bins that many
    rows fill beyond all levels have none. There are none for numbers that are not whole, and for few pairs of rows.
    """
    is_short = left.shape[0] * right.shape[0] < _FEWEST_PAIRS
    if is_short or not (_are_whole(left.data) and _are_whole(right.data)):
        return None
    counts, least = np.zeros((right.shape[1], _LEVELS), np.int32), _LEAST_SHARE * right.shape[0]
    _loops.count_levels(right.data, right.indices, counts)
    bins = np.flatnonzero((counts[:, 0] >= least) & (counts[:, -1] < least))
    counts = counts[bins]
    order = np.argsort(-counts, axis=None, kind="stable")[: np.count_nonzero(counts >= least)]
    of_bins = np.full(counts.shape, -1, np.int32)
    of_bins.flat[order] = np.arange(order.size)
    places = np.full((right.shape[1], _LEVELS), -1, np.int32)
    places[bins] = of_bins
    return places


def _are_whole(numbers: np.ndarray) -> bool:
    return bool((numbers == np.rint(numbers)).all())


def _split(rows: CSR, places: np.ndarray | None) -> tuple[np.ndarray, CSR]:
    """Return the bits (n, words) of levels, and rows of what is above them; see ``_places_of_levels``."""
    if places is None:
        return np.zeros((rows.shape[0], 0), np.uint64), rows
    bits, rest = np.zeros((rows.shape[0], -(-(int(places.max(initial=-1)) + 1) // 64)), np.uint64), rows.data.copy()
    _loops.split_levels(rows.data, rows.indices, rows.indptr, places, bits, rest)
    stays = rest > 0
    ends = np.concatenate([[0], np.cumsum(stays)])[rows.indptr].astype(rows.indptr.dtype)
    return bits, _arrays.csr(rest[stays], rows.indices[stays], ends, rows.shape)
