"""Every example of every docstring and of the pages of docs/ runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import chimap

MODULES = sorted(m.name for m in pkgutil.walk_packages(chimap.__path__, "chimap.") if not m.name.endswith("__main__"))

EXTRAS = {"torch"}  # what the test extra leaves out, being heavy

PAGES = sorted((Path(__file__).parents[1] / "docs").rglob("*.md"))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_pages(page):
    assert doctest.testfile(str(page), module_relative=False).failed == 0


@pytest.mark.parametrize("name", ["chimap", *MODULES])
def test_examples(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name not in EXTRAS:
            raise
        pytest.skip(f"needs {missing.name}")
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
