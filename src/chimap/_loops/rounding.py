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


@nb.njit(**EXACT)
def split_to_bfloat16(values):
    """Write each finite float32 of a row (rows, columns) as the sum of two bfloat16, in place.

    The first half of the row becomes the numbers rounded to the nearest, in order, and the second half what is left of
    them, both as 16 bits each. Their sum has 16 significant bits at least.
    """
    halves, n = values.view(np.uint16), values.shape[1]
    nearest, rest = np.empty((1, n), np.float32), np.empty((1, n), np.float32)
    for r in range(values.shape[0]):
        nearest[0] = values[r]
        round_to_bfloat16(nearest)
        for j in range(n):
            rest[0, j] = values[r, j] - nearest[0, j]
        round_to_bfloat16(rest)
        h, near, left = halves[r], nearest.view(np.uint32)[0], rest.view(np.uint32)[0]
        for j in range(n):
            h[j] = near[j] >> np.uint32(16)
            h[n + j] = left[j] >> np.uint32(16)
