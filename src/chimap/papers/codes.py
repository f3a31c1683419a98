"""Codes: a small number for each bin in place of its features, and linear models of them as tables.

A map that takes finitely many values in a bin is Psi(x) = concatenation of phi_i(code of x_i). A linear model of it is
then a sum of table entries, one for each bin:

    w . Psi(x) = sum_i T[i, code_i] with T[i, c] = w_i . phi_i(c).

Features are never expanded: the model is evaluated by look-ups, and its gradient by adding up residuals for each code.

Source: Additive nearest neighbor feature maps, sec. 3.4.
"""

from __future__ import annotations

import numpy as np

from chimap import _arrays, _loops, _threads
from chimap._types import Rows
from chimap._validation import DataError

_SAMPLE_VALUES = 2**20  # quantiles that k-means uses, of all bins together


def kmeans_anchors(values: np.ndarray, starts: np.ndarray, n_anchors: int) -> np.ndarray:
    """Return anchors (bins, n_anchors) for the positive values of each bin: 0, then the centres of the best k-means.

    The best k-means is the one with a centre held at 0. The values of bin i are at starts[i]:starts[i + 1]; anchors are
    infinite where a bin has fewer distinct values. (ckwrap and ckmeans-1d-dp wrap the same dynamic programme, but
    neither holds a centre at 0.)
    """
    n_bins = starts.size - 1
    anchors = np.full((n_bins, n_anchors), np.inf)
    anchors[:, 0] = 0
    limit = max(4 * n_anchors, _SAMPLE_VALUES // max(1, n_bins))

    def fill(part: slice) -> None:
        for i in range(part.start, part.stop):
            atoms, counts = np.unique(_quantiles(values[starts[i] : starts[i + 1]], limit), return_counts=True)
            if atoms.size >= n_anchors:
                scale = atoms[-1]  # the squares of scaled values neither overflow nor underflow
                atoms = scale * _loops.kmeans_on_line(atoms / scale, counts.astype(np.float64), n_anchors)
            anchors[i, 1 : 1 + atoms.size] = atoms

    _threads.over_rows(n_bins, values.size // max(1, n_bins) * n_anchors, fill)
    return anchors


def kmeans_bytes(n_values: int, n_rows: int, n_anchors: int) -> int:
    """Return the bytes that ``kmeans_anchors`` takes besides the values of n_rows rows, on all threads.

    Each thread holds the sorted values of a bin and, of those it uses, their counts and sums in a dozen numbers and the
    best borders for any number of anchors.
    """
    n_bins = max(1, n_values // max(1, 2 * n_rows))  # a lower bound: an entry of CSR counts as up to two values
    limit = min(n_rows, max(4 * n_anchors, _SAMPLE_VALUES // n_bins))
    return _threads.count() * (8 * n_rows + (12 * 8 + 4 * n_anchors) * limit)


def _quantiles(values: np.ndarray, limit: int) -> np.ndarray:
    """Return the values if there are at most ``limit``, else about that many of them by rank, with the largest."""
    if values.size <= limit:
        return values
    return np.sort(values)[::-1][:: -(-values.size // limit)]


def steps_per_unit(scale: np.ndarray, n_steps: int) -> np.ndarray:
    """Return n_steps / scale, or 0 where the scale is 0; finite, so that its product with 0 is 0."""
    with np.errstate(over="ignore"):
        rates = n_steps / np.where(scale > 0, scale, np.inf)
    return np.minimum(rates, np.finfo(np.float64).max)


def rounded_down(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the largest numbers of the dtype that are not above float64 values, so that x > value stays the same."""
    with np.errstate(over="ignore"):
        rounded = values.astype(dtype)
    above = rounded > values
    rounded[above] = np.nextafter(rounded[above], dtype.type(-np.inf))
    return rounded


_CACHE_LINE = 64


def code_dtype(n_codes: int) -> np.dtype:
    """Return the smallest unsigned type that holds codes 0 .. n_codes - 1."""
    return np.min_scalar_type(n_codes - 1)


def check_codes(codes: Rows, n_bins: int, n_codes: int) -> Rows:
    """Return codes (n, n_bins) as C-contiguous whole numbers or CSR.

    Raises DataError, naming the place, for anything else.
    """
    if _arrays.is_sparse(codes):
        codes = codes.tocsr()
        if not codes.has_canonical_format:
            raise DataError("codes hold an entry twice: a sum of codes has no meaning. Pass what encode returns.")
        entries = codes.data
    else:
        codes = entries = np.ascontiguousarray(codes)
    if codes.ndim != 2 or codes.shape[1] != n_bins or entries.dtype.kind not in "ui":
        raise DataError(
            f"codes must be whole numbers (rows, {n_bins}), as encode returns; got {entries.dtype} {codes.shape}."
        )
    if entries.size and (entries.max() >= n_codes or entries.min() < 0):
        place = int(np.flatnonzero(((entries >= n_codes) | (entries < 0)).reshape(-1))[0])
        value = entries.reshape(-1)[place]
        if _arrays.is_sparse(codes):
            row, column = int(np.searchsorted(codes.indptr, place, side="right")) - 1, codes.indices[place]
        else:
            row, column = divmod(place, n_bins)
        raise DataError(
            f"codes, row {row}, column {column}: {value}, but this map has {n_codes} codes per bin (0 to "
            f"{n_codes - 1}). Encode the rows with the map that the tables were made from."
        )
    return codes


def look_up(codes: Rows, tables: np.ndarray) -> np.ndarray:
    """Return the outputs (n, t) of a linear model from its tables: sum_i tables[i, codes[:, i]].

    Codes (n, bins) are dense or CSR, tables are (bins, n_codes, t), and the outputs have the dtype of the tables. For
    CSR codes the table entries of code 0 must be zero, as they are for maps with Psi(0) = 0.
    """
    bins, n_codes, t = tables.shape
    table = _in_lanes(tables.reshape(bins * n_codes, t))
    out = _zeros((codes.shape[0], table.shape[1]), tables.dtype)
    if _arrays.is_sparse(codes):
        _threads.over_rows(
            out.shape[0],
            max(1, codes.nnz // max(1, out.shape[0])) * t,
            lambda rows: _loops.lookup_sums_sparse(
                codes.data, codes.indices, codes.indptr[rows.start : rows.stop + 1], table, n_codes, out[rows]
            ),
        )
    else:
        _threads.over_rows(
            out.shape[0], bins * t, lambda rows: _loops.lookup_sums(codes[rows], table, n_codes, out[rows])
        )
    return np.ascontiguousarray(out[:, :t])


def add_up(codes: Rows, values: np.ndarray, n_codes: int) -> np.ndarray:
    """Return the sums (bins, n_codes, t) of the rows of ``values`` (n, t) that have each code in each bin.

    This is the transpose of ``look_up``. Threads split the bins, so that the sums do not depend on the number of
    threads. For CSR codes absent entries add nothing: the sums of code 0 are then left out.
    """
    (n, bins), t = codes.shape, values.shape[1]
    padded = _in_lanes(values)
    out = _zeros((bins * n_codes, padded.shape[1]), values.dtype)
    parts: tuple[np.ndarray, ...]
    if _arrays.is_sparse(codes):
        parts, scatter = (codes.data, codes.indices, codes.indptr), _loops.scatter_sums_sparse
        entries_a_bin = codes.nnz // max(1, bins)
    else:
        parts, scatter, entries_a_bin = (codes,), _loops.scatter_sums, n
    _threads.over_rows(
        bins,
        entries_a_bin * t,
        lambda part: scatter(
            *parts, padded, part.start, part.stop, n_codes, out[part.start * n_codes : part.stop * n_codes]
        ),
    )
    return np.ascontiguousarray(out[:, :t]).reshape(bins, n_codes, t)


def _in_lanes(columns: np.ndarray) -> np.ndarray:
    """Return several columns padded with zero columns to a multiple of LANES; a single column stays alone."""
    n, t = columns.shape
    if t == 1:
        return np.ascontiguousarray(columns)
    padded = _zeros((n, -(-t // _loops.LANES) * _loops.LANES), columns.dtype)
    padded[:, :t] = columns
    return padded


def _zeros(shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Return zeros that begin at a cache line: a vector that crosses two lines is loaded twice."""
    size = shape[0] * shape[1] * dtype.itemsize
    memory = np.zeros(size + _CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + size].view(dtype).reshape(shape)
