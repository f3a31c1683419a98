"""Rows that are given to a fitted model, in the form of fields or of an object of another library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chimap._types import MatrixLike
from chimap.data import Source, matched
from chimap.data.column_choice import fitted_names
from chimap.data.labels import UNREAD
from chimap.data.layouts import opener_of
from chimap.data.table import LABEL_NAMES, ColumnChoice

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
    names = fitted_names(model)
    aside = tuple(name for name in LABEL_NAMES if name not in (names or ()))
    return None if opener is None else opener(X, UNREAD, ColumnChoice(names=names, aside=aside))


def source_as_fitted(model: BaseEstimator, source: Source) -> Source:
    """Return the source with the columns that the model was fitted on, in their order; see ``data.matched``."""
    names = getattr(model, "feature_names_in_", None)
    return matched(source, names, model.n_features_in_, type(model).__name__)
