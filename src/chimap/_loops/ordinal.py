"""Concordant and discordant pairs of bins, for the PQ kernel."""

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT

_CELLS_AN_ENTRY = 32  # cells of a table of ranks that cost as much as an entry in a tree


@nb.njit(**EXACT)
def concordance(xi, xg, xp, yi, yr, yp, n_bins, out):
    """Write out[i, j] = concordant minus discordant pairs of bins of row i of X and row j of Y, non-negative rows.

    A row of X is its nonzero bins in the order of their values: xi (bins), xg (rank of the value, from 1, equal for
    equal values), xp (where rows start). A row of Y is its nonzero bins yi, their ranks yr and starts yp.

    Rows of few different values, such as counts, take s + g h steps for s nonzero bins of x and g, h different values
    of x and y; other rows take s log h.
    """
    n, m = xp.shape[0] - 1, yp.shape[0] - 1
    rank = np.zeros(n_bins, yr.dtype)
    for j in range(m):
        top = 0
        for e in range(yp[j], yp[j + 1]):
            rank[yi[e]] = yr[e]
            top = max(top, yr[e])
        held = np.zeros(top + 1, np.int32)  # bins of each rank of y
        held[0] = n_bins - (yp[j + 1] - yp[j])
        for e in range(yp[j], yp[j + 1]):
            held[yr[e]] += 1
        counts, lean = np.empty(top + 1, np.int32), np.empty(top + 1, np.int32)
        tree = np.empty(top + 2, np.int32)
        for i in range(n):
            bins, ranks = xi[xp[i] : xp[i + 1]], xg[xp[i] : xp[i + 1]]
            if ranks.size == 0:
                out[i, j] = 0  # all bins tie
            elif ranks[-1] * held.size <= _CELLS_AN_ENTRY * ranks.size:
                out[i, j] = _balance_by_table(bins, ranks, rank, held, counts, lean)
            else:
                out[i, j] = _balance_by_tree(bins, ranks, rank, held, counts, tree)
        for e in range(yp[j], yp[j + 1]):
            rank[yi[e]] = 0


@nb.njit(**EXACT)
def _balance_by_table(bins, ranks, rank, held, seen, lean):
    """Return concordant minus discordant pairs, with counts of the ranks of y in a table.

    Bins come from the largest x down, ties together, and each meets those before it, all of larger x. seen[r] counts
    the bins of rank r of y so far; lean[r] is the number above r less the number below it, before the group of ties.
    """
    seen[:] = 0
    lean[:] = 0
    balance = np.int64(0)
    e = bins.size - 1
    while e >= 0:
        tied = ranks[e]
        while e >= 0 and ranks[e] == tied:
            r = rank[bins[e]]
            balance += lean[r]
            seen[r] += 1
            e -= 1
        total, below = np.int32(bins.size - 1 - e), np.int32(0)
        for r in range(held.size):
            lean[r] = total - 2 * below - seen[r]
            below += seen[r]
    for r in range(held.size):  # the bins where x is zero
        balance += np.int64(held[r] - seen[r]) * lean[r]
    return balance


@nb.njit(**EXACT)
def _balance_by_tree(bins, ranks, rank, held, counts, tree):
    """Return concordant minus discordant pairs, with counts of the ranks of y in a Fenwick tree.

    Bins come from the smallest x up. ``counts`` and ``tree`` are work arrays.
    """
    counts[:] = held  # start with the bins where x is zero
    for e in range(bins.size):
        counts[rank[bins[e]]] -= 1
    _build(counts, tree)
    before = counts.sum()
    balance = np.int64(0)
    e = 0
    while e < bins.size:
        last = e
        while last < bins.size and ranks[last] == ranks[e]:
            r = rank[bins[last]]
            balance += _prefix(tree, r) - (before - _prefix(tree, r + 1))
            last += 1
        for same in range(e, last):
            _insert(tree, rank[bins[same]] + 1)
        before += last - e
        e = last
    return balance


@nb.njit(inline="always", error_model="numpy")
def _build(counts, tree):
    """Make a Fenwick tree over positions 1 .. of counts, which start at 0."""
    tree[0] = 0
    tree[1:] = counts
    for p in range(1, tree.shape[0]):
        parent = p + (p & -p)
        if parent < tree.shape[0]:
            tree[parent] += tree[p]


@nb.njit(inline="always", error_model="numpy")
def _prefix(tree, p):
    """Return the sum of positions 1 .. p."""
    total = np.int64(0)
    while p > 0:
        total += tree[p]
        p -= p & -p
    return total


@nb.njit(inline="always", error_model="numpy")
def _insert(tree, p):
    while p < tree.shape[0]:
        tree[p] += 1
        p += p & -p
