"""Checks of the true and predicted labels or numbers that are to be measured."""

from __future__ import annotations

import numpy as np

from chimap._types import ArrayLike
from chimap._validation import DataError

NAMES = ("y_true", "y_pred")


def checked_labels(y: ArrayLike, name: str) -> np.ndarray:
    """Return labels or numbers of shape (n,), n >= 1; a single column is flattened. Raises DataError for others."""
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DataError(
            f"{name} must have one label or number per row, shape (n,); got shape {labels.shape}."
        )
    if labels.size == 0:
        raise DataError(f"{name} has 0 rows, so there is nothing to measure; hold out more rows.")
    return labels


def checked_pair(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return true and predicted labels or numbers, (n,) each. Raises DataError if their lengths differ."""
    y_true, y_pred = checked_labels(y_true, "y_true"), checked_labels(y_pred, "y_pred")
    if y_true.size != y_pred.size:
        raise DataError(
            f"y_true has {y_true.size} rows and y_pred {y_pred.size}; pass the labels and the predictions "
            "of the same rows."
        )
    return y_true, y_pred


def checked_numbers(y: np.ndarray, name: str) -> np.ndarray:
    """Convert to float64. Raises DataError for text, and for NaN or infinity, naming the row."""
    try:
        values = y.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must hold numbers for a regression; got {y.dtype}.") from None
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise DataError(
            f"{name}, row {bad[0]}: {values[bad[0]]}, but targets and predictions must be finite numbers."
        )
    return values
