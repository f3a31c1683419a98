"""Rows that are given to a fitted model, in the form of fields or of an object of another library."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chimap._types import MatrixLike
from chimap._unicode import composed_names
from chimap._validation import DataError
from chimap.data import Source, matched
from chimap.data.catalogue import opener_of
from chimap.data.labels import UNREAD
from chimap.data.table import LABEL_NAMES
from chimap.data.views import choice_like, fitted_names

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def source_to_predict(model: object, X: MatrixLike) -> Source | None:
    """Return a source if X is not a matrix of rows; None if it is.

    Parameters
    ----------
    model : object
        Fitted model; its ``reading_``, if it has one, reads texts, molecules and named counts.
    X : object
        The rows.
    """
    if isinstance(X, Source):
        return X
    reading = getattr(model, "reading_", None)
    if reading is not None and (source := reading.source_of(X)) is not None:
        return source
    opener = opener_of(X)
    choice = choice_like(model)
    aside = tuple(name for name in LABEL_NAMES if name not in (choice.names or ()))
    return None if opener is None else opener(X, UNREAD, replace(choice, aside=aside))


def source_as_fitted(model: BaseEstimator, source: Source) -> Source:
    """Return the source with the columns that the model was fitted on, in their order; see ``data.matched``."""
    first = getattr(model, "first_column_", None)
    if None not in (first, source.first_column) and first != source.first_column:
        raise DataError(
            f"{source.name}: its columns were counted from {source.first_column}, but those of the model from {first}. "
            "Open it with open_source(path, like=model)."
        )
    return matched(source, fitted_names(model), model.n_features_in_, type(model).__name__)


def bind_columns(model: BaseEstimator, source: Source) -> None:
    """Keep on the model what the source says of its columns, or remove what an earlier fit has kept."""
    model.n_features_in_, model.first_column_ = source.n_features, source.first_column
    if source.column_names is not None:
        model.feature_names_in_ = np.array(composed_names(source.column_names), dtype=object)
    elif hasattr(model, "feature_names_in_"):
        del model.feature_names_in_
