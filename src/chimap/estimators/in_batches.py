"""Rows and labels that arrive in batches, for ``partial_fit``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import validate_data

from chimap._messages import Message
from chimap._types import JSON, ArrayLike, MatrixLike, Parameters
from chimap.data import ArraySource, Source
from chimap.data.labelling import labelled
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
            raise ValueError(
                "classes are for a single task: labels of several tasks are 0 and 1. Leave classes out."
            )
        return y, y if codec is None else None
    if codec is None:
        classes = known if classes is None else classes
        if classes is None:
            raise ValueError(
                "classes must be given at the first call of partial_fit: all labels that will ever occur."
            )
        return y, classes
    if classes is not None and not np.array_equal(np.unique(classes), np.asarray(known)):
        raise ValueError(f"classes={classes!r} differs from those of the first call, {known!r}.")
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

    They are checked as scikit-learn checks them, by ``validate_data`` with ``y_checks``; the first batch sets the
    number of columns and their names on the model.
    """
    checks: Parameters = {"accept_sparse": "csr", "dtype": "numeric", "ensure_all_finite": False}
    if is_matrix(y):
        X = validate_data(model, X, reset=is_first, **checks)
    else:
        X, y = validate_data(model, X, y, reset=is_first, **checks, **y_checks)
    source: Source = ArraySource(X, y)
    if sample_weight is not None:
        weights = checked_sample_weight(sample_weight, source.n_rows)
        source = with_weights(source, weights, counts_in(model.weights, weights))
    return labelled(source) if is_matrix(y) else source
