"""What estimators forward to their fitted model, so that each has one table of it and no code.

    predict_source, explain = forwarded(models.predict.predict_source), forwarded(models.explain.explain)
    save, load = ...

``ShownAttribute`` shows an attribute of the model under the name of the estimator's annotation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np

from chimap._types import MatrixLike
from chimap._validation import rows_as_fitted
from chimap.data import ArraySource, Source
from chimap.models.attributes import attributes_of
from chimap.models.model import Model
from chimap.models.predict import outputs_in_memory, outputs_of_source
from chimap.models.predictor import Predictor, RowScorer
from chimap.models.schema import ATTRIBUTES, RowSchema
from chimap.models.unassigned import with_shares

M = TypeVar("M", bound=Predictor)
P = ParamSpec("P")
R = TypeVar("R")


class PredictingEstimator(Protocol):
    """An estimator with a fitted model."""

    @property
    def schema(self) -> RowSchema:
        """The rows that the model takes. Raise NotFittedError if there is no model."""
        ...

    @property
    def fitted(self) -> Predictor:
        """The fitted model. Raise NotFittedError if there is none."""
        ...


class ModelEstimator(PredictingEstimator, Protocol):
    """An estimator whose model is a ``Model``."""

    @property
    def fitted(self) -> Model:
        """The fitted model. Raise NotFittedError if there is none."""
        ...


def outputs_of_rows(self: PredictingEstimator, X: MatrixLike) -> np.ndarray:
    """Return f(x) for rows X, (n, t) float64."""
    return _outputs_by(None, self, X)


def outputs_with_shares(self: ModelEstimator, X: MatrixLike) -> tuple[np.ndarray, np.ndarray]:
    """Return f(x) (n, t) for rows X, and the smallest shares (n,) at which they are unassigned."""
    both = _outputs_by(with_shares(self.fitted), self, X)
    return both[:, :-1], both[:, -1]


def _outputs_by(scorer: RowScorer | None, estimator: PredictingEstimator, X: MatrixLike) -> np.ndarray:
    model = estimator.fitted
    source = model.schema.source_of(X)
    if source is None:
        rows = rows_as_fitted(estimator, X)
        if rows.shape[0] <= (scorer or model).rows_at_once:
            return outputs_in_memory(model, rows, scorer)
        source = ArraySource(rows)
    return outputs_of_source(model, source, scorer=scorer)


def source_of_rows(estimator: PredictingEstimator, X: MatrixLike) -> Source:
    """Return rows of any kind as a source; arrays and data frames are checked as scikit-learn checks them."""
    source = estimator.schema.source_of(X)
    return ArraySource(rows_as_fitted(estimator, X), name="X") if source is None else source


def forwarded(function: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return a method that calls a function of the fitted model; rows X and background become sources first."""
    parameters = signature(function)

    @wraps(function)
    def forward(self: Any, *args: P.args, **kwargs: P.kwargs) -> R:
        given = parameters.bind(self.fitted, *args, **kwargs)
        for name in {"X", "background"} & given.arguments.keys():
            if given.arguments[name] is not None:
                given.arguments[name] = source_of_rows(self, given.arguments[name])
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
        found: Mapping[str, object] = {}
        if is_fitted:  # batches know their columns before their weights are solved for
            found = estimator.schema.attributes if self.name in ATTRIBUTES else attributes_of(estimator.fitted)
        if self.name not in found and not (is_fitted and self.may_be_none):
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}")
        return found.get(self.name)


def show_learned(cls: type, own: Collection[str]) -> None:
    """Let a class of estimators show the attributes of its model that it and its bases annotate, except its ``own``."""
    for base in cls.__mro__:
        for name, kind in vars(base).get("__annotations__", {}).items():
            if name not in own and not hasattr(cls, name):
                setattr(cls, name, ShownAttribute(name, str(kind).endswith("| None]")))
