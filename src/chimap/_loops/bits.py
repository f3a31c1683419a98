"""Signs of projections, counts of differing bits, and codes of columns that hold few different numbers."""

from __future__ import annotations

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT, SUMS

N_LEVELS = 256  # of a code of one byte
_SLOTS = 1024  # of the hash table of a column, four times the levels


@nb.njit(**EXACT)
def codes_of_levels(bits, levels, codes):
    """Write to ``codes`` (n, d), uint8, which level of its column each number is, and these to ``levels`` (d, 256).

    Numbers and levels are given by their bits, as integers of their size. Returns the most levels that a column has, or
    0 as soon as one has more than 256; the codes are then incomplete.
    """
    n, d = bits.shape
    slots = np.full((d, _SLOTS), -1, np.int16)
    counts = np.zeros(d, np.int64)
    for i in range(n):
        for j in range(d):
            number = bits[i, j]
            hashed = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
            slot = np.int64(hashed >> np.uint64(54))
            while slots[j, slot] >= 0 and levels[j, slots[j, slot]] != number:
                slot = (slot + 1) % _SLOTS
            if slots[j, slot] < 0:
                if counts[j] == N_LEVELS:
                    return 0
                levels[j, counts[j]] = number
                slots[j, slot] = counts[j]
                counts[j] += 1
            codes[i, j] = slots[j, slot]
    return counts.max()


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
def set_bits(word):
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
                    count += set_bits(a[w] ^ b[w])
                out[i, j] = count
