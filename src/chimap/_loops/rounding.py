"""Rounding to bfloat16, and its numbers side by side."""

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT


@nb.njit(**EXACT)
def round_to_bfloat16(values):
    """Round finite float32 (rows, columns) to the nearest numbers of 8 significant bits, half to even, in place."""
    bits = values.view(np.uint32)
    for r in range(bits.shape[0]):
        b = bits[r]
        for j in range(b.shape[0]):
            last = (b[j] >> np.uint32(16)) & np.uint32(1)
            b[j] = (b[j] + np.uint32(0x7FFF) + last) & np.uint32(0xFFFF0000)


@nb.njit(**EXACT)
def join_upper_halves(values):
    """Move the upper 16 bits of each float32 of a row (rows, columns) to the front of the row, in order, in place."""
    bits, halves = values.view(np.uint32), values.view(np.uint16)
    for r in range(bits.shape[0]):
        b, h = bits[r], halves[r]
        for j in range(b.shape[0]):
            h[j] = b[j] >> np.uint32(16)
