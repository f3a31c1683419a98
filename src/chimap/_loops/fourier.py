"""Random features."""

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT, SUMS
from chimap._loops.elementary import cos_sin, cos_sin_single


@nb.njit(**EXACT)
def waves(angles, scale, offset, shift, out):
    """out = [scale cos(angles + offset), scale sin(the first angles + offset)] - shift.

    angles (rows, m), offset (m,), out (rows, D), shift (D,) with m <= D <= 2m: the first D - m angles have a sine too.
    """
    m = angles.shape[1]
    pairs = out.shape[1] - m
    single = out.itemsize == 4
    for r in range(angles.shape[0]):
        a, left, right = angles[r], out[r, :m], out[r, m:]
        for j in range(pairs):
            if single:
                c, s = cos_sin_single(np.float32(a[j] + offset[j]))
            else:
                c, s = cos_sin(np.float64(a[j] + offset[j]))
            left[j] = scale * c - shift[j]
            right[j] = scale * s - shift[m + j]
        for j in range(pairs, m):
            if single:
                c, s = cos_sin_single(np.float32(a[j] + offset[j]))
            else:
                c, s = cos_sin(np.float64(a[j] + offset[j]))
            left[j] = scale * c - shift[j]


@nb.njit(**SUMS)
def sparse_times_dense(data, indices, indptr, W, out):
    """out = CSR @ W without densifying; the columns of W go in blocks so that the touched rows stay in cache."""
    n, m, width = indptr.shape[0] - 1, W.shape[1], 512
    for r in range(n):
        for first in range(0, m, width):
            o = out[r, first : min(m, first + width)]
            for j in range(o.shape[0]):
                o[j] = 0
            for e in range(indptr[r], indptr[r + 1]):
                v = data[e]
                w = W[indices[e], first : min(m, first + width)]
                for j in range(o.shape[0]):
                    o[j] += v * w[j]
