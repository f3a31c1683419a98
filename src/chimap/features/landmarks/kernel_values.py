"""Kernel values with landmarks, less one, and how many rows landmarks are chosen from."""

from __future__ import annotations

import numpy as np

from chimap import _loops, _threads

_GRAM_COLUMNS = 2048  # mapped bins of the landmarks that are in float64 together


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
    """exp(-|u_i - u_j|^2 / 2) - 1 of rows u (m, p), float64; some columns at a time, so that no copy of all is made."""
    gram = np.zeros((u.shape[0], u.shape[0]))
    for first in range(0, u.shape[1], _GRAM_COLUMNS):
        part = u[:, first : first + _GRAM_COLUMNS].astype(np.float64)
        gram += part @ part.T
    halves = np.diag(gram) / 2
    gram -= halves[:, None]
    gram -= halves
    np.minimum(gram, 0, out=gram)
    gram[np.diag_indices_from(gram)] = 0
    return np.expm1(gram, out=gram)
