"""Mean and deviation of the rows of a fit, kept with the model to make reference rows and random rows without data."""

from __future__ import annotations

import numpy as np

from chimap import _arrays
from chimap._types import Rows

_ROWS = 256  # rows that stand in for the data; also the rows of a block when squares are summed


def mean_and_deviation(rows: Rows) -> dict[str, np.ndarray]:
    """Return the mean and standard deviation of each bin, by the names of a model's attributes.

    Parameters
    ----------
    rows : array or CSR matrix of shape (n, bins)
        The rows.

    Returns
    -------
    dict of str to ndarray of shape (bins,)
        "mean_row_" and "deviation_row_", in the dtype of the rows.

    Examples
    --------
    >>> row = mean_and_deviation(np.array([[1.0, 2.0], [3.0, 2.0]]))
    >>> row["mean_row_"].tolist(), row["deviation_row_"].tolist()
    ([2.0, 2.0], [1.0, 0.0])
    """
    n = rows.shape[0]
    units = np.where((largest := _arrays.column_maxima(rows)) > 0, largest, 1.0)  # whose squares do not overflow
    mean = np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel() / n
    if _arrays.is_sparse(rows):  # sum of (x - m)^2 over stored entries, and m^2 for every zero
        stored = np.bincount(rows.indices, minlength=rows.shape[1])
        off = np.square((rows.data - mean[rows.indices]) / units[rows.indices])
        squares = np.bincount(rows.indices, off, rows.shape[1]) + (n - stored) * np.square(mean / units)
    else:
        squares = np.zeros(rows.shape[1])
        for first in range(0, n, _ROWS):
            squares += np.square((rows[first : first + _ROWS] - mean) / units).sum(axis=0)
    dtype = rows.dtype
    return {"mean_row_": mean.astype(dtype), "deviation_row_": (units * np.sqrt(squares / n)).astype(dtype)}


def rows_like(mean: np.ndarray, deviation: np.ndarray, is_signed: bool, random_state: int = 0) -> np.ndarray:
    """Return 256 random rows whose bins, drawn independently, have the given means and deviations.

    Bins follow a gamma distribution, or a normal one if they are signed.

    Parameters
    ----------
    mean : ndarray of shape (bins,)
        Mean of each bin.
    deviation : ndarray of shape (bins,)
        Standard deviation of each bin.
    is_signed : bool
        Whether bins may be negative.
    random_state : int, default=0
        Seed.

    Returns
    -------
    ndarray of shape (256, bins)
        The rows, in the dtype of ``mean``.

    Examples
    --------
    >>> rows = rows_like(np.array([4.0, 2.0]), np.array([1.0, 0.0]), is_signed=False)
    >>> rows.shape, bool(abs(rows[:, 0].mean() - 4) < 0.3), bool((rows[:, 1] == 2).all())
    ((256, 2), True, True)
    """
    rng, size = np.random.default_rng(random_state), (_ROWS, mean.size)
    if is_signed:
        return np.asarray(rng.normal(mean, deviation, size), dtype=mean.dtype)
    varies = (mean > 0) & (deviation > 0)
    ratio = np.where(varies, deviation, 1.0) / np.where(varies, mean, 1.0)
    drawn = rng.gamma(1 / np.square(ratio), np.where(varies, mean * np.square(ratio), 0.0), size)
    return np.where(varies, drawn, mean).astype(mean.dtype)
