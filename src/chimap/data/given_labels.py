"""Labels that are passed to an estimator beside its rows: none may be missing, as rows would be left out unnoticed."""

from __future__ import annotations

from typing import Any

import numpy as np

from chimap._types import ArrayLike
from chimap._validation import DataError
from chimap.data.label_kinds import is_text
from chimap.data.labels import is_missing


def plain_labels(y: Any) -> ArrayLike:
    """Return the labels of a pandas series with an extension dtype as an array of numbers, booleans or objects.

    Other labels are returned unchanged. Raises DataError, naming the row, for missing labels: None, NaN among objects,
    and empty text.

    >>> import pandas as pd
    >>> plain_labels(pd.Series([2, 1], dtype="Int64")), plain_labels(pd.Series(["a", "b"], dtype="string"))
    (array([2, 1]), array(['a', 'b'], dtype=object))
    """
    dtype = getattr(y, "dtype", None)
    if not hasattr(dtype, "na_value") or not hasattr(y, "isna"):
        if isinstance(y, list | tuple):
            _check_none_missing(
                np.array(y, dtype=object)
            )  # objects, because NaN converted to text would be a class
        elif isinstance(y, np.ndarray) or getattr(dtype, "kind", "") == "O":
            _check_none_missing(np.asarray(y))
        return y.astype(object) if getattr(dtype, "kind", "") == "T" else y
    _refuse_missing(np.asarray(y.isna()))
    plain = getattr(dtype, "numpy_dtype", np.dtype(object))
    return np.asarray(y.to_numpy(dtype=plain if plain.kind in "iufb" else object))


def _check_none_missing(y: np.ndarray) -> None:
    """Refuse text and objects, of shape (n,), in which a label is missing: None, NaN and empty text."""
    if y.ndim == 1 and is_text(y):
        _refuse_missing(np.array([is_missing(value) for value in y], dtype=bool))


def _refuse_missing(is_missing: np.ndarray) -> None:
    missing = np.flatnonzero(is_missing)
    if missing.size:
        raise DataError(
            f"y, row {missing[0]}: no label ({missing.size:,} of {is_missing.size:,} are missing). Leave these rows "
            "out, as open_source(X, y) and fit_source do."
        )
