"""Values counted in cells of their binary representation."""

import numba as nb

from chimap._loops._compile import EXACT


@nb.njit(**EXACT)
def count_cells(magnitudes, bits, drop, first, lowest, highest, counts, values, excess):
    """Count magnitudes, 0 left out, in cells that leave ``drop`` bits of a float64 out; ends are in cells of their own.

    A cell has the first value that was found in it, and by how much all of them together exceed that.
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
