"""Docstrings of what the reference lists: each parameter is documented, with the default that the signature has."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from types import FunctionType

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

import chimap

from .test_pages import NAMES

ENTRY = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : (.*))?")
DEFAULT = re.compile(r"\bdefault=(.+)$")
# A class may leave the rest of its parameters to others that have them too, with the same defaults.
OF_OTHERS = re.compile(r"[Tt]he other parameters are those of ([^.]*)")


def parameters_in(docstring: str | None) -> dict[str, str]:
    """The type of each parameter of the section Parameters, by name."""
    found, section = {}, ""
    lines = inspect.cleandoc(docstring or "").split("\n")
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if re.fullmatch("-{3,}", below) and not line.startswith(" "):
            section = line
        elif section == "Parameters" and (entry := ENTRY.fullmatch(line)):
            found |= {name.lstrip("*"): entry[2] or "" for name in entry[1].split(", ")}
    return found


def value_of(text: str) -> object:
    """The value that a docstring states as a default."""
    return np.nan if text.strip() in ("nan", 'float("nan")') else ast.literal_eval(text.strip())


def signature_of(function: Callable) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(function).parameters
    return {name: value for name, value in parameters.items() if name not in ("self", "cls")}


def is_documented_above(owner: type, name: str) -> bool:
    """Whether a class that ``owner`` inherits from documents the parameters of this method."""
    for base in owner.__mro__[1:]:
        method = vars(base).get(name)
        function = getattr(method, "__func__", method)
        if isinstance(function, FunctionType) and {*signature_of(function)} <= {*parameters_in(function.__doc__)}:
            return True
    return False


def described() -> Iterator[tuple[str, Callable, str | None]]:
    """(address, what has the signature, its docstring) of all public functions, classes and methods."""
    seen = set()
    for address, thing in NAMES.items():
        if inspect.isfunction(thing):
            yield address, thing, thing.__doc__
        if not inspect.isclass(thing):
            continue
        if not issubclass(thing, Exception):
            yield address, thing, thing.__doc__
        for name in sorted(name for name in dir(thing) if not name.startswith("_")):
            method = inspect.getattr_static(thing, name)
            function = getattr(method, "__func__", method)
            if not isinstance(function, FunctionType) or not function.__module__.startswith("chimap"):
                continue
            if function not in seen and not is_documented_above(thing, name):
                seen.add(function)
                yield f"{function.__module__}.{function.__qualname__}", function, function.__doc__


DESCRIBED = list(described())


def parameters_of_others(docstring: str | None) -> dict[str, str]:
    """What the classes document that a docstring leaves the rest of its parameters to."""
    found: dict[str, str] = {}
    for sentence in OF_OTHERS.findall(docstring or ""):
        for other in re.findall(r"``(\w+)``", sentence):
            theirs = NAMES[f"chimap.{other}"].__doc__
            found = parameters_of_others(theirs) | found | parameters_in(theirs)
    return found


@pytest.mark.parametrize(("function", "docstring"), [pytest.param(f, d, id=a) for a, f, d in DESCRIBED])
def test_each_parameter_is_documented_with_its_default(function, docstring):
    documented, signature = parameters_in(docstring), signature_of(function)
    assert [*documented] == [name for name in signature if name in documented], "in the order of the signature"
    theirs = parameters_of_others(docstring)
    documented = {name: theirs[name] for name in signature if name in theirs} | documented
    assert {*documented} == {*signature}
    for name, parameter in signature.items():
        stated = DEFAULT.search(documented[name])
        if stated and isinstance(parameter.default, str | int | float | bool | None):
            assert value_of(stated[1]) == pytest.approx(parameter.default, nan_ok=True), name


def test_a_wrong_docstring_is_noticed():
    def scaled(X, factor=2.0, power=1):
        """Scale.

        Parameters
        ----------
        X : array
        factor : float, default=3.0
            Of all.
        """

    assert parameters_in(scaled.__doc__) == {"X": "array", "factor": "float, default=3.0"}
    for wrong in (scaled.__doc__, scaled.__doc__.replace("3.0", "2.0"), None):
        with pytest.raises(AssertionError):
            test_each_parameter_is_documented_with_its_default(scaled, wrong)


# Parameters that estimators share with different defaults, and why.
OWN_DEFAULTS = {
    "kernel": "only HistogramClassifier and HistogramRegressor choose one",
    "n_components": "random features by default, 512 of each channel",
    "loss": "LIBSVM and LIBLINEAR have no square loss of classes",
    "alpha": "chosen where the solution at another strength is cheap",
    "memory": "of compiled tables, which follow no rows",
    "max_iter": "L-BFGS iterations, passes of LIBLINEAR, and passes over the rows of an online machine",
    "n_tune_components": "of one kernel, or of each of several channels",
}


def test_estimators_that_share_a_parameter_share_its_default():
    defaults: dict[str, dict[str, list[str]]] = {}
    for thing in NAMES.values():
        is_estimator = inspect.isclass(thing) and issubclass(thing, BaseEstimator)
        if not is_estimator or not issubclass(thing, ClassifierMixin | RegressorMixin):
            continue
        for name, parameter in signature_of(thing).items():
            if parameter.default is not inspect.Parameter.empty:
                defaults.setdefault(name, {}).setdefault(repr(parameter.default), []).append(thing.__name__)
    unequal = {name: kinds for name, kinds in defaults.items() if len(kinds) > 1}
    assert {*unequal} == {*OWN_DEFAULTS}, unequal


def text_of(owner: type, name: str) -> str | None:
    member = vars(owner).get(name)
    return getattr(getattr(member, "__func__", member), "__doc__", None)


def undocumented(cls: type) -> list[str]:
    """The public methods of a class that neither it nor a class that it inherits from documents."""
    kinds = (FunctionType, property, cached_property, classmethod, staticmethod)
    members = {name: member for name, member in vars(cls).items() if name[0] != "_" and isinstance(member, kinds)}
    # a function of another name is the default of a field
    methods = [name for name, member in members.items() if getattr(member, "__name__", name) == name]
    return [name for name in methods if not any(text_of(owner, name) for owner in cls.__mro__)]


def test_methods_are_documented_where_they_are_named_first():
    """A method that overrides another needs no docstring of its own."""
    missing: set[str] = set()
    for found in pkgutil.walk_packages(chimap.__path__, "chimap."):
        if "._" in found.name:
            continue
        try:
            module = import_module(found.name)
        except ImportError:  # of packages that are not installed
            continue
        for owner in vars(module).values():
            if inspect.isclass(owner) and owner.__module__ == found.name and owner.__name__[0] != "_":
                missing |= {f"{found.name}.{owner.__name__}.{name}" for name in undocumented(owner)}
    assert missing == set()
