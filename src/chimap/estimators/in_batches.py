"""Rows and labels that arrive in batches, for ``partial_fit``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import JSON, ArrayLike, MatrixLike
from chimap._validation import validated
from chimap.data import ArraySource, Source
from chimap.data.catalogue import check_rows_order, opener_of
from chimap.data.labelling import labelled
from chimap.data.table import ColumnChoice
from chimap.data.views import choice_like
from chimap.estimators.rows_to_predict import bind_columns, source_as_fitted
from chimap.fit.targets import Codec, checked_batch, is_matrix
from chimap.fit.weights import checked_sample_weight, counts_in, with_weights
from chimap.solvers.from_moments import RidgeSolver

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def keeps_moments(model: BaseEstimator) -> bool:
    """Return whether the loss is solved from moments; raise AttributeError for other losses."""
    if not RidgeSolver().supports(model.loss):
        raise AttributeError(
            Message(
                "partial_fit needs {loss='square'}: {loss=} needs several passes over the rows.", model.loss
            )
        )
    return True


def checked_labels(
    y: ArrayLike, classes: ArrayLike | None, known: np.ndarray | None, codec: Codec | None
) -> tuple[ArrayLike, ArrayLike | None]:
    """Return the checked labels of a batch, and all labels for the codec to learn from, or None after the first batch.

    Parameters
    ----------
    y : array of shape (n,) or (n, t)
        Labels of the batch.
    classes : array of shape (classes,) or None
        All classes, as given with the batch.
    known : array of shape (classes,) or None
        The classes that the model knows from earlier rows.
    codec : Codec or None
        That of the earlier batches; None for the first batch.

    Raises
    ------
    ValueError
        If the classes are missing with the first batch, or differ from those of it, or are given for several tasks.
    """
    y = checked_batch(y, codec)
    if is_matrix(y):
        if classes is not None:
            raise InputError(
                "classes are for a single task: labels of several tasks are 0 and 1. Leave classes out."
            )
        return y, y if codec is None else None
    if codec is None:
        classes = known if classes is None else classes
        if classes is None:
            raise InputError(
                "classes must be given at the first call of partial_fit: all labels that will ever occur."
            )
        return y, classes
    if classes is not None and not np.array_equal(np.unique(classes), np.asarray(known)):
        raise InputError(f"classes={classes!r} differs from those of the first call, {known!r}.")
    return y, None


def source_of_batch(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    y_checks: JSON,
    is_first: bool,
) -> Source:
    """Return a source of the rows and labels of a batch, with their weights.

    They are checked as scikit-learn checks them, by ``validated`` with ``y_checks``; the first batch sets the
    number of columns and their names on the model.
    """
    check_rows_order(X, y=y, sample_weight=sample_weight)
    source: Source
    if (opener := opener_of(X)) is not None:
        source = opener(X, y, ColumnChoice() if is_first else choice_like(model))
        if is_first:
            bind_columns(model, source)
        source = source_as_fitted(model, source)
    else:
        if is_matrix(y):
            X = validated(model, X, reset=is_first)
        else:
            X, y = validated(model, X, y, reset=is_first, **y_checks)
        source = ArraySource(X, y)
    if sample_weight is not None:
        weights = checked_sample_weight(sample_weight, source.n_rows)
        source = with_weights(source, weights, counts_in(model.weights, weights))
    return labelled(source) if is_matrix(y) else source
