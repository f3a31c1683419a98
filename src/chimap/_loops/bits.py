"""Signs of projections, and counts of differing bits."""

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT, SUMS


@nb.njit(**EXACT)
def signs(projected, scale, shift, out):
    """Write out = scale sign(projected) - shift.

    ``projected`` and ``out`` are (rows, D), ``shift`` is (D,). All but ``projected`` have one type.
    """
    for r in range(projected.shape[0]):
        p, o = projected[r], out[r]
        for j in range(p.shape[0]):
            o[j] = (scale if p[j] > 0 else -scale if p[j] < 0 else scale * 0) - shift[j]


@nb.njit(**SUMS)
def _set_bits(word):
    """Return the number of set bits of a 64-bit word by sums of neighbours in ever wider fields.

    The compiler recognises the pattern and emits the machine's instruction for it.
    """
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@nb.njit(**SUMS)
def differing_bits(A, B, tile, out):
    """Write out[i, j] = number of bits in which the words of A[i] and B[j] differ.

    The rows of B pass in tiles that stay in cache.
    """
    n_words = A.shape[1]
    for start in range(0, B.shape[0], tile):
        stop = min(start + tile, B.shape[0])
        for i in range(A.shape[0]):
            a = A[i]
            for j in range(start, stop):
                b = B[j]
                count = np.uint64(0)
                for w in range(n_words):
                    count += _set_bits(a[w] ^ b[w])
                out[i, j] = count
