"""Large matrices whose columns hold few different numbers, written as a byte for each entry; no digit is lost.

The rows that an exact machine keeps are of this kind: mapped counts of up to 255 have as many values as the counts.
"""

from __future__ import annotations

import numpy as np

from chimap import _arrays, _loops

_FEWEST_ROWS = 2048  # below it, the table of the levels is no smaller than the numbers
_N_LEVELS = 256


def coded(values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return codes (n, d), uint8, and the levels (d, L) that they number in each column; None for other arrays.

    The argument is a matrix of floats.

    >>> codes, levels = coded(np.tile([[0.5, 2.0], [0.25, 2.0]], (2000, 1)))
    >>> levels.tolist(), bool((decoded(codes, levels)[:2] == [[0.5, 2.0], [0.25, 2.0]]).all())
    ([[0.5, 0.25], [2.0, 0.0]], True)
    """
    if (
        values.ndim != 2
        or values.shape[0] < _FEWEST_ROWS
        or not values.shape[1]
        or values.dtype not in _arrays.FLOATS
    ):
        return None
    bits = np.ascontiguousarray(_arrays.float_bits(np.ascontiguousarray(values)))
    levels = np.zeros((values.shape[1], _N_LEVELS), bits.dtype)
    codes = np.empty(values.shape, np.uint8)
    most = _loops.codes_of_levels(bits, levels, codes)
    return (codes, levels[:, :most].view(values.dtype)) if most else None


def decoded(codes: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the matrix of ``coded``. Raises ValueError for codes beyond the levels, or of other columns."""
    if codes.ndim != 2 or levels.ndim != 2 or codes.shape[1] != levels.shape[0] or codes.dtype != np.uint8:
        raise ValueError(f"codes {codes.shape} of {codes.dtype} do not belong to levels {levels.shape}")
    if codes.max(initial=0) >= levels.shape[1]:
        raise ValueError(f"a code of {codes.max()} is beyond the {levels.shape[1]} levels")
    return np.asarray(levels[np.arange(levels.shape[0]), codes])
