"""Random features."""

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT, SUMS
from chimap._loops.elementary import waves_of


@nb.njit(**EXACT)
def waves(scale, offset, shift, out):
    """out = [scale cos(angles + offset), scale sin(the first angles + offset)] - shift, in place of the angles.

    out (rows, D) holds the angles in its first m columns; offset (m,), shift (D,) with m <= D <= 2m: the first D - m
    angles have a sine too.
    """
    m = offset.shape[0]
    pairs = out.shape[1] - m
    for r in range(out.shape[0]):
        left, right = out[r, :m], out[r, m:]
        for j in range(pairs):
            c, s = waves_of(left[j] + offset[j])
            left[j] = scale * c - shift[j]
            right[j] = scale * s - shift[m + j]
        # from 0 on: an index that begins at a variable is checked for its sign, and the loop not vectorised
        alone, own_offset, own_shift = left[pairs:], offset[pairs:], shift[pairs:m]
        for j in range(alone.shape[0]):
            c, s = waves_of(alone[j] + own_offset[j])
            alone[j] = scale * c - own_shift[j]


_WIDTH = 1024  # of the part of an output row that stays in the first cache while the entries pass over it


@nb.njit(**SUMS)
def sparse_times_dense(data, indices, indptr, W, out):
    """out[:, :m] = CSR @ W (d, m) without densifying; four entries at a time, so that sums are read and written less.

    The rows of W that are touched stream from the shared cache, and that is the bound. (Parts of 32 to 512 columns, so
    that all rows in use would fit a core's own cache, were measured: slower by up to four times.)
    """
    n, m = indptr.shape[0] - 1, W.shape[1]
    for r in range(n):
        for first in range(0, m, _WIDTH):
            last = min(m, first + _WIDTH)
            o = out[r, first:last]
            for j in range(o.shape[0]):
                o[j] = 0
            e = indptr[r]
            while e + 4 <= indptr[r + 1]:
                a, b, c, d = data[e], data[e + 1], data[e + 2], data[e + 3]
                wa, wb = W[indices[e], first:last], W[indices[e + 1], first:last]
                wc, wd = W[indices[e + 2], first:last], W[indices[e + 3], first:last]
                for j in range(o.shape[0]):
                    o[j] += (a * wa[j] + b * wb[j]) + (c * wc[j] + d * wd[j])
                e += 4
            while e < indptr[r + 1]:
                v, w = data[e], W[indices[e], first:last]
                for j in range(o.shape[0]):
                    o[j] += v * w[j]
                e += 1


@nb.njit(**SUMS)
def row_times_dense(row, W, out):
    """out[:, :m] = row @ W for one dense row (1, d): of W (d, m) only rows of entries that are not zero are read."""
    indices = np.flatnonzero(row[0])
    sparse_times_dense(row[0][indices], indices, np.array([0, indices.size]), W, out)
