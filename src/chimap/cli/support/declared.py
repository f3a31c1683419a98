"""Defaults of options as the estimators declare them: read from their source, since ``--help`` answers before any of
the libraries are imported that an estimator needs."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chimap._types import JSON


_DECLARED_IN = ("histogram.py", "base.py")  # the first that has a constructor of models of histograms


def default(parameter: str) -> Any:
    """The default of a parameter of ``HistogramClassifier``, a literal.

    >>> default("n_terms")
    'auto'
    """
    return _defaults()[parameter]


@cache
def _defaults() -> JSON:
    folder = Path(__file__).parents[2] / "estimators"
    for name in _DECLARED_IN:
        for node in ast.walk(ast.parse((folder / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                words = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                usual = node.args.args[len(node.args.args) - len(node.args.defaults) :]
                pairs = [*zip(usual, node.args.defaults, strict=True), *words]
                defaults = {
                    argument.arg: ast.literal_eval(value) for argument, value in pairs if value is not None
                }
                if "kernel" in defaults:
                    return defaults
    raise LookupError("no estimator declares its kernel")
