"""Products of rows, dense or sparse, with a dense matrix."""

from __future__ import annotations

import numpy as np

from chimap import _arrays, _blas, _loops, _threads
from chimap._types import CSR, Rows

_SPARSE_BELOW = 0.04  # density of the rows below which the sparse product is faster than the dense one


def project(rows: Rows, W: np.ndarray, buffer: np.ndarray, out: np.ndarray) -> None:
    """Write out[:, :m] = rows @ W for rows (n, d), dense or CSR, and W (d, m), all of one dtype.

    out (n, m or more) is C-contiguous; ``buffer`` (n, d) holds CSR rows that are dense enough to be expanded.
    """
    if not is_short(rows):
        rows = rows.toarray(out=buffer) if _arrays.is_sparse(rows) else rows
        _blas.multiply(rows, W, out[:, : W.shape[1]])
    elif _arrays.is_sparse(rows):
        sparse_product(rows, W, out)
    else:
        _loops.row_times_dense(rows, W, out)


def is_short(rows: Rows) -> bool:
    """Whether rows have so few entries that reading the matching rows of a matrix is most of the work of a product."""
    alone = rows.shape[0] == 1
    if _arrays.is_sparse(rows):
        return alone or rows.nnz < _SPARSE_BELOW * rows.shape[0] * rows.shape[1]
    return alone


def sparse_product(A: CSR, B: np.ndarray, out: np.ndarray) -> None:
    """Write out[:, :m] = A @ B for CSR A and C-contiguous B (d, m), on all threads, without densifying."""
    _threads.over_rows(
        A.shape[0],
        max(1, A.nnz // max(1, A.shape[0])) * B.shape[1],
        lambda rows: _loops.sparse_times_dense(A.data, A.indices, A.indptr[rows.start : rows.stop + 1], B, out[rows]),
    )
