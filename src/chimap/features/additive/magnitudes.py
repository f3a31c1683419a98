"""The range of magnitudes for which kernel values and features are finite."""

from __future__ import annotations

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap._validation import DataError

_HEADROOM = 10  # powers of two below the largest number, for sums of a few bins, and of a bin and a node


def check_magnitudes(rows: Rows, largest: float) -> None:
    """Raise DataError for checked rows, dense or CSR, with magnitudes so large that kernel values overflow.

    ``largest`` is the largest of all magnitudes; the error names its place.
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
