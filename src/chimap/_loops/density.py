"""Counts of values in cells of their binary representation."""

import numba as nb

from chimap._loops._compile import EXACT


@nb.njit(**EXACT)
def count_cells(magnitudes, bits, drop, first, lowest, highest, counts, values, excess):
    """Count nonzero magnitudes in cells that share all but ``drop`` bits of a float64.

    The lowest and the highest magnitude have cells of their own. A cell records the first value that fell into it, and
    the sum by which its values exceed that value.
    """
    last = counts.size - 1
    for i in range(magnitudes.size):
        value = magnitudes[i]
        if value == 0:
            continue
        cell = 0 if value == lowest else last if value == highest else (bits[i] >> drop) - first + 1
        if counts[cell] == 0:
            values[cell] = value
        counts[cell] += 1
        excess[cell] += value - values[cell]
