"""The rows and labels that a user passes to ``fit`` and ``score``, in any kind of object."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from chimap._frames import is_frame, names_of
from chimap._types import JSON, ArrayLike, MatrixLike
from chimap._validation import DataError, validated
from chimap.data import ArraySource, Source, open_source
from chimap.data.catalogue import opener_of
from chimap.data.formats.frames import FrameSource, frame_rows
from chimap.data.labelling import task_words
from chimap.fit.targets import is_matrix

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def source_of(model: BaseEstimator, X: MatrixLike, y: ArrayLike, y_checks: JSON) -> Source:
    """Return a source of rows X and labels y, with names of columns and tasks if the objects have them.

    Arrays are checked as scikit-learn checks them, by ``validated`` with ``y_checks``, which sets the number of
    columns and their names on the model. An array of several tasks may have missing entries.
    """
    if task_words(X, y) is not None:
        return open_source(X, y)
    if (opener := opener_of(X)) is not None:
        source: Source = opener(X, y)
        return source
    if isinstance(y, str) and is_frame(X):
        return FrameSource(X, y)
    X, y = frame_rows(X, y)
    names = tuple(map(str, names_of(y))) if is_matrix(y) and is_frame(y) else None
    if is_matrix(y):
        X = validated(model, X)
    else:
        X, y = validated(model, X, y, **y_checks)
    array_source = ArraySource(X, y, column_names=getattr(model, "feature_names_in_", None))
    array_source.task_names = names
    return array_source


def labelled_rows(
    model: BaseEstimator, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[MatrixLike, ArrayLike, ArrayLike | None]:
    """Return rows, labels and weights; where y names columns of X, they are read, and rows without a label left out.

    Raises DataError where X has no named columns, or the model takes arrays only.
    """
    if not isinstance(y, str) and task_words(X, y) is None:
        return X, y, sample_weight
    if not hasattr(model, "predict_source"):
        raise DataError(
            f"y={y!r} names a column of the rows; {type(model).__name__} takes labels as an array (n,): give the "
            "values of the column."
        )
    if not is_frame(X) and opener_of(X) is None:
        frame_rows(X, y)
    source = open_source(X, y, like=model)
    labels = source.labels()
    assert labels is not None  # they are named
    weights = None if sample_weight is None else np.asarray(sample_weight)[source.places_in_file()]
    return cast("MatrixLike", source), labels, weights
