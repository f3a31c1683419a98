"""Pipelines of scikit-learn in model files, and the estimators of scikit-learn that their steps may be."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from sklearn.utils.validation import check_is_fitted

from chimap._errors import InputError
from chimap._types import JSON
from chimap._validation import DataError
from chimap.model_files import attributes

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.pipeline import Pipeline


_COLUMNS: JSON = {"n_features_in_": int}
_LINEAR = _COLUMNS | {"coef_": np.ndarray, "intercept_": np.ndarray | float}
_CLASSES = _LINEAR | {"classes_": np.ndarray}
_PIPELINE = "Pipeline"
_MISSING = object()

Encode = Callable[[object, str, dict[str, np.ndarray]], object]
Decode = Callable[[object, dict[str, np.ndarray]], object]


@cache
def learned_by_step() -> dict[type, JSON]:
    """Return scikit-learn's estimators that can be written, with what each has learned.

    They are linear, so that their predictions depend on plain arrays alone. They are imported here, at the first file
    with such a step, because they load half of scikit-learn.
    """
    from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
    from sklearn.preprocessing import LabelBinarizer, MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler
    from sklearn.svm import LinearSVC, LinearSVR

    return {
        Normalizer: _COLUMNS,
        MaxAbsScaler: _COLUMNS | {"scale_": np.ndarray},
        MinMaxScaler: _COLUMNS | {"scale_": np.ndarray, "min_": np.ndarray},
        StandardScaler: _COLUMNS | {"scale_": np.ndarray | None, "mean_": np.ndarray | None},
        LabelBinarizer: {"y_type_": str, "sparse_input_": bool, "classes_": np.ndarray},
        LogisticRegression: _CLASSES,
        LinearRegression: _LINEAR,
        Ridge: _LINEAR,
        RidgeClassifier: _LINEAR | {"_label_binarizer": LabelBinarizer},
        LinearSVC: _CLASSES,
        LinearSVR: _LINEAR,
    }


def is_step(value: object) -> bool:
    """Whether the value is a pipeline, or an estimator of ``learned_by_step``."""
    cls = type(value)
    return cls.__module__.startswith("sklearn.") and (_is_pipeline(value) or cls in learned_by_step())


def _is_pipeline(value: object) -> TypeGuard[Pipeline]:
    return type(value).__name__ == _PIPELINE and type(value).__module__ == "sklearn.pipeline"


def encoded(value: BaseEstimator, place: str, arrays: dict[str, np.ndarray], encode: Encode) -> JSON:
    """Return a step in JSON form.

    Raises DataError for a pipeline with a cache, and for steps that cannot be written.
    """
    state = {k: v for k, v in vars(value).items() if k != "_sklearn_output_config"}
    if _is_pipeline(value):
        if value.memory is not None:
            raise DataError(f"cannot save {place}: a pipeline with memory= keeps a cache. Set memory=None.")
        for name, step in value.steps:
            if not (step is None or isinstance(step, str)):
                _check(name, step)
        state["steps"] = [list(step) for step in value.steps]
    body = {k: encode(v, f"{place}.{k}", arrays) for k, v in state.items()}
    return {"step": type(value).__name__, "state": body}


def _check(name: str, step: object) -> None:
    """Raise DataError for a step of another package."""
    if not is_step(step) and not type(step).__module__.startswith("chimap."):
        others = ", ".join(cls.__name__ for cls in learned_by_step())
        raise DataError(
            f"cannot save step {name!r}: a {type(step).__name__} is not part of a model file. Steps are transformers "
            f"and models of chimap, and {others}; save other steps separately."
        )


def decoded(value: JSON, arrays: dict[str, np.ndarray], decode: Decode) -> object:
    """Restore a step.

    Raises KeyError for a class that cannot be a step, and ValueError for a state that does not fit the class.
    """
    name = value["step"]
    state = {k: decode(v, arrays) for k, v in value["state"].items()}
    if name == _PIPELINE:
        return _decoded_pipeline(state)
    cls = {cls.__name__: cls for cls in learned_by_step()}[name]
    for wanted in inspect.signature(cls).parameters:
        if wanted not in state:
            raise InputError(f"{name} has no {wanted}; it was written with another version of scikit-learn")
    for wanted, kind in learned_by_step()[cls].items():
        if not attributes.is_of(state.get(wanted, _MISSING), kind):
            raise InputError(f"{name} has no {wanted}, or it is of another kind")
    _check_arrays(name, state)
    step: BaseEstimator = object.__new__(cls)
    vars(step).update({k: v for k, v in state.items() if not hasattr(cls, k)})
    step._validate_params()
    return step


def _decoded_pipeline(state: JSON) -> Pipeline:
    from sklearn.pipeline import Pipeline

    steps = state.pop("steps")
    if not all(isinstance(step, list) and len(step) == 2 and isinstance(step[0], str) for step in steps):
        raise InputError("the steps of a Pipeline are not pairs of name and step")
    pipeline = Pipeline([(name, step) for name, step in steps])
    vars(pipeline).update({k: v for k, v in state.items() if not hasattr(Pipeline, k)})
    pipeline._validate_params()
    pipeline._validate_steps()
    for _, step in pipeline.steps:
        if not (step is None or isinstance(step, str)):
            check_is_fitted(step)
    return pipeline


def _check_arrays(name: str, state: JSON) -> None:
    """Raise ValueError for learned arrays that do not fit the columns or classes, or that are not finite."""
    n, classes = state.get("n_features_in_"), state.get("classes_")
    if n is not None and n < 1:
        raise InputError(f"{name} has {n} columns")
    learned = {
        k: np.asarray(state[k]) for k in ("coef_", "intercept_", "scale_", "mean_", "min_") if state.get(k) is not None
    }
    for key, values in learned.items():
        n_columns = None if key == "intercept_" else values.shape[-1]
        if values.dtype.kind != "f" or not np.isfinite(values).all() or n_columns not in (None, n):
            raise InputError(
                f"{name}.{key} has shape {values.shape} where {n} columns are expected, or holds values that are "
                "not finite numbers"
            )
    if "coef_" in learned and classes is not None:
        n_outputs = 1 if len(classes) == 2 else len(classes)
        if learned["coef_"].shape[0] != n_outputs or learned["intercept_"].size not in (1, n_outputs):
            raise InputError(f"{name} has weights of {learned['coef_'].shape[0]} outputs but {len(classes)} classes")
