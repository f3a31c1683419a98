"""Every example of every docstring runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import chimap

MODULES = sorted(
    m.name for m in pkgutil.walk_packages(chimap.__path__, "chimap.") if not m.name.endswith("__main__")
)


@pytest.mark.parametrize("name", ["chimap", *MODULES])
def test_examples(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
