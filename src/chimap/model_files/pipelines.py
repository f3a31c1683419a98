"""Pipelines of scikit-learn in model files, and those of its estimators that steps may be."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelBinarizer, MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from chimap._types import JSON
from chimap._validation import DataError

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


STEPS: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        Normalizer,
        MaxAbsScaler,
        MinMaxScaler,
        StandardScaler,
        LabelBinarizer,
        LogisticRegression,
        LinearRegression,
        Ridge,
        RidgeClassifier,
        LinearSVC,
        LinearSVR,
    )
}
"""scikit-learn's estimators that are written: linear ones, whose predictions are of plain arrays alone."""

Encode = Callable[[object, str, dict[str, np.ndarray]], object]
Decode = Callable[[object, dict[str, np.ndarray]], object]


def is_step(value: object) -> bool:
    """Whether it is a pipeline, or one of ``STEPS``."""
    return type(value) is Pipeline or STEPS.get(type(value).__name__) is type(value)


def encoded(value: BaseEstimator, place: str, arrays: dict[str, np.ndarray], encode: Encode) -> JSON:
    """A step as JSON holds it. Raises DataError for a pipeline that keeps a cache, and for steps that no file holds."""
    state = {k: v for k, v in vars(value).items() if k != "_sklearn_output_config"}
    if isinstance(value, Pipeline):
        if value.memory is not None:
            raise DataError(f"cannot save {place}: a pipeline with memory= keeps a cache. Set memory=None.")
        for name, step in value.steps:
            if not (step is None or isinstance(step, str)):
                _check(name, step)
        state["steps"] = [list(step) for step in value.steps]
    body = {k: encode(v, f"{place}.{k}", arrays) for k, v in state.items()}
    return {"step": type(value).__name__, "state": body}


def _check(name: str, step: object) -> None:
    """Refuse steps of other packages with a remedy."""
    if not is_step(step) and not type(step).__module__.startswith("chimap."):
        raise DataError(
            f"cannot save step {name!r}: a {type(step).__name__} is not part of a model file. Steps are transformers "
            f"and models of chimap, and {', '.join(STEPS)}; save the other steps on their own."
        )


def decoded(value: JSON, arrays: dict[str, np.ndarray], decode: Decode) -> object:
    """The step again. Raises KeyError for a class that is none, ValueError for a state that is not of it."""
    name = value["step"]
    state = {k: decode(v, arrays) for k, v in value["state"].items()}
    if name == Pipeline.__name__:
        return _decoded_pipeline(state)
    cls = STEPS[name]
    wanted = set(inspect.signature(cls).parameters)
    if not wanted <= set(state):
        raise ValueError(
            f"{name} has no {sorted(wanted - set(state))[0]}; it was written by another scikit-learn"
        )
    _check_weights(name, state)
    made: object = object.__new__(cls)
    vars(made).update(state)
    return made


def _decoded_pipeline(state: JSON) -> Pipeline:
    steps = state.pop("steps")
    if not all(isinstance(step, list) and len(step) == 2 and isinstance(step[0], str) for step in steps):
        raise ValueError("the steps of a Pipeline are not pairs of name and step")
    made = Pipeline([(name, step) for name, step in steps])
    vars(made).update(state)
    return made


def _check_weights(name: str, state: JSON) -> None:
    """Refuse weights that are not of the number of columns."""
    coef, n = state.get("coef_"), state.get("n_features_in_")
    if isinstance(coef, np.ndarray) and (coef.dtype.kind != "f" or coef.shape[-1] != n):
        raise ValueError(f"{name}.coef_ has shape {coef.shape}, of {n} columns")
