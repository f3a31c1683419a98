"""Fast Walsh-Hadamard transforms of rows, with random signs between them."""

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT


@nb.njit(**EXACT)
def _transform(a, b):
    """Apply the unnormalised Walsh-Hadamard transform to a (its length a power of two), with b as work array.

    Returns whether a, not b, holds the result. Every pass splits its input into halves (or quarters) and interleaves
    their sums and differences, so that all passes read and write with the same strides, and all vectorise. Passes over
    quarters halve the memory traffic.
    """
    p = a.shape[0]
    levels = 0
    while (1 << levels) < p:
        levels += 1
    in_a = True
    if levels % 2 == 1:
        half = p // 2
        u, v = a[:half], a[half:]
        for i in range(half):
            b[2 * i] = u[i] + v[i]
            b[2 * i + 1] = u[i] - v[i]
        in_a = False
        levels -= 1
    while levels > 0:
        source, target = (a, b) if in_a else (b, a)
        q = p // 4
        s0, s1, s2, s3 = source[:q], source[q : 2 * q], source[2 * q : 3 * q], source[3 * q :]
        for i in range(q):
            x, y = s0[i] + s2[i], s0[i] - s2[i]
            z, w = s1[i] + s3[i], s1[i] - s3[i]
            target[4 * i] = x + z
            target[4 * i + 1] = x - z
            target[4 * i + 2] = y + w
            target[4 * i + 3] = y - w
        in_a = not in_a
        levels -= 2
    return in_a


@nb.njit(**EXACT)
def structured_projection(X, signs, lengths, out):
    """Write the first m of [H S_3 H S_2 H S_1 x, ...] (a block for each set of signs) times ``lengths`` to out[r, :m].

    X is (rows, n), padded with zeros to p = signs.shape[2]; signs are (blocks, 3, p) +-1 in the dtype of X, lengths
    (m,), out (rows, m or more). H is not normalised; ``lengths`` make up for it.
    """
    n, p, m = X.shape[1], signs.shape[2], lengths.shape[0]
    a, b = np.empty(p, X.dtype), np.empty(p, X.dtype)
    for r in range(X.shape[0]):
        x, o = X[r], out[r]
        for block in range(signs.shape[0]):
            s = signs[block, 0]
            for i in range(n):
                a[i] = s[i] * x[i]
            for i in range(n, p):
                a[i] = 0
            in_a = _transform(a, b)
            for stage in range(1, 3):
                s = signs[block, stage]
                current = a if in_a else b
                for i in range(p):
                    current[i] *= s[i]
                in_a = _transform(a, b) if in_a else not _transform(b, a)
            first = block * p
            result = a if in_a else b
            target, scale = o[first : min(m, first + p)], lengths[first : min(m, first + p)]
            for i in range(target.shape[0]):
                target[i] = scale[i] * result[i]
