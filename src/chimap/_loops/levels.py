"""Codes of columns that hold few different numbers, for model files."""

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT

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
