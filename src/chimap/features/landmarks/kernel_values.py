"""Kernel values with landmarks, less 1."""

from __future__ import annotations

import numpy as np

from chimap import _blas, _loops, _threads

_GRAM_COLUMNS = 2048  # mapped bins of the landmarks that are in float64 at once
_GRAM_ROWS = 256  # rows whose kernel values are mirrored at once


def exponentials(half_rows: np.ndarray, half_landmarks: np.ndarray, products: np.ndarray) -> None:
    """Replace products u.l (n, m) by exp(u.l - |u|^2/2 - |l|^2/2) - 1, given the halves of the squares."""
    _threads.over_rows(
        products.shape[0],
        products.shape[1],
        lambda part: _loops.kernel_less_one(half_rows[part], half_landmarks, products[part]),
    )


def add_to_all(row: np.ndarray, n_rows: int, out: np.ndarray) -> None:
    """Add a row (m,) to each of the first n_rows of ``out``, on all threads."""
    _threads.over_rows(n_rows, out.shape[1], lambda part: _loops.add_to_rows(row, out[part]))


def less_one(u: np.ndarray) -> np.ndarray:
    """Return exp(-|u_i - u_j|^2 / 2) - 1 for rows u (m, p), float64.

    It is computed for some columns and rows at a time, without a full copy.
    """
    m = u.shape[0]
    gram = np.zeros((m, m))
    for first in range(0, u.shape[1], _GRAM_COLUMNS):
        columns = np.ascontiguousarray(u[:, first : first + _GRAM_COLUMNS].T, dtype=np.float64)
        _blas.add_square(columns, gram, add=True)
    halves = gram.diagonal() / 2
    for first in range(0, m, _GRAM_ROWS):
        rows = slice(first, first + _GRAM_ROWS)
        block = gram[rows, first:]
        block -= halves[rows, None]
        block -= halves[first:]
        np.expm1(np.minimum(block, 0, out=block), out=block)
        corner = np.triu(block[:, :_GRAM_ROWS], 1)
        block[:, :_GRAM_ROWS] = corner + corner.T
        gram[first + block.shape[0] :, rows] = block[:, _GRAM_ROWS:].T
    return gram
