"""Conversion of rows and targets to the precision of a fit, which refuses numbers that it cannot hold.

Numbers that would become 0 or infinity are an error here, and are never used silently. The preparation
of rows and the codecs call these checks.
"""

from __future__ import annotations

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import Rows
from chimap._validation import DataError

_REMEDY = Message("Scale the rows, or use {precision='float64'}.")
_LEAST_TARGET, _LARGEST_TARGET = 1e-30, 1e30  # float32 holds products of these, summed over very many rows
_ROUNDING = 1e-12  # deviations up to this part of the largest target are rounding errors of a constant


def rows_in(X: Rows, dtype: np.dtype, first_row: int | np.ndarray, name: str) -> Rows:
    """Return the rows as ``as_rows`` converts them to ``dtype``.

    Bins that become 0 beside others change no kernel value by more than rounding does. Raise DataError, naming the row,
    if a bin becomes infinite or all bins of a row become 0.
    """
    try:
        with np.errstate(over="raise", under="raise"):
            return _arrays.as_rows(X, dtype)
    except FloatingPointError:
        with np.errstate(over="ignore", under="ignore"):
            rows = _arrays.as_rows(X, dtype)
    before, after = _row_maxima(X), _row_maxima(rows)
    bad = np.flatnonzero((np.isfinite(before) & np.isinf(after)) | ((before > 0) & (after == 0)))
    if bad.size:
        row = bad[0] + first_row if isinstance(first_row, int) else first_row[bad[0]]
        limits = np.finfo(dtype)
        what = (
            f"all bins are too small for {dtype}, below {limits.smallest_subnormal:.2g}"
            if after[bad[0]] == 0
            else f"a bin is too large for {dtype}, above {limits.max:.2g}"
        )
        raise DataError(Message("{}, row {}: {}. {}", name, row, what, _REMEDY))
    return rows


def _row_maxima(X: Rows) -> np.ndarray:
    """Return the largest magnitude of each row, dense or CSR, (n,)."""
    if _arrays.is_sparse(X):
        return abs(X).max(axis=1).toarray().reshape(-1)  # for sparse arrays, max has one axis
    return np.abs(X).max(axis=1, initial=0)


def check_targets(y: np.ndarray, mean: np.ndarray | float) -> None:
    """Raise DataError if sums of products cannot hold the deviations of targets from their mean.

    ``y`` holds the targets of a regression, NaN where one is missing. Deviations that are rounding errors of a constant
    count as none.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        largest = float(np.nanmax(np.abs(y - mean), initial=0.0))
    top = float(np.nanmax(np.abs(y), initial=0.0))
    if _LEAST_TARGET <= largest <= _LARGEST_TARGET or (largest < 1 and largest <= _ROUNDING * top):
        return
    what, limit = ("large", f"above {_LARGEST_TARGET:g}") if largest > 1 else ("small", f"below {_LEAST_TARGET:g}")
    raise DataError(
        f"y: targets deviate from their mean by {largest:.2g} at most, {limit}, which is too {what} for sums of "
        f"products. Give them in another unit, y / {10.0 ** np.floor(np.log10(top)):.0e}, and multiply predictions by "
        "it."
    )
