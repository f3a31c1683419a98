"""Values in order: runs of equal ones, and which of a few bins each run belongs to."""

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT


@nb.njit(**EXACT)
def runs_of(ordered, atoms, counts):
    """How many different values there are; the first of them, where atoms has room, and how often each comes."""
    n_runs = 0
    for i in range(ordered.size):
        if i == 0 or ordered[i] != ordered[i - 1]:
            n_runs += 1
            if n_runs <= atoms.size:
                atoms[n_runs - 1] = ordered[i]
        if n_runs <= atoms.size:
            counts[n_runs - 1] += 1
    return n_runs


@nb.njit(**EXACT)
def share_runs(ordered, by_range_alone, counts, sums):
    """Add the number of values, and their sum, to the bins of positive values in order, two different ones at least.

    The place of a value is where its logarithm lies in the range or, unless by_range_alone, the mean of that and of the
    shares of the values, and of their sum, that lie below the middle of its run.
    """
    n, n_bins, total = ordered.size, counts.size, 0.0
    for i in range(n):
        total += np.float64(ordered[i])
    lowest, highest = np.float64(ordered[0]), np.float64(ordered[-1])
    first = 1
    while ordered[first] == ordered[0]:
        first += 1
    last = 1
    while ordered[n - 1 - last] == ordered[-1]:
        last += 1
    start, width = np.log(lowest), np.log(highest) - np.log(lowest)
    rank_start, rank_width = 0.5 * first, n - 0.5 * (first + last)
    mass_start, mass_width = 0.5 * first * lowest, total - 0.5 * (first * lowest + last * highest)
    i, mass = 0, 0.0
    while i < n:
        value, stop = np.float64(ordered[i]), i + 1
        while stop < n and ordered[stop] == ordered[i]:
            stop += 1
        own = (stop - i) * value
        place = (np.log(value) - start) / width
        if not by_range_alone:
            place += (0.5 * (i + stop) - rank_start) / rank_width
            place += (mass + 0.5 * own - mass_start) / mass_width
            place /= 3
        k = min(max(int(place * n_bins), 0), n_bins - 1)
        counts[k] += stop - i
        sums[k] += own
        mass += own
        i = stop
