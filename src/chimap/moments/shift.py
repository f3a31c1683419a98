"""The provisional mean by which rows are shifted, so that a mean far from zero loses no digits."""

from __future__ import annotations

import numpy as np

from chimap import _arrays
from chimap._types import Rows


def provisional_mean(Z: Rows) -> np.ndarray:
    """Return the mean (D,) float64 of rows Z (n, D), dense or CSR, rounded to their dtype.

    It is rounded so that exactly the number that is kept is subtracted from the rows.

    >>> provisional_mean(np.array([[0.1], [0.2]], np.float32)).tolist()
    [0.15000000596046448]
    """
    return np.asarray(_arrays.column_means(Z).astype(Z.dtype).astype(np.float64))
