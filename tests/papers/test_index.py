"""The index of methods of papers: each entry names what is there, and nothing here is without an entry."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import chimap
from chimap import papers
from chimap.model_files import values

PACKAGE = Path(papers.__file__).parent
TOP = Path(__file__).parents[2]
SHARED = {"codes", "in_memory"}  # used by several methods

every_method = pytest.mark.parametrize("method", papers.METHODS, ids=lambda method: method.module)


@every_method
def test_names_are_importable(method):
    for name in method.names:
        assert getattr(papers, name).__module__.startswith(f"chimap.papers.{method.module}") or name.islower()
    assert set(method.names) <= set(dir(papers))


@every_method
def test_tests_and_benchmarks_exist(method):
    assert (TOP / "tests" / "papers" / method.test).exists()
    assert method.benchmark is None or (TOP / "benchmarks" / method.benchmark).exists()


def test_every_file_is_in_the_index():
    there = {path.stem for path in PACKAGE.iterdir() if not path.name.startswith("_")}
    assert there == {method.module for method in papers.METHODS} | SHARED


def test_a_name_that_no_method_has():
    with pytest.raises(AttributeError, match="HexagonMap"):
        _ = papers.HexagonMap


def test_public_names_of_the_package_come_from_here():
    for method in papers.METHODS:
        for name in set(method.names) & set(chimap.__all__):
            assert getattr(chimap, name) is getattr(papers, name)


def test_models_of_papers_open_whatever_is_imported():
    """Each class that they register has an address, as its module may not be imported yet."""
    for method in papers.METHODS:
        import_module(f"chimap.papers.{method.module}")
    registered = {name for name, cls in values._classes.items() if cls.__module__.startswith("chimap.papers.")}
    assert {"CodeTables", "AnchorMap"} <= registered <= values._addresses.keys()
