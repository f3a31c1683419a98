"""Magnitudes at which the values of a kernel and its features are numbers."""

from __future__ import annotations

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap._validation import DataError

_HEADROOM = 10  # powers of two below the largest number: sums of a few bins, and of a bin and a node


def check_magnitudes(rows: Rows, largest: float) -> None:
    """Refuse checked rows, dense or CSR, with magnitudes so near the largest number that kernel values overflow.

    largest: of all magnitudes. Raises DataError, naming the place of it.
    """
    most = float(np.ldexp(np.finfo(rows.dtype).max, -_HEADROOM))
    if largest <= most:
        return
    column = int(np.argmax(_arrays.column_maxima(rows)))
    row = int(np.argmax(np.abs(_arrays.to_dense(_arrays.take_columns(rows, np.array([column])))[:, 0])))
    raise DataError(
        f"X, row {row}, column {column}: {largest:.3g} is above {most:.2g}, where kernel values overflow "
        f"({rows.dtype}). Scale the rows down."
    )
