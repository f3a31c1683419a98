"""Products of sparse rows with sparse rows, for kernel matrices."""

import numba as nb

from chimap._loops._compile import EXACT


@nb.njit(**EXACT)
def add_sparse_products(data, indices, indptr, by_column, rows, starts, out):
    """Add sum_c a_ic b_rc to out[i, r], with a in CSR (data, indices, indptr) and b in CSC (by_column, rows, starts).

    ``out`` has the rows of a and at most the rows of b: only as many of the first rows of b count as out has columns.
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
