"""Magnitudes at which the values of a kernel and its features are numbers."""

from __future__ import annotations

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap._validation import DataError

_HEADROOM = 10  # powers of two below the largest number: sums of a few bins, and of a bin and a node


def check_magnitudes(rows: Rows, largest: float) -> None:
    """Refuse checked rows, dense or CSR, whose largest magnitude is too near the ends of their type.

    Raises DataError, naming the place of the largest: kernel values overflow above, and lose their digits where all
    bins are subnormal.
    """
    limits = np.finfo(rows.dtype)
    most = float(np.ldexp(limits.max, -_HEADROOM))
    if largest == 0 or limits.tiny <= largest <= most:
        return
    tops = _arrays.column_maxima(rows)
    column = int(np.argmax(tops))
    row = int(np.argmax(np.abs(_arrays.to_dense(_arrays.take_columns(rows, np.array([column])))[:, 0])))
    what, by = (
        (f"above {most:.2g}, where its kernel values overflow", "down")
        if largest > most
        else (f"the largest bin and below {limits.tiny:.2g}, where numbers lose their digits", "up")
    )
    raise DataError(
        f"X, row {row}, column {column}: {largest:.3g} is {what} ({rows.dtype}). Scale the rows {by}."
    )
