"""Kernel values with other rows, from products of rows."""

from __future__ import annotations

import numba as nb
import numpy as np

from chimap._loops._compile import EXACT, SUMS
from chimap._loops.elementary import exp_of, expm1_of


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


@nb.njit(**SUMS)
def centre_rows(centre, scale, half_norms, out):
    """Overwrite out with scale (out - centre), and write half_norms[r] = |out[r]|^2 / 2; centre and scale are (p,)."""
    for r in range(out.shape[0]):
        o = out[r]
        total = o[0] * 0
        for i in range(o.shape[0]):
            v = (o[i] - centre[i]) * scale[i]
            o[i] = v
            total += v * v
        half_norms[r] = total / 2


@nb.njit(**SUMS)
def centre_sparse(data, indices, indptr, places, centre, scale, dense, half_norms):
    """Do the same for CSR in place, where only some columns have a nonzero centre.

    places (p,) gives the column in ``dense`` (rows, centred columns) of each centred column, and -1 for the others.
    ``dense`` arrives filled with -scale centre; the entries of these columns move there and leave a zero behind.
    """
    for r in range(indptr.shape[0] - 1):
        total = data.dtype.type(0)
        centred = dense[r]
        for e in range(indptr[r], indptr[r + 1]):
            i = indices[e]
            v = (data[e] - centre[i]) * scale[i]
            if places[i] >= 0:
                centred[places[i]] = v
                data[e] = 0
            else:
                data[e] = v
                total += v * v
        for j in range(centred.shape[0]):
            total += centred[j] * centred[j]
        half_norms[r] = total / 2


@nb.njit(**EXACT)
def kernel_less_one(half_rows, half_landmarks, products):
    """Overwrite products u.v with exp(products[r, j] - half_rows[r] - half_landmarks[j]) - 1: the kernel less 1."""
    for r in range(products.shape[0]):
        o, half_row = products[r], half_rows[r]
        for j in range(o.shape[0]):
            o[j] = expm1_of(o[j] - (half_row + half_landmarks[j]))


@nb.njit(**EXACT)
def add_to_rows(row, out):
    """Add ``row`` to every row of out in place."""
    for r in range(out.shape[0]):
        o = out[r]
        for j in range(o.shape[0]):
            o[j] += row[j]
