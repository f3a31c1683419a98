"""Defaults of options and names of catalogues, read from the source of the package.

The source is parsed, not imported, so that ``--help`` does not load the libraries that the package needs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chimap._types import JSON


_DECLARED_IN = {
    "HistogramModel": "estimators/base.py",
    "KernelLearner": "kernel_learning/estimators.py",
    "MultipleKernelModel": "kernel_learning/estimators.py",
    "Checkpoint": "fit/checkpoint.py",
    "ImageHistograms": "images/histograms.py",
    "SIFT": "images/descriptors/sift.py",
    "MorganCounts": "data/formats/molecules.py",
    "WordCounts": "data/formats/words.py",
    "export_model": "export/files.py",
}


def default(parameter: str, owner: str = "HistogramModel") -> Any:
    """Return the default, a literal, of a parameter of a function or class, or of a field of a dataclass.

    >>> default("n_terms"), default("radius", "MorganCounts"), default("tolerance", "export_model")
    ('auto', 2, 0.001)
    """
    return _defaults(owner)[parameter]


@cache
def names(file: str, catalogue: str = "CATALOGUE") -> tuple[str, ...]:
    """Return the names in a catalogue, a dictionary that a file of the package writes out with its names.

    >>> names("engines/__init__.py", "ENGINES")
    ('local', 'dask')
    """
    catalogued = _assigned(file, catalogue)
    assert isinstance(catalogued, ast.Dict)
    return tuple(ast.literal_eval(key) for key in catalogued.keys if key is not None)


@cache
def constant(file: str, name: str) -> Any:
    """Return a constant, a literal, of a file of the package.

    >>> constant("comparison/entrants.py", "SIZES")
    (256, 1024)
    """
    return ast.literal_eval(_assigned(file, name))


def either(words: Iterable[str]) -> str:
    """Return words as a list to choose from.

    >>> either(("local", "dask", "moon"))
    'local, dask or moon'
    """
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _assigned(file: str, name: str) -> ast.expr:
    """Return what a file assigns to a name first; annotated, or joined to an earlier value, or not."""
    for node in _parsed(file):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if value is not None and any(getattr(target, "id", None) == name for target in targets):
            return value
    raise LookupError(f"{file} assigns nothing to {name}")


@cache
def _defaults(owner: str) -> JSON:
    """Return the defaults that are literals, by name."""
    return {
        name: ast.literal_eval(value)
        for name, value in _declared(owner)
        if value is not None and not any(isinstance(node, ast.Name | ast.Call) for node in ast.walk(value))
    }


def _declared(owner: str) -> Iterable[tuple[str, ast.expr | None]]:
    """Return the parameters of a function or constructor, or the fields of a dataclass, with their defaults."""
    [declaration] = [node for node in _parsed(_DECLARED_IN[owner]) if getattr(node, "name", None) == owner]
    members = declaration.body if isinstance(declaration, ast.ClassDef) else [declaration]
    for member in members:
        if isinstance(member, ast.FunctionDef) and member.name in ("__init__", owner):
            arguments = member.args
            positional = arguments.args[len(arguments.args) - len(arguments.defaults) :]
            parameters = [argument.arg for argument in (*positional, *arguments.kwonlyargs)]
            return zip(parameters, (*arguments.defaults, *arguments.kw_defaults), strict=True)
    fields = [member for member in members if isinstance(member, ast.AnnAssign)]
    return [(ast.unparse(field.target), field.value) for field in fields]


@cache
def _parsed(file: str) -> list[ast.stmt]:
    return ast.parse((Path(__file__).parents[2] / file).read_text(encoding="utf-8")).body
