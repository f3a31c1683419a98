"""Made-up histograms, labels and kinds of matrices, for all tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

DTYPES = (np.float32, np.float64)


def histograms(n_rows: int = 30, n_bins: int = 12, seed: int = 0, empty: float = 0.3) -> np.ndarray:
    """Rows that sum to 1, with a share of empty bins and values over a few decades, float64."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.7, size=(n_rows, n_bins)) * (rng.random((n_rows, n_bins)) >= empty)
    X[X.sum(axis=1) == 0, 0] = 1
    return X / X.sum(axis=1, keepdims=True)


def signed_histograms(n_rows: int = 30, n_bins: int = 12, seed: int = 0) -> np.ndarray:
    """The same with random signs."""
    signs = np.random.default_rng([seed, 1]).choice([-1.0, 1.0], (n_rows, n_bins))
    return histograms(n_rows, n_bins, seed) * signs


def classes(n_rows: int = 600, n_bins: int = 20, n_classes: int = 3, seed: int = 0) -> tuple[Any, Any]:
    """Histograms (n_rows, n_bins) and the classes 0 .. n_classes - 1 whose profiles they follow."""
    rng = np.random.default_rng([seed, 2])
    profiles = rng.gamma(1.0, size=(n_classes, n_bins)) + 0.05
    y = rng.integers(n_classes, size=n_rows)
    X = rng.gamma(profiles[y]) * (rng.random((n_rows, n_bins)) > 0.2)
    X[X.sum(axis=1) == 0, 0] = 1
    return X / X.sum(axis=1, keepdims=True), y


def tracks(
    n_groups: int = 40, rows_each: int = 8, n_bins: int = 12, *, spread: float = 0.02, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, three classes and groups of rows that are copies of one but for ``spread``, as frames of a film are."""
    rng = np.random.default_rng([seed, 3])
    groups = np.repeat(np.arange(n_groups), rows_each)
    profiles = np.eye(3, n_bins) + 0.2
    first = rng.gamma(0.5 + 2 * profiles[np.arange(n_groups) % 3])
    X = first[groups] * np.exp(spread * rng.standard_normal((groups.size, n_bins)))
    return X / X.sum(axis=1, keepdims=True), groups % 3, groups


def with_explicit_zeros(X: np.ndarray) -> sp.csr_matrix:
    """CSR that stores every entry, zeros included."""
    n, d = X.shape
    return sp.csr_matrix((X.reshape(-1), np.tile(np.arange(d), n), np.arange(0, n * d + 1, d)), shape=X.shape)


def unordered(X: np.ndarray) -> sp.csr_matrix:
    """CSR whose columns fall within a row, each entry split into a quarter and three quarters."""
    columns = [np.flatnonzero(row)[::-1].repeat(2) for row in X]
    shares = [np.tile([0.25, 0.75], c.size // 2) for c in columns]
    data = np.concatenate([row[c] * s for row, c, s in zip(X, columns, shares, strict=True)]).astype(X.dtype)
    indptr = np.cumsum([0] + [c.size for c in columns])
    return sp.csr_matrix((data, np.concatenate(columns), indptr), shape=X.shape)


def with_room_to_spare(X: np.ndarray) -> sp.csr_matrix:
    """CSR whose arrays are longer than its entries, with what is no histogram behind them."""
    rows = sp.csr_matrix(X)
    rows.data = np.append(rows.data, [np.nan, -1.0]).astype(X.dtype)
    rows.indices = np.append(rows.indices, [0, 0]).astype(rows.indices.dtype)
    return rows


def long_indices(X: np.ndarray) -> sp.csr_array:
    """CSR with 64-bit indices."""
    rows = sp.csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


SPARSE_KINDS = {
    "csr": sp.csr_matrix,
    "csr array": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
    "explicit zeros": with_explicit_zeros,
    "unordered, doubled": unordered,
    "room to spare": with_room_to_spare,
    "64-bit indices": long_indices,
}


def relative_error(approximate: np.ndarray, exact: np.ndarray) -> float:
    """Frobenius norm of the difference over that of the exact matrix."""
    return float(np.linalg.norm(approximate - exact) / np.linalg.norm(exact))
