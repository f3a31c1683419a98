"""Loops of random Fourier features."""

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT, SUMS
from chimap._loops.elementary import largest_angle_of, waves_of


@nb.njit(**EXACT)
def _within_a_turn(angles, offset):
    """Take whole turns off the angles of a row, as ``cos_sin`` cannot of large ones: its error grows with them.

    The remainder is exact for a turn of float64, whose rounding moves an angle by no more than its own does.
    """
    for j in range(offset.shape[0]):
        angles[j] = np.fmod(np.float64(angles[j]) + offset[j], 2 * np.pi) - offset[j]


@nb.njit(**EXACT)
def waves(scale, offset, shift, out):
    """Overwrite angles with [scale cos(angles + offset), scale sin(the first angles + offset)] - shift.

    ``out`` (rows, D) holds the angles in its first m columns; offset (m,), shift (D,) with m <= D <= 2m: only the first
    D - m angles have a sine.
    """
    m = offset.shape[0]
    pairs = out.shape[1] - m
    for r in range(out.shape[0]):
        left, right = out[r, :m], out[r, m:]
        n_large = 0
        for j in range(m):
            n_large += abs(left[j]) > largest_angle_of(left[j])
        if n_large:
            _within_a_turn(left, offset)
        for j in range(pairs):
            c, s = waves_of(left[j] + offset[j])
            left[j] = scale * c - shift[j]
            right[j] = scale * s - shift[m + j]
        # The loop starts at 0: an index that starts at a variable is checked for its sign, which prevents vectorising.
        cosines, cosine_offset, cosine_shift = left[pairs:], offset[pairs:], shift[pairs:m]
        for j in range(cosines.shape[0]):
            c, s = waves_of(cosines[j] + cosine_offset[j])
            cosines[j] = scale * c - cosine_shift[j]


_WIDTH = 1024  # columns of an output row that stay in the first cache while the entries pass over them


@nb.njit(**SUMS)
def sparse_times_dense(data, indices, indptr, W, out):
    """Write out[:, :m] = CSR @ W (d, m) without densifying.

    Four entries are taken at a time, which reads and writes the sums less often. The rows of W that are touched stream
    from the shared cache, and that limits the speed. (Blocks of 32 to 512 columns, with which all rows in use would fit
    a core's own cache, were measured: slower by up to four times.)
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
    """Write out[:, :m] = row @ W for one dense row (1, d), reading only the rows of W (d, m) of nonzero entries."""
    indices = np.flatnonzero(row[0])
    sparse_times_dense(row[0][indices], indices, np.array([0, indices.size]), W, out)
