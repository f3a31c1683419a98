"""Mean, deviation and range of the rows of a fit, from which a model makes reference rows and random rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.model_files import register

_ROWS = 256  # rows that stand in for the data; also the rows of a block when squares are summed


@dataclass(frozen=True, eq=False)
class RowStatistics:
    """The mean, the standard deviation and the largest size of each bin, in the dtype of the rows.

    Parameters
    ----------
    mean_row, deviation_row, largest_row : array of shape (bins,)
        The values.

    Examples
    --------
    >>> found = RowStatistics.of(np.array([[1.0, 2.0], [3.0, 2.0]]))
    >>> found.mean_row.tolist(), found.deviation_row.tolist()
    ([2.0, 2.0], [1.0, 0.0])
    """

    mean_row: np.ndarray
    deviation_row: np.ndarray
    largest_row: np.ndarray

    @classmethod
    def of(cls, rows: Rows) -> RowStatistics:
        """Return those of rows.

        Parameters
        ----------
        rows : array or CSR matrix of shape (n, bins)
            The rows.
        """
        n = rows.shape[0]
        largest = _arrays.column_maxima(rows)
        units = np.where(largest > 0, largest, 1.0)  # whose squares do not overflow
        mean = np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel() / n
        if _arrays.is_sparse(rows):  # sum of (x - m)^2 over stored entries, and m^2 for every zero
            stored = np.bincount(rows.indices, minlength=rows.shape[1])
            off = np.square((rows.data - mean[rows.indices]) / units[rows.indices])
            squares = np.bincount(rows.indices, off, rows.shape[1]) + (n - stored) * np.square(mean / units)
        else:
            squares = np.zeros(rows.shape[1])
            for first in range(0, n, _ROWS):
                squares += np.square((rows[first : first + _ROWS] - mean) / units).sum(axis=0)
        deviation = units * np.sqrt(squares / n)
        return cls(mean.astype(rows.dtype), deviation.astype(rows.dtype), largest.astype(rows.dtype))


register(RowStatistics)


def rows_like(
    mean: np.ndarray, deviation: np.ndarray, largest: np.ndarray | float, is_signed: bool, random_state: int = 0
) -> np.ndarray:
    """Return 256 random rows whose bins, drawn independently, have about the given means and deviations.

    Bins follow a gamma distribution, or a normal one if they are signed, up to the largest size: beyond it no row has
    been, and a logarithm would make a share above 1 of it.

    Parameters
    ----------
    mean : ndarray of shape (bins,)
        Mean of each bin.
    deviation : ndarray of shape (bins,)
        Standard deviation of each bin.
    largest : ndarray of shape (bins,) or float
        Largest size of each bin.
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
    >>> rows = rows_like(np.array([4.0, 2.0]), np.array([1.0, 0.0]), largest=6.0, is_signed=False)
    >>> rows.shape, bool(abs(rows[:, 0].mean() - 4) < 0.3), float(rows.max()), bool((rows[:, 1] == 2).all())
    ((256, 2), True, 6.0, True)
    """
    rng, size = np.random.default_rng(random_state), (_ROWS, mean.size)
    if is_signed:
        return np.asarray(rng.normal(mean, deviation, size).clip(-largest, largest), dtype=mean.dtype)
    varies = (mean > 0) & (deviation > 0)
    ratio = np.where(varies, deviation, 1.0) / np.where(varies, mean, 1.0)
    drawn = rng.gamma(1 / np.square(ratio), np.where(varies, mean * np.square(ratio), 0.0), size)
    return np.where(varies, np.minimum(drawn, largest), mean).astype(mean.dtype)
