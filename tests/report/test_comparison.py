"""The rule that recommends, and the page."""

from __future__ import annotations

import json
import re

import pytest

from chimap.report import render_comparison, write_comparison
from chimap.report.comparison_curves import pareto_front

from .comparisons import CASES, comparison, many, measured, score
from .test_html import Page


def advice(*candidates, **given):
    return comparison(*candidates, **given).recommendation


def test_the_cheapest_within_one_standard_error_of_the_best():
    best = measured("Best", 5, value=0.95, seconds=5.0)
    enough = measured("Enough", 2, value=0.945, seconds=1.0)
    too_bad = measured("Fast", 1, value=0.93, seconds=0.1)
    found = advice(best, enough, too_bad)
    assert found.chosen is enough
    assert found.sentence == (
        "Use Enough, 2 terms (chi2, 128 features): 94.5 % accuracy, within 0.5 points of the best (Best, 5 terms) "
        "at a fifth of its time."
    )
    assert found.note is None


def test_the_error_is_that_of_the_best():
    wide = measured("Best", value=0.95, seconds=5.0)
    enough = measured("Enough", value=0.92, seconds=1.0)
    assert advice(wide, enough).chosen is wide
    wide = measured("Best", value=0.95, seconds=5.0)
    object.__setattr__(wide, "score", score(0.95, 0.04))
    assert advice(wide, enough).chosen is enough


def test_the_best_itself_where_nothing_near_is_faster():
    found = advice(measured("Best", value=0.95), measured("Bad", value=0.8, seconds=0.1))
    assert found.chosen.family == "Best"
    assert "the best here, and nothing within a standard error of it (1.0 points) is faster" in found.sentence


def test_times_that_are_nearly_equal_do_not_decide():
    a, b = measured("A", value=0.95, seconds=1.2), measured("B", value=0.949, seconds=1.0)
    assert advice(a, b).chosen is a
    assert advice(measured("A", value=0.95, seconds=1.3), b).chosen is b


def test_what_does_not_fit_into_memory_is_passed_over_and_told_of():
    large = measured("Large", 9, value=0.99, fit_bytes=2**34)
    found = advice(large, measured("Small", value=0.9))
    assert found.chosen.family == "Small"
    assert (
        "Large, 9 terms has 99.0 %, but a fit with it needs 16.0 GiB, and the budget is 1.0 GiB" in found.note
    )
    assert "the best within the memory given" in found.sentence
    alone = advice(large)
    assert alone.chosen is large
    assert "more memory" in alone.note
    half = measured("Half", 2, value=0.985, seconds=9.0, fit_bytes=2**33)
    assert advice(large, half).chosen is half
    assert "at half of its memory" in advice(large, half).sentence


def test_notes_on_the_linear_model_and_on_labels_that_cannot_be_predicted():
    assert "may need no kernel" not in (many().recommendation.note or "")
    linear = many().references[1]
    same = type(linear)(linear.name, 5000, score(0.9), 0.1)
    assert "may need no kernel" in advice(measured(value=0.9), references=(same,)).note
    assert "not shown to be predictable" in advice(measured(value=0.5), baseline=0.5).note


def test_without_labels_the_fastest_below_one_percent():
    fast = measured("Fast", value=None, error_relative=0.009, map_seconds=1e-6)
    good = measured("Good", value=None, error_relative=0.0001, map_seconds=4e-6)
    bad = measured("Bad", value=None, error_relative=0.02, map_seconds=1e-7)
    assert advice(fast, good, bad, task=None).chosen is fast
    found = advice(bad, measured("Worse", value=None, error_relative=0.3), task=None)
    assert found.chosen is bad
    assert "none is within 1 %" in found.sentence


def test_candidates_that_were_not_trained_are_not_chosen():
    found = advice(measured("No", value=None, not_learned="too small"), measured("Yes", value=0.6))
    assert found.chosen.family == "Yes"


def test_pareto_front():
    a, b, c = (measured(n, value=v, seconds=s) for n, v, s in (("a", 0.8, 1), ("b", 0.7, 2), ("c", 0.9, 3)))
    assert pareto_front([c, b, a]) == [a, c]


@pytest.mark.parametrize("name", CASES)
def test_page_is_well_formed_and_loads_nothing(name):
    found = CASES[name]()
    text = render_comparison(found, command="chimap fit 'my data.npz' <output>")
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert len(page.ids) == len(set(page.ids))
    assert all(r.startswith("#") for r in page.references)
    assert {r[1:] for r in page.references} <= set(page.ids)
    assert not {"script", "link", "iframe", "object", "img"} & page.tags
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    shown = "".join(page.text)
    assert found.recommendation.sentence in shown
    assert "chimap fit 'my data.npz' <output>" in shown
    for m in found.measured:
        assert m.short_name in shown
        assert m.name in text  # what the figures tell a reader who does not see them
        assert m.family in "".join(re.findall(r"<svg.*?</svg>", text, re.S))
    assert text == render_comparison(CASES[name](), command="chimap fit 'my data.npz' <output>")
    json.dumps(found.as_dict(), allow_nan=False)


def test_page_says_what_stands_beside_the_candidates():
    shown = "".join(Page(render_comparison(many())).text)
    for text in (
        "exact chi2 SVM, 2,000 rows",
        "linear ridge on the raw rows, 5,000 rows",
        "Left out: 2",
        "must be odd",
        "memory=1MiB is too small",
        "PerBin, 2 terms *",
        "solved through their Gram matrix",
        "least possible",
        "recommended",
    ):
        assert text in shown, text
    without = "".join(Page(render_comparison(CASES["no labels"]())).text)
    assert "accuracy" not in without.lower()


def test_table_is_best_first():
    found = many()
    text = render_comparison(found)
    places = [text.index(f">{m.name}") for m in found.ranked]
    assert places == sorted(places)
    scores = [m.score.value for m in found.ranked if m.score]
    assert scores == sorted(scores, reverse=True)
    assert found.ranked[-1].score is None


def test_names_are_escaped():
    attack = "<script>alert(1)</script>"
    text = render_comparison(comparison(measured(attack), kernel=attack), command=attack)
    assert "script" not in Page(text).tags


def test_writing(tmp_path):
    target = tmp_path / "page.html"
    assert write_comparison(many(), target) == target
    assert target.read_text(encoding="utf-8") == render_comparison(many())
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_comparison(many(), target)
    assert list(tmp_path.iterdir()) == [target]
