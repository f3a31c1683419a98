"""Kernel values with landmarks, less one, and how many rows landmarks are chosen from."""

from __future__ import annotations

import numpy as np

from chimap import _blas, _loops, _threads

_GRAM_COLUMNS = 2048  # mapped bins of the landmarks that are in float64 together
_GRAM_ROWS = 256  # whose kernel values are mirrored together


def exponentials(half_rows: np.ndarray, half_landmarks: np.ndarray, products: np.ndarray) -> None:
    """exp(u.l - |u|^2/2 - |l|^2/2) - 1 in place of the products u.l (n, m), from the halves of the squares."""
    _threads.over_rows(
        products.shape[0],
        products.shape[1],
        lambda part: _loops.kernel_less_one(half_rows[part], half_landmarks, products[part]),
    )


def add_to_all(row: np.ndarray, n_rows: int, out: np.ndarray) -> None:
    """Add a row (m,) to each of the first n_rows of ``out``, on all threads."""
    _threads.over_rows(n_rows, out.shape[1], lambda part: _loops.add_to_rows(row, out[part]))


def less_one(u: np.ndarray) -> np.ndarray:
    """exp(-|u_i - u_j|^2 / 2) - 1 of rows u (m, p), float64; some columns and rows at a time, so that no copy of all is
    made."""
    m = u.shape[0]
    gram = np.zeros((m, m))
    for first in range(0, u.shape[1], _GRAM_COLUMNS):
        columns = np.ascontiguousarray(u[:, first : first + _GRAM_COLUMNS].T, dtype=np.float64)
        _blas.add_square(columns, gram, add=True)
    halves = gram.diagonal() / 2
    for first in range(0, m, _GRAM_ROWS):
        rows = slice(first, first + _GRAM_ROWS)
        own = gram[rows, first:]
        own -= halves[rows, None]
        own -= halves[first:]
        np.expm1(np.minimum(own, 0, out=own), out=own)
        corner = np.triu(own[:, :_GRAM_ROWS], 1)
        own[:, :_GRAM_ROWS] = corner + corner.T
        gram[first + own.shape[0] :, rows] = own[:, _GRAM_ROWS:].T
    return gram
