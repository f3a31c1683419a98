"""What estimators forward to their fitted model, so that each has one table of it and no code.

    predict_chunks, predict_source = ...       rows of any kind, read as those of the fit were
    explain = forwarded(models.explain.explain)
    save, load = ...

``ShownAttribute`` shows an attribute of the model under the name of the estimator's annotation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np

from chimap._threads import threads
from chimap._types import MatrixLike, Rows
from chimap._validation import rows_as_fitted
from chimap.data import ArraySource, Source
from chimap.data.doubts import first_look
from chimap.data.units import RowTraits, Units
from chimap.engines import Progress
from chimap.estimators.rows import OfColumns, source_as_fitted, source_to_predict
from chimap.models.attributes import attributes_of
from chimap.models.model import Model
from chimap.models.predict import OutputsOfRows, RowsOfFit, outputs_in_chunks, outputs_in_memory, outputs_of_source
from chimap.models.unassigned import checked_share, is_unassigned, marked, with_shares

P = ParamSpec("P")
R = TypeVar("R")


class Predictor(OfColumns, Protocol):
    """An estimator with a fitted model."""

    units_: Units | None
    n_jobs: int | None

    @property
    def fitted(self) -> OutputsOfRows:
        """The fitted model. Raise NotFittedError if there is none."""
        ...


class ModelEstimator(Predictor, Protocol):
    """An estimator whose model is a ``Model``."""

    @property
    def fitted(self) -> Model:
        """The fitted model. Raise NotFittedError if there is none."""
        ...


# --- outputs


def rows_of_fit(estimator: Predictor) -> RowsOfFit | None:
    """Return what the rows of the fit are like; None if it is not known."""
    if estimator.units_ is None:
        return None
    mass = estimator.mass_
    return estimator.units_, np.zeros(estimator.n_features_in_, np.float32) if mass is None else mass.shares


def doubts_of_new_rows(estimator: Predictor, source: Source) -> Iterator[str]:
    """Yield how some rows of a source are unlike those of the fit."""
    like = rows_of_fit(estimator)
    if like is not None:
        rows = first_look(source_as_fitted(estimator, source))[0]
        yield from like[0].doubts(RowTraits.of(rows, like[1]), source.name)


def outputs_of_rows(self: Predictor, X: MatrixLike) -> np.ndarray:
    """Return f(x) for rows X, (n, t) float64."""
    return _outputs_by(self.fitted, self, X)


def outputs_with_shares(self: ModelEstimator, X: MatrixLike) -> tuple[np.ndarray, np.ndarray]:
    """Return f(x) (n, t) for rows X, and the smallest shares (n,) at which they are unassigned."""
    both = _outputs_by(with_shares(self.fitted), self, X)
    return both[:, :-1], both[:, -1]


def _outputs_by(model: OutputsOfRows, estimator: Predictor, X: MatrixLike) -> np.ndarray:
    source = source_to_predict(estimator, X)
    if source is None:
        rows = rows_as_fitted(estimator, X)
    with threads(estimator.n_jobs):
        if source is not None:
            return outputs_of_source(model, source_as_fitted(estimator, source), like=rows_of_fit(estimator))
        if rows.shape[0] > model.rows_at_once:
            return outputs_of_source(model, ArraySource(rows), like=rows_of_fit(estimator))
        return outputs_in_memory(model, rows, rows_of_fit(estimator))


def predict_source(self: Predictor, source: Source, progress: Progress | None = None) -> np.ndarray:
    """Return the linear outputs f(x) of every row of a source, computed chunk by chunk.

    Parameters
    ----------
    source : Source
        Rows to predict.
    progress : Progress or None, default=None
        Receives the rows predicted.

    Returns
    -------
    ndarray of shape (n, t)
        Outputs in float64.
    """
    model, source = self.fitted, source_as_fitted(self, source)
    with threads(self.n_jobs):
        return outputs_of_source(model, source, progress, rows_of_fit(self))


def predict_chunks(
    self: Predictor, source: Source, progress: Progress | None = None
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the linear outputs of consecutive rows of a source; memory does not grow with its rows.

    Parameters
    ----------
    source : Source
        Rows to predict.
    progress : Progress or None, default=None
        Receives the rows predicted.

    Yields
    ------
    tuple of int and ndarray of shape (rows, t)
        The first row of a chunk, and the outputs of its rows in float64.
    """
    model, source = self.fitted, source_as_fitted(self, source)
    with threads(self.n_jobs):
        yield from outputs_in_chunks(model, source, progress, rows_of_fit(self))


def labels_in_chunks(
    self: ModelEstimator, source: Source, unassigned: float, progress: Progress | None = None
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield linear outputs and labels of consecutive rows of a source; rows like none of the classes are "unassigned".

    Parameters
    ----------
    source : Source
        Rows to predict.
    unassigned : float
        See ``predict``.
    progress : Progress or None, default=None
        Receives the rows predicted.

    Yields
    ------
    tuple of int, ndarray of shape (rows, t) and ndarray of shape (rows,)
        The first row of a chunk, the outputs of its rows in float64, and their labels.
    """
    share, model = checked_share(unassigned), with_shares(self.fitted)
    source = source_as_fitted(self, source)
    with threads(self.n_jobs):
        for start, both in outputs_in_chunks(model, source, progress, rows_of_fit(self)):
            outputs = both[:, :-1]
            labels = self.fitted.answers.predicted(outputs)
            yield start, outputs, marked(labels, is_unassigned(both[:, -1], share))


# --- explanations


def rows_as_read(self: OfColumns, X: MatrixLike) -> Rows:
    """Return rows X as they are given, in the columns of the fit.

    Parameters
    ----------
    X : array, sparse matrix, data frame or source of n rows
        The rows.

    Returns
    -------
    array or sparse matrix of shape (n, bins)
        Their values, before they are normalised.
    """
    return _read(self, X)[0]


def _read(estimator: OfColumns, X: MatrixLike) -> tuple[Rows, int, str]:
    """Return rows in the columns of the fit, as they were given, with their first number and name for errors."""
    source = source_to_predict(estimator, X)
    if source is None:
        return rows_as_fitted(estimator, X), 0, "X"
    source = source_as_fitted(estimator, source)
    return source.block(0, source.n_rows).X, 0, source.name


def forwarded(function: Callable[Concatenate[Model, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return a method that calls a function of the fitted model; rows X and background are read and prepared first."""
    parameters = signature(function)

    @wraps(function)
    def forward(self: Any, *args: P.args, **kwargs: P.kwargs) -> R:
        model: Model = self.fitted
        given = parameters.bind(model, *args, **kwargs)
        for name in {"X", "background"} & given.arguments.keys():
            if given.arguments[name] is not None:
                given.arguments[name] = model.preparation(*_read(self, given.arguments[name]))
        return function(*given.args, **given.kwargs)

    first, *others = parameters.parameters.values()
    shown = parameters.replace(parameters=[first.replace(name="self", annotation=first.empty), *others])
    forward.__signature__ = shown  # type: ignore[attr-defined]
    return forward


# --- attributes


class ShownAttribute:
    """An attribute of the fitted model, shown by the estimator under the same name.

    may_be_none: whether it is None where the model has none, instead of missing.
    """

    def __init__(self, name: str, may_be_none: bool):
        self.name, self.may_be_none = name, may_be_none

    def __get__(self, estimator: Any, owner: type) -> object:
        """Return the attribute; raise AttributeError where the model lacks it, or there is no model."""
        if estimator is None:  # as an attribute that is only annotated; ``dir`` lists it
            raise AttributeError(f"type object {owner.__name__!r} has no attribute {self.name!r}")
        is_fitted = estimator.__sklearn_is_fitted__()
        found: Mapping[str, Any] = attributes_of(estimator.fitted) if is_fitted else {}
        if self.name not in found and not (is_fitted and self.may_be_none):
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}")
        return found.get(self.name)


def show_learned(cls: type, own: Collection[str]) -> None:
    """Let a class of estimators show the attributes of its model that it and its bases annotate, except its ``own``."""
    for base in cls.__mro__:
        for name, kind in vars(base).get("__annotations__", {}).items():
            if name not in own and not hasattr(cls, name):
                setattr(cls, name, ShownAttribute(name, str(kind).endswith("| None]")))
