"""Checks of rows that are added to moments."""

from __future__ import annotations

import numpy as np

from chimap import _arrays
from chimap._types import ArrayLike, MatrixLike
from chimap._validation import DataError


def checked_rows(
    Z: MatrixLike, Y: ArrayLike, n_features: int, n_targets: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return features (n, D) and targets (n, t) as dense arrays of finite numbers; raise DataError for other input."""
    Z = _arrays.to_dense(_arrays.as_rows(Z))
    Y = np.asarray(Y, dtype=np.float64)
    Y = Y[:, None] if Y.ndim == 1 else Y
    if Z.shape != (Y.shape[0], n_features) or Y.shape[1] != n_targets:
        raise DataError(
            f"these moments take Z of {n_features} features and Y of {n_targets} targets, with the same number "
            f"of rows; got Z {Z.shape} and Y {Y.shape}."
        )
    for name, values in (("Z", Z), ("Y", Y)):
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise DataError(
                f"{name}, row {row}, column {column}: {values[row, column]}; moments need finite numbers."
            )
    return Z, Y


def checked_row_weights(weights: ArrayLike | None, n_rows: int) -> np.ndarray | None:
    """Return weights (n,) as float64 numbers above 0, or None; raise DataError for other input."""
    if weights is None:
        return None
    checked = np.asarray(weights, dtype=np.float64)
    if checked.shape != (n_rows,) or not (np.isfinite(checked) & (checked > 0)).all():
        raise DataError(
            f"sample_weight must be one finite number above 0 for each of the {n_rows} rows; got shape {checked.shape}"
            f"{'' if checked.shape != (n_rows,) else ' with other values among them'}. Leave rows of weight 0 out."
        )
    return checked
