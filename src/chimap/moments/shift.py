"""The provisional mean that sums are taken about, so that a mean far from zero costs no digits."""

from __future__ import annotations

import numpy as np

from chimap import _arrays
from chimap._types import Rows


def provisional_mean(Z: Rows) -> np.ndarray:
    """The mean (D,) float64 of rows Z (n, D), dense or CSR, rounded to their dtype.

    Rounded, so that what is subtracted from rows and what is remembered are the same number.

    >>> provisional_mean(np.array([[0.1], [0.2]], np.float32)).tolist()
    [0.15000000596046448]
    """
    return np.asarray(_arrays.column_means(Z).astype(Z.dtype).astype(np.float64))
