"""Kernel values from products of rows: products of sparse rows, and exponentials of distances in place."""

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT
from chimap._loops.elementary import exp_of


@nb.njit(**EXACT)
def add_sparse_products(data, indices, indptr, by_column, rows, starts, stops, first, out):
    """Add sum_c a_ic b_rc to out[i, r - first], with a in CSR (data, indices, indptr) and b in CSC (by_column, rows).

    The entries of column c of b begin at starts[c] and end at stops[c], with rows r >= first in rising order. ``out``
    has the rows of a and at most the rows of b: rows beyond the last of its columns are left out.
    """
    stop = first + out.shape[1]
    for i in range(out.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            value, column = data[p], indices[p]
            for q in range(starts[column], stops[column]):
                row = rows[q]
                if row >= stop:
                    break
                out[i, row - first] += value * by_column[q]


@nb.njit(**EXACT)
def distances_to_values(products, ahead, behind, gamma):
    """Replace u'v (m, n) by exp(-gamma (|u|^2 + |v|^2 - 2 u'v)), given |u|^2 (m,) and |v|^2 (n,); all of one dtype."""
    twice = gamma + gamma
    for i in range(products.shape[0]):
        row, lead = products[i], gamma * ahead[i]
        if lead == np.inf:  # where the square overflows, so may the products
            row[:] = 0
            continue
        for j in range(row.size):
            # rounding may make a distance of equal rows negative: exp_of takes it as 0
            row[j] = exp_of(twice * row[j] - lead - gamma * behind[j])
