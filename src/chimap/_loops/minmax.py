"""The min-max kernel of sparse rows, and consistent weighted samples for its features."""

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT
from chimap._loops.bits import set_bits
from chimap._loops.elementary import log


@nb.njit(**EXACT)
def _scattered(number):
    """Return a 64-bit number with its bits mixed over all places (the finaliser of splitmix64)."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


@nb.njit(**EXACT)
def consistent_samples(data, indices, indptr, rates, logs, offsets, level_mask, mask, out):
    """Write out[r, h] = the code of the bin that hash h samples from CSR row r; rows must not be empty.

    rates r ~ Gamma(2, 1), logs ln c with c ~ Gamma(2, 1), and offsets b ~ U(0, 1) are (bins, hashes) each. The sampled
    bin has the least ln c - r (t - b) - r with t = floor(ln x / r + b). The code is that of the bin and of the bits of
    t in level_mask; codes are at most mask, a power of two less 1.
    """
    n_hashes = rates.shape[1]
    for row in range(indptr.shape[0] - 1):
        least = np.full(n_hashes, np.inf)
        chosen, levels = np.zeros(n_hashes, np.int64), np.zeros(n_hashes)
        for e in range(indptr[row], indptr[row + 1]):
            if not data[e] > 0:
                continue
            i = np.int64(indices[e])
            ln = log(np.float64(data[e]))
            r, c, b = rates[i], logs[i], offsets[i]
            for h in range(n_hashes):
                t = np.floor(ln / r[h] + b[h])
                value = c[h] - r[h] * (t - b[h]) - r[h]
                is_less = value < least[h]
                least[h] = value if is_less else least[h]
                chosen[h] = i if is_less else chosen[h]
                levels[h] = t if is_less else levels[h]
        for h in range(n_hashes):
            level = np.uint64(np.int64(levels[h]) & level_mask)
            number = np.uint64(chosen[h]) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(h + 1)
            number ^= _scattered(level * np.uint64(0xD1B54A32D192ED03))
            out[row, h] = np.int64(_scattered(_scattered(number)) & np.uint64(mask))


@nb.njit(**EXACT)
def count_levels(data, indices, counts):
    """Add to counts (columns, levels) how many entries of each column are at least 1, 2, .. levels."""
    for e in range(data.shape[0]):
        for level in range(counts.shape[1]):
            if not data[e] > level:
                break
            counts[indices[e], level] += 1


@nb.njit(**EXACT)
def split_levels(data, indices, indptr, places, bits, rest):
    """Set a bit for each level of its column that a whole number reaches, and write what is above them to ``rest``.

    ``places`` (columns, levels) are those of the bits in ``bits`` (rows, words), which are 0 before: -1 from the first
    level on that has none.
    """
    for row in range(indptr.shape[0] - 1):
        for e in range(indptr[row], indptr[row + 1]):
            column, n_levels = indices[e], 0
            while n_levels < places.shape[1] and places[column, n_levels] >= 0:
                if data[e] > n_levels:
                    place = places[column, n_levels]
                    bits[row, place >> 6] |= np.uint64(1) << np.uint64(place & 63)
                n_levels += 1
            rest[e] = max(data[e] - n_levels, 0)


@nb.njit(**EXACT)
def minmax_sparse(x_bits, xd, xi, xp, y_bits, yd, yi, yp, y_sums, out):
    """Write out[i, j] = sum of minima / sum of maxima of CSR rows x_i and of rows y_j, which are given as CSC; or 1.

    Every entry of x_i visits those entries of its column, so that a pair of rows costs the bins that they share. What
    ``split_levels`` has taken from both costs a word of bits for 64 levels: x_bits (n, words), y_bits (words, rows of
    y). ``y_sums`` (rows of y,) are sums of whole rows over the columns in ascending order, so that equal rows have
    exactly 1.
    """
    n_others = y_sums.shape[0]
    counts, shared = np.zeros(n_others, np.uint64), np.zeros(n_others)
    for i in range(xp.shape[0] - 1):
        counts[:] = 0
        x_sum = 0.0
        for w in range(x_bits.shape[1]):
            word, words = x_bits[i, w], y_bits[w]
            if word:
                x_sum += set_bits(word)
                for j in range(n_others):
                    counts[j] += set_bits(word & words[j])
        for j in range(n_others):
            shared[j] = counts[j]
        for e in range(xp[i], xp[i + 1]):
            x = np.float64(xd[e])
            x_sum += x
            for f in range(yp[xi[e]], yp[xi[e] + 1]):
                shared[yi[f]] += min(x, np.float64(yd[f]))
        for j in range(n_others):
            union = x_sum + y_sums[j] - shared[j]
            out[i, j] = shared[j] / union if union > 0 else 1.0


@nb.njit(**EXACT)
def sums_of_rows(yd, yi, yp, out):
    """Add the entries of a CSC matrix to ``out`` (rows,), column by column."""
    for e in range(yp[-1]):
        out[yi[e]] += np.float64(yd[e])
