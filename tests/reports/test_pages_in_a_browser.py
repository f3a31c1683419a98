"""The pages in a real browser: nothing sticks out, is cut or pale, wide or narrow, light or dark."""

from __future__ import annotations

import pytest

from . import comparisons
from .browser import CHROMIUM, problems
from .cases import page_of
from .explanations import explanation
from .test_kernel import learned

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium, as Debian's package chromium")

_SHOWN = (
    "two classes in studies",
    "two classes",
    "two unequal classes",
    "ten classes",
    "two ranked classes",
    "thirty ranked classes with images",
    "regression, few rows",
    "fourteen tasks",
    "two targets",
)
MANY_CLASSES = ("thirty ranked classes with images",)


@pytest.fixture(scope="module")
def pages():
    found = {name: page_of(name) for name in _SHOWN}
    found["explanation"] = explanation("landmarks").to_html()
    found["explanation of two classes"] = explanation(two=True).to_html()
    found["comparison"] = comparisons.many(4).to_html()
    found["kernel"] = learned().to_html()
    return found


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (400, False), (400, True)])
def test_nothing_is_wrong(pages, width, dark, tmp_path):
    found = problems(pages, width, tmp_path, dark)
    assert set(found) == {*pages, "console"}
    for name in MANY_CLASSES:  # whose matrix would be too small to read
        found[name] = [wrong for wrong in found[name] if not wrong.startswith("figure scrolls")]
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_what_is_wrong_is_seen(tmp_path):
    bad = (
        "<p style='width: 900px'>wide</p><p style='color: #ddd'>pale</p><img src='data:,'>"
        "<script>console.error('mine')</script>"
    )
    found = problems({"bad": bad}, 400, tmp_path)
    told = " ".join(found["bad"])
    for word in ("scrolls sideways", "sticks out", "is pale", "no picture", "has no words"):
        assert word in told
    assert any("mine" in line for line in found["console"])
