"""Norms of rows, dense or sparse, and products of rows, columns and entries with factors."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from chimap import _arrays
from chimap._types import Rows


def row_norms_l1(X: Rows) -> np.ndarray:
    """Return the sum of absolute values of each row, float64 of shape (rows,)."""
    if _arrays.is_sparse(X):
        return np.asarray(abs(X).sum(axis=1, dtype=np.float64)).reshape(-1)
    return np.abs(X).sum(axis=1, dtype=np.float64)


def row_squares(X: Rows) -> np.ndarray:
    """Return |x|^2 of rows, dense or CSR, of shape (n,) in their dtype."""
    if _arrays.is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=X.dtype).reshape(-1)
    return np.asarray(np.einsum("ij,ij->i", X, X))


def scale_rows(X: Rows, factors: np.ndarray) -> Rows:
    """Return a copy of X whose row i is multiplied by factors[i]; dtype and kind of X stay."""
    if _arrays.is_sparse(X):
        return sp.csr_matrix(
            (_times(X.data, np.repeat(factors, np.diff(X.indptr))), X.indices, X.indptr), shape=X.shape
        )
    return _times(X, factors[:, None])


def scale_entries(X: Rows, columns: np.ndarray, factors: np.ndarray) -> None:
    """Multiply the entries of X in these columns by the factor of their row, (rows,), in place."""
    if _arrays.is_sparse(X):
        inside = np.zeros(X.shape[1], dtype=bool)
        inside[columns] = True
        chosen = inside[X.indices]
        X.data[chosen] = _times(X.data[chosen], np.repeat(factors, np.diff(X.indptr))[chosen])
    else:
        X[:, columns] = _times(X[:, columns], factors[:, None])


def scale_columns(X: Rows, factors: np.ndarray) -> Rows:
    """Return a copy of X whose column i is multiplied by factors[i]; dtype and kind of X stay."""
    if _arrays.is_sparse(X):
        return _arrays.csr(_times(X.data, factors[X.indices]), X.indices, X.indptr, X.shape)
    return _times(X, factors)


def unit_rows(X: Rows) -> Rows:
    """Return float64 rows divided by their l1 norms; empty rows, and those of subnormal norm, stay below 1."""
    return scale_rows(X, 1 / np.maximum(row_norms_l1(X), np.finfo(np.float64).tiny))


def _times(values: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return the product in the dtype of the values, also where factors are beyond its range."""
    limits, sizes = np.finfo(values.dtype), np.abs(factors)
    if np.all((sizes <= limits.max) & ((sizes >= limits.tiny) | (sizes == 0))):
        return values * factors.astype(values.dtype)
    return (values * factors.astype(np.float64)).astype(values.dtype)
