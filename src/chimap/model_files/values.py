"""Objects as JSON and arrays, the content of model files, and the registry of classes that can be restored.

An object is written as the name of its class and its attributes. Only registered classes of the package are restored,
so opening a file never runs code that came with it. Classes that this module can import are registered here; folders
that import this module register their classes when they are imported.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np
import scipy.sparse as sp

from chimap import _arrays, _loops
from chimap._catalogue import at_address
from chimap._errors import InputError
from chimap._types import JSON
from chimap._validation import DataError
from chimap.data.overlap import TrainingMass
from chimap.data.reading import READINGS, Reading
from chimap.data.units import Quantiles, Units
from chimap.kernels import CATALOGUE as KERNELS
from chimap.kernels import (
    AdditiveKernel,
    Anisotropic,
    ArccosKernel,
    Exponential,
    Gaussian,
    Kernel,
    Linear,
    MinMax,
    OnColumns,
    PQKernel,
    Product,
    SkewedChi2,
    SkewedIntersection,
    Sum,
    as_kernel,
)
from chimap.losses import CATALOGUE as LOSSES
from chimap.losses import Observed
from chimap.model_files import attributes, pipelines, restoring

_FEWEST_ROWS = 2048  # below it, the table of the levels is no smaller than the numbers
_N_LEVELS = 256


def coded_by_levels(values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return codes (n, d), uint8, and the levels (d, L) that they number in each column; None for other arrays.

    The argument is a matrix of floats.

    >>> codes, levels = coded_by_levels(np.tile([[0.5, 2.0], [0.25, 2.0]], (2000, 1)))
    >>> levels.tolist(), bool((decoded_by_levels(codes, levels)[:2] == [[0.5, 2.0], [0.25, 2.0]]).all())
    ([[0.5, 0.25], [2.0, 0.0]], True)
    """
    if values.ndim != 2 or values.shape[0] < _FEWEST_ROWS or not values.shape[1] or values.dtype not in _arrays.FLOATS:
        return None
    bits = np.ascontiguousarray(_arrays.float_bits(np.ascontiguousarray(values)))
    levels = np.zeros((values.shape[1], _N_LEVELS), bits.dtype)
    codes = np.empty(values.shape, np.uint8)
    most = _loops.codes_of_levels(bits, levels, codes)
    return (codes, levels[:, :most].view(values.dtype)) if most else None


def decoded_by_levels(codes: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the matrix of these codes. Raises ValueError for codes beyond the levels, or of other columns."""
    if codes.ndim != 2 or levels.ndim != 2 or codes.shape[1] != levels.shape[0] or codes.dtype != np.uint8:
        raise InputError(f"codes {codes.shape} of {codes.dtype} do not belong to levels {levels.shape}")
    if codes.max(initial=0) >= levels.shape[1]:
        raise InputError(f"a code of {codes.max()} is beyond the {levels.shape[1]} levels")
    return np.asarray(levels[np.arange(levels.shape[0]), codes])


_classes: MutableMapping[str, type] = ChainMap({}, READINGS)
_addresses: dict[str, str] = {}


def register(*classes: type, agreeing: Callable[[JSON, dict[str, int]], restoring.Agreeing] | None = None) -> None:
    """Let objects of these classes be written to model files and restored from them.

    ``agreeing`` says what must agree in a state besides the shapes of its arrays; see ``restoring``.
    """
    _classes.update({cls.__name__: cls for cls in classes})
    if agreeing is not None:
        restoring.AGREEMENTS.update({cls.__name__: agreeing for cls in classes})


register(Linear, MinMax, PQKernel, SkewedChi2, SkewedIntersection, ArccosKernel, Exponential, Gaussian, Anisotropic)
register(OnColumns, Sum, Product)
register(*LOSSES.values(), Observed, TrainingMass, Quantiles, Units)


_named: list[str] = []


def register_named(*held: Callable[..., object]) -> None:
    """Name classes and functions that estimators hold, and model files write as the name of a kernel."""
    _named.extend(map(_named_as, held))


def _named_as(held: Callable[..., object]) -> str:
    return f"{held.__module__}.{held.__qualname__}"


register_named(AdditiveKernel, *(each.signature_function for each in KERNELS.values()))
register_named(*(each.spectrum_function for each in KERNELS.values()))


def register_addresses(addresses: Mapping[str, str]) -> None:
    """Name the addresses, "package.module:name", of classes that register themselves when they are imported."""
    _addresses.update(addresses)


def _folders() -> list[str]:
    """Return the addresses of the folders of the package that may register classes."""
    modules = iter_modules([str(Path(__file__).parents[1])])
    return [f"chimap.{folder.name}" for folder in modules if folder.ispkg and folder.name != "cli"]


def trusted_types() -> tuple[str, ...]:
    """Return the addresses of all classes and functions that estimators hold, sorted: what skops may load."""
    for folder in _folders():
        import_module(folder)
    for address in _addresses.values():
        at_address(address)
    return tuple(sorted({*_named, *map(_named_as, _classes.values())}))


def _class_of(name: str) -> type:
    """Return the registered class with this name. Raises KeyError for other names."""
    # Its folder, which registers it, may not be imported yet, for example if ``load`` opens a model of images.
    for folder in _folders():
        if name not in _classes and name not in _addresses:
            import_module(folder)
    if name not in _classes and name in _addresses:
        at_address(_addresses[name])
    return _classes[name]


def encode(value: object, place: str, arrays: dict[str, np.ndarray]) -> object:
    """Return a value in JSON form; its arrays go into ``arrays``, under names that begin with ``place``.

    What JSON has no form for becomes an object, of which one key is in ``_DECODERS``.
    """
    match value:
        case None | bool() | int() | float() | str():
            return value
        case np.generic():
            return value.item()
        case np.ndarray() if value.dtype.kind in "OUS":
            return {"objects" if value.dtype.kind == "O" else "texts": value.tolist()}
        case np.ndarray() if (coded := coded_by_levels(value)) is not None:
            return {"coded": encode(list(coded), place, arrays)}
        case np.ndarray():
            arrays[place] = value
            return {"array": place}
        case sp.spmatrix() | sp.sparray():
            rows = _arrays.as_csr(value)
            parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
            return {"csr": list(rows.shape), "parts": encode(parts, place, arrays)}
        case slice():
            return {"slice": [value.start, value.stop, value.step]}
        case list() | tuple():
            return {"list": [encode(v, f"{place}.{i}", arrays) for i, v in enumerate(value)]}
        case dict() if all(isinstance(k, str) for k in value):
            return {"dict": {k: encode(v, f"{place}.{k}", arrays) for k, v in value.items()}}
        case dict():  # JSON knows texts as keys only, and labels or strengths may be numbers
            return {"pairs": [encode(pair, f"{place}.{i}", arrays) for i, pair in enumerate(value.items())]}
        case Kernel() if (by_name := value.by_name) is not None:
            return by_name
        case np.random.RandomState() | np.random.Generator():
            return None  # a generator is only needed by the fit; the numbers that it drew are in the arrays
    if pipelines.is_step(value):
        return pipelines.encoded(value, place, arrays, encode)
    return _encoded_object(value, place, arrays)


def _encoded_object(value: object, place: str, arrays: dict[str, np.ndarray]) -> JSON:
    class_name = type(value).__name__
    if _classes.get(class_name) is not type(value):
        raise DataError(
            f"cannot save {place}: a {class_name} is not part of a model file, which holds arrays, plain values and "
            "objects of chimap. Give the estimator one of these instead; pickle keeps any object, but runs its code."
        )
    if is_dataclass(value):
        state = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
    else:
        kept: JSON = value.__getstate__() or {}  # type: ignore[assignment]
        state = {k: v for k, v in kept.items() if k not in attributes.NOT_SAVED}
    return {"object": class_name, "state": {k: encode(v, f"{place}.{k}", arrays) for k, v in state.items()}}


def decode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return the value that ``encode`` was given. It runs no code that came with the file."""
    if not isinstance(value, dict):
        return value
    key = next((key for key in _DECODERS if key in value), "object")
    return _DECODERS[key](value, arrays)


def _csr(value: JSON, arrays: dict[str, np.ndarray]) -> sp.csr_matrix:
    """Return a CSR matrix. Raises ValueError if its parts do not agree."""
    parts = decode(value["parts"], arrays)
    rows = sp.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(value["csr"]))
    rows.check_format(full_check=True)
    return rows


def _slice(value: JSON, arrays: dict[str, np.ndarray]) -> slice:
    """Return a range of columns. Raises ValueError for ends that are not whole numbers."""
    ends = value["slice"]
    if not all(attributes.is_of(end, int | None) for end in ends):
        raise InputError(f"a range of columns has start, stop and step {ends}, which must be whole numbers")
    return slice(*ends)


def _object(value: JSON, arrays: dict[str, np.ndarray]) -> object:
    """Return an object of a registered class, once its state is checked."""
    cls = _class_of(value["object"])
    state = {k: decode(v, arrays) for k, v in value["state"].items()}
    restoring.check(cls, state, (*_classes.values(), Kernel, Reading))
    if is_dataclass(cls):
        return cls(**state)
    restored: object = object.__new__(cls)
    restored.__setstate__(state) if hasattr(restored, "__setstate__") else vars(restored).update(state)
    if hasattr(restored, "_check_parameters"):
        restored._check_parameters()
    return restored


_DECODERS: dict[str, Callable[[JSON, dict[str, np.ndarray]], object]] = {
    "texts": lambda value, arrays: np.array(value["texts"]),
    "objects": lambda value, arrays: np.array(value["objects"], dtype=object),
    "array": lambda value, arrays: arrays[value["array"]],
    "coded": lambda value, arrays: decoded_by_levels(*decode(value["coded"], arrays)),
    "csr": _csr,
    "slice": _slice,
    "list": lambda value, arrays: [decode(v, arrays) for v in value["list"]],
    "dict": lambda value, arrays: {k: decode(v, arrays) for k, v in value["dict"].items()},
    "pairs": lambda value, arrays: dict(decode(pair, arrays) for pair in value["pairs"]),
    "kernel": lambda value, arrays: as_kernel(str(value["kernel"])).restored(value),
    "step": lambda value, arrays: pipelines.decoded(value, arrays, decode),
    "object": _object,
}
