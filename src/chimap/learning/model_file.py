"""Model files: what a fitted model is made of, as arrays and JSON.

An object is written as the name of its class and its attributes, and only classes listed here are made again, so that
opening a file never runs code that came with it.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chimap import _files
from chimap._validation import DataError
from chimap.fourier import FourierFeatures, SkewedFourierFeatures
from chimap.fourier.projection import Hadamard, Matrix
from chimap.kernels import CATALOGUE as KERNELS
from chimap.kernels import (
    AdditiveKernel,
    DirichletKernel,
    Exponential,
    Gaussian,
    Linear,
    SkewedChi2,
    SkewedIntersection,
)
from chimap.maps import CATALOGUE as MAPS
from chimap.maps import DirichletMap
from chimap.maps.identity import IdentityMap
from chimap.solvers import StrengthScores

_KINDS = (DirichletKernel, Exponential, Gaussian, Linear, SkewedChi2, SkewedIntersection)
_FEATURES = (FourierFeatures, SkewedFourierFeatures, Matrix, Hadamard, IdentityMap, DirichletMap)
_PARTS: dict[str, type] = {cls.__name__: cls for cls in (*MAPS.values(), *_FEATURES, *_KINDS, StrengthScores)}
_DROPPED = ("_moments", "_tables", "_sklearn_output_config")


def _models() -> dict[str, type]:
    from chimap.learning.histogram import HistogramClassifier, HistogramRegressor

    return {cls.__name__: cls for cls in (HistogramClassifier, HistogramRegressor)}


def save(model: Any, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted model; nothing half-written stays. Raises FileExistsError unless ``overwrite``."""
    if Path(path).exists() and not overwrite:
        raise FileExistsError(f"{path} exists; choose another name, or allow overwriting it.")
    from chimap import __version__

    arrays: dict[str, np.ndarray] = {}
    body = _encode(model, "model", arrays)
    _files.write_tensors(path, "model", {"version": __version__, "model": body}, arrays)


def load(path: str | Path) -> Any:
    """A model written by ``save``; runs no code from the file. Raises DataError for any other file."""
    meta, arrays = _files.read_tensors(path, "model")
    try:
        return _decode(meta["model"], arrays)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is damaged: {error!r}.") from error


def _encode(value: Any, place: str, arrays: dict[str, np.ndarray]) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "OUS":
            return {"texts": value.tolist()}
        arrays[place] = value
        return {"array": place}
    if isinstance(value, list | tuple):
        return {"list": [_encode(v, f"{place}.{i}", arrays) for i, v in enumerate(value)]}
    if isinstance(value, dict):
        return {"dict": {k: _encode(v, f"{place}.{k}", arrays) for k, v in value.items()}}
    if isinstance(value, AdditiveKernel):
        return {"kernel": value.name, "gamma": value.gamma, "is_signed": value.is_signed}
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None  # a generator is a seed that was used up; what it drew is in the arrays
    name = type(value).__name__
    if name not in {**_PARTS, **_models()}:
        raise DataError(f"cannot save {place}: a {name} is not part of a model file.")
    if is_dataclass(value):
        state = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
    else:
        state = {k: v for k, v in vars(value).items() if k not in _DROPPED}
    return {"object": name, "state": {k: _encode(v, f"{place}.{k}", arrays) for k, v in state.items()}}


def _decode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if not isinstance(value, dict):
        return value
    if "texts" in value:
        return np.array(value["texts"])
    if "array" in value:
        return arrays[value["array"]]
    if "list" in value:
        return [_decode(v, arrays) for v in value["list"]]
    if "dict" in value:
        return {k: _decode(v, arrays) for k, v in value["dict"].items()}
    if "kernel" in value:
        kernel = KERNELS[value["kernel"]].with_gamma(value["gamma"])
        return kernel.signed() if value["is_signed"] else kernel
    cls = {**_PARTS, **_models()}[value["object"]]
    state = {k: _decode(v, arrays) for k, v in value["state"].items()}
    if is_dataclass(cls):
        return cls(**state)
    made: Any = object.__new__(cls)
    made.__setstate__(state) if hasattr(made, "__setstate__") else vars(made).update(state)
    return made
