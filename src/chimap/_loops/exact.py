"""Products of sparse rows with sparse rows, for matrices of kernel values."""

import numba as nb

from chimap._loops._compile import EXACT


@nb.njit(**EXACT)
def add_sparse_products(data, indices, indptr, by_column, rows, starts, out):
    """out[i, r] += sum_c a_ic b_rc, a in CSR (data, indices, indptr), b in CSC (by_column, rows, starts).

    out (rows of a, at most the rows of b): of b the first rows alone count, as many as out has columns.
    """
    stop = out.shape[1]
    for i in range(out.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            value, column = data[p], indices[p]
            for q in range(starts[column], starts[column + 1]):
                row = rows[q]
                if row >= stop:
                    break
                out[i, row] += value * by_column[q]
