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


_DECLARED_IN = ("histogram.py", "base.py")  # searched in this order for the constructor with a kernel


def default(parameter: str) -> Any:
    """Return the default, a literal, of a parameter of ``HistogramClassifier``.

    >>> default("n_terms")
    'auto'
    """
    return _defaults()[parameter]


@cache
def names(file: str, catalogue: str = "CATALOGUE") -> tuple[str, ...]:
    """Return the names in a catalogue, a dictionary that a file of the package writes out with its names.

    >>> names("engines/__init__.py", "ENGINES")
    ('local', 'dask')
    """
    path = Path(__file__).parents[2] / file
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign | ast.AugAssign):
            targets = [node.target]
        else:
            continue
        if isinstance(node.value, ast.Dict) and [ast.unparse(target) for target in targets] == [catalogue]:
            return tuple(ast.literal_eval(key) for key in node.value.keys if key is not None)
    raise LookupError(f"{path} writes out no dictionary {catalogue}")


def either(words: Iterable[str]) -> str:
    """Return words as a list to choose from.

    >>> either(("local", "dask", "moon"))
    'local, dask or moon'
    """
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


@cache
def _defaults() -> JSON:
    folder = Path(__file__).parents[2] / "estimators"
    for name in _DECLARED_IN:
        for node in ast.walk(ast.parse((folder / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                keyword_only = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                positional = node.args.args[len(node.args.args) - len(node.args.defaults) :]
                pairs = [*zip(positional, node.args.defaults, strict=True), *keyword_only]
                defaults = {
                    argument.arg: ast.literal_eval(value) for argument, value in pairs if value is not None
                }
                if "kernel" in defaults:
                    return defaults
    raise LookupError("no estimator declares a parameter kernel")
