"""Read the types of attributes from the annotations of their classes, and check the attributes of saved objects.

A class states its parameters in the signature of its constructor, or as the fields of a dataclass, and its learned
attributes by annotations in its body. Every stated attribute must be in a file, unless it has a default or is
``Sometimes``. A file cannot replace anything that a class has under a name that it does not state, such as a method.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Union

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from chimap._errors import InputError
from chimap._types import JSON, SOMETIMES, Shape

# What a file may hold where an annotation names a type for type checkers only, or one of another package.
_ARRAYS = np.ndarray | sp.csr_matrix | sp.csr_array | list | tuple
_IN_FILES: JSON = {
    "np": np,
    "npt": npt,
    "ArrayLike": _ARRAYS,
    "MatrixLike": _ARRAYS,
    "CSR": sp.csr_matrix | sp.csr_array,
    "Rows": np.ndarray | sp.csr_matrix | sp.csr_array,
    "Scoring": str | None,
    "RandomState": int | None,
    "ClassWeight": str | dict | None,
    "BaseCrossValidator": None,
}


NOT_SAVED = ("_moments", "_validation", "_batches", "_stale", "_tables", "_made", "_sklearn_output_config")
"""Attributes that no file holds, because they are recomputed or were needed by the fit only."""


_ANYTHING = Any


class Stated(NamedTuple):
    """The statement of a class about an attribute.

    ``kind`` is its annotation, ``may_lack`` whether a file may lack it, and ``is_learned`` whether the fit sets it.
    """

    kind: object
    may_lack: bool
    is_learned: bool


def check(cls: type, state: JSON, known: tuple[type, ...]) -> None:
    """Check the state of an object of this class: all stated attributes must be there, and of the stated kind.

    Attributes that no file holds are removed from it. ``known`` are all classes that files hold; annotations may name
    them, and their base classes, without importing them. Raises ValueError naming the attribute.
    """
    stated = stated_by(cls, known)
    for name in [*state]:
        if name in NOT_SAVED or (name not in stated and hasattr(cls, name)):
            del state[name]
    is_template = not any(stated[name].is_learned for name in state if name in stated)
    for name, (kind, may_lack, is_learned) in stated.items():
        if name in state:
            _check_value(f"{cls.__name__}.{name}", state[name], kind)
            if (is_learned or is_dataclass(cls)) and _is_template(state[name], known):
                raise InputError(f"{cls.__name__}.{name} is not fitted")
        elif not may_lack and not (is_learned and is_template):
            raise InputError(f"{cls.__name__} has no {name}")


def _check_value(where: str, value: object, kind: object) -> None:
    if is_of(value, kind):
        return
    is_short = isinstance(value, str | int | float | NoneType)
    description = f"{value!r:.40}" if is_short else f"a {type(value).__name__}"
    raise InputError(f"{where} is {description}, where {inspect.formatannotation(kind)} is expected")


def _is_template(value: object, known: tuple[type, ...]) -> bool:
    """Whether the value is, or holds, an estimator without its learned attributes."""
    if isinstance(value, list | tuple):
        return any(_is_template(item, known) for item in value)
    cls: type = type(value)
    if not hasattr(cls, "get_params") or cls not in known:
        return False
    stated = stated_by(cls, known)
    learned = {name for name, statement in stated.items() if statement.is_learned and not statement.may_lack}
    return bool(learned) and not any(hasattr(value, name) for name in learned)


@cache
def stated_by(cls: type, known: tuple[type, ...]) -> dict[str, Stated]:
    """Return the attributes that a class states, by name."""
    names = {base.__name__: base for known_class in known for base in known_class.__mro__} | _IN_FILES
    hints: JSON = {}
    for base in reversed(cls.__mro__):
        hints |= {name: hint for name, hint in _hints(base, names).items() if not _is_code(hint)}
    if is_dataclass(cls):
        return {
            field.name: Stated(
                hints.get(field.name, object),
                field.default is not MISSING or field.default_factory is not MISSING,
                False,
            )
            for field in fields(cls)
            if field.init
        }
    is_estimator = hasattr(cls, "get_params")
    stated = {
        name: Stated(hint, SOMETIMES in _notes(hint) or hasattr(cls, name), is_estimator)
        for name, hint in hints.items()
        if name not in NOT_SAVED
    }
    return stated | (_settings(cls, names) if is_estimator else {})


@cache
def shapes_of(cls: type, known: tuple[type, ...]) -> dict[str, Shape]:
    """Return the shapes that a class states beside the annotations of its arrays, by name of the attribute."""
    return {
        name: shape
        for name, stated in stated_by(cls, known).items()
        for shape in _notes(stated.kind)
        if isinstance(shape, Shape)
    }


def _settings(cls: type, names: JSON) -> dict[str, Stated]:
    """Return the parameters of the constructor of an estimator, which it keeps unchanged."""
    constructor = cls.__init__  # type: ignore[misc]
    if not inspect.isfunction(constructor):
        return {}
    module = vars(sys.modules[constructor.__module__])
    hints = typing.get_type_hints(constructor, module, names, include_extras=True)
    return {name: Stated(hints[name], False, False) for name in inspect.signature(cls).parameters if name in hints}


def _hints(cls: type, names: JSON) -> JSON:
    """Return the annotations in the body of a class, without those of its bases."""
    annotations = vars(cls).get("__annotations__", {})
    if cls.__module__.partition(".")[0] != "chimap" or not annotations:
        return {}
    holder = type(cls.__name__, (), {"__annotations__": annotations, "__module__": cls.__module__})
    return typing.get_type_hints(holder, vars(sys.modules[cls.__module__]), names, include_extras=True)


def _is_code(hint: object) -> bool:
    """Whether an annotation is a ClassVar or a Callable, which no file holds, or Any, which allows every value."""
    return hint is _ANYTHING or typing.get_origin(hint) in (ClassVar, Callable)


def _notes(hint: object) -> tuple[object, ...]:
    return tuple(getattr(hint, "__metadata__", ()))


def is_of(value: object, kind: object) -> bool:
    """Whether a value, as read from a file, is of the kind that an annotation states.

    >>> is_of([1, 2], tuple[int, ...]), is_of(True, int), is_of(1, float), is_of({"a": None}, dict[str, str])
    (True, False, True, False)
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind in (_ANYTHING, object):
        return True
    if origin is Annotated:
        # Noted kinds are stricter than the type for the type checker.
        return all(
            is_of(value, note)
            for note in [n for n in inner[1:] if n != SOMETIMES and not isinstance(n, Shape)] or inner[:1]
        )
    if origin in (Union, UnionType):
        return any(is_of(value, member) for member in inner)
    if origin is Literal:
        return value in inner
    if kind is None or kind is NoneType:
        return value is None
    if kind in (float, int):
        return isinstance(value, int | kind) and not isinstance(value, bool)
    if kind is bool:
        return isinstance(value, int) and value in (0, 1)  # flags may be numbers too
    whole = origin or kind
    if not isinstance(whole, type):
        return False
    if issubclass(whole, Mapping):
        return isinstance(value, dict) and all(is_of(item, inner[1]) for item in value.values() if inner)
    if issubclass(whole, Sequence) and whole is not str:
        return _is_sequence(value, whole, inner)
    if getattr(whole, "_is_protocol", False):
        return not isinstance(value, type) and all(_has(value, name) for name in _members(whole))
    return isinstance(value, whole)


def _is_sequence(value: object, kind: type, inner: tuple[object, ...]) -> bool:
    """Whether the value fits the annotation of a list or tuple.

    Files do not tell lists from tuples. An array of one axis also fits if the items may be numbers.
    """
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "iuf" and (not inner or inner[0] in (int, float))
    if not isinstance(value, list | tuple):
        return False
    if issubclass(kind, tuple) and inner and inner[-1] is not Ellipsis:
        return len(value) == len(inner) and all(is_of(v, k) for v, k in zip(value, inner, strict=True))
    return all(is_of(item, inner[0]) for item in value) if inner else True


def _has(value: object, name: str) -> bool:
    """Whether the value has the attribute, or its class says that it does once it is fitted."""
    annotated = any(name in vars(base).get("__annotations__", {}) for base in type(value).__mro__)
    return annotated or hasattr(type(value), name) or hasattr(value, name)


def _members(protocol: type) -> frozenset[str]:
    """Return the names that an object must have to satisfy a protocol."""
    bases = [base for base in protocol.__mro__ if getattr(base, "_is_protocol", False)]
    names = {name for base in bases for name in [*vars(base), *vars(base).get("__annotations__", {})]}
    return frozenset(name for name in names if not name.startswith(("__", "_abc", "_is_")))
