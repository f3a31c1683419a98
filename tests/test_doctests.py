"""Every example of every docstring and of the pages of docs/ runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import chimap

MODULES = sorted(m.name for m in pkgutil.walk_packages(chimap.__path__, "chimap.") if not m.name.endswith("__main__"))

EXTRAS = {"torch"}  # what the test extra leaves out, being heavy

PAGES = sorted((Path(__file__).parents[1] / "docs").rglob("*.md"))


NUMBER = re.compile(r"-?\d+\.(\d+)")


class Rounded(doctest.OutputChecker):
    """Takes decimal numbers that are at most one off in their last digit, as other processors may have them.

    Pages print scores as they are; this is what guards them.
    """

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        pairs = list(zip(NUMBER.finditer(want), NUMBER.finditer(got), strict=False))
        return NUMBER.sub("", want) == NUMBER.sub("", got) and all(
            len(shown[1]) == len(found[1]) and abs(float(shown[0]) - float(found[0])) < 1.5 * 10 ** -len(shown[1])
            for shown, found in pairs
        )


@pytest.mark.parametrize(
    ("got", "is_taken"),
    [
        ("chimap 0.97", True),
        ("chimap 0.96", True),
        ("chimap 0.95", False),
        ("chimap 0.970", False),
        ("linear 0.97", False),
    ],
)
def test_scores_on_pages_hold_to_their_last_digit(got, is_taken):
    assert Rounded().check_output("chimap 0.97\n", f"{got}\n", 0) is is_taken


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_pages(page):
    examples = doctest.DocTestParser().get_doctest(page.read_text(encoding="utf-8"), {}, page.name, str(page), 0)
    assert doctest.DocTestRunner(checker=Rounded()).run(examples).failed == 0


@pytest.mark.parametrize("name", ["chimap", *MODULES])
def test_examples(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name not in EXTRAS:
            raise
        pytest.skip(f"needs {missing.name}")
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
