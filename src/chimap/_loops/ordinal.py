"""Concordant and discordant pairs of bins, for the PQ kernel."""

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT


@nb.njit(**EXACT)
def concordance(xi, xg, xp, yi, yr, yp, n_bins, out):
    """out[i, j] = concordant minus discordant pairs of bins of row i of X and row j of Y, non-negative rows.

    A row of X is its non-zero bins in the order of their values: xi (bins), xg (rank of the value, from 1, equal for
    equal values), xp (where rows start). A row of Y is its non-zero bins yi, their ranks yr and starts yp.

    Bins enter a Fenwick tree over the ranks of y in the order of x, group of ties by group: each meets the bins before
    it, of which those with smaller y are concordant and those with larger y discordant. O(s log s) for rows of s
    non-zero bins: bins that are zero in both rows tie with each other and lie below all bins non-zero in both.
    """
    n, m = xp.shape[0] - 1, yp.shape[0] - 1
    rank = np.zeros(n_bins, np.int32)
    for j in range(m):
        top = 0
        for e in range(yp[j], yp[j + 1]):
            rank[yi[e]] = yr[e]
            top = max(top, yr[e])
        counts, tree = np.empty(top + 2, np.int32), np.empty(top + 2, np.int32)
        for i in range(n):
            # bins that X does not hold come first, with the value 0 there
            counts[:] = 0
            for e in range(yp[j], yp[j + 1]):
                counts[yr[e] + 1] += 1
            shared = 0
            for e in range(xp[i], xp[i + 1]):
                if rank[xi[e]] > 0:
                    counts[rank[xi[e]] + 1] -= 1
                    shared += 1
            before = yp[j + 1] - yp[j] - shared
            neither = n_bins - before - (xp[i + 1] - xp[i])
            _build(counts, tree)
            balance = np.int64(neither) * shared  # those zero in both, against those in neither
            e = xp[i]
            while e < xp[i + 1]:
                last = e
                while last < xp[i + 1] and xg[last] == xg[e]:
                    r = rank[xi[last]]
                    below = _prefix(tree, r)  # ranks 0 .. r - 1
                    balance += below - (before - _prefix(tree, r + 1))
                    last += 1
                for same in range(e, last):
                    _insert(tree, rank[xi[same]] + 1)
                before += last - e
                e = last
            out[i, j] = balance
        for e in range(yp[j], yp[j + 1]):
            rank[yi[e]] = 0


@nb.njit(inline="always", error_model="numpy")
def _build(counts, tree):
    """A Fenwick tree over positions 1 .. of counts."""
    tree[:] = counts
    for p in range(1, tree.shape[0]):
        parent = p + (p & -p)
        if parent < tree.shape[0]:
            tree[parent] += tree[p]


@nb.njit(inline="always", error_model="numpy")
def _prefix(tree, p):
    """Sum of positions 1 .. p."""
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
