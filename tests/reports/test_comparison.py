"""The rule that recommends, and the page."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from chimap.reports.comparison import pareto_front

from .comparisons import CASES, comparison, entrant, many
from .test_evaluation_page import Page

COMMAND = "chimap fit 'my data.npz' <output>"


def advice(*entrants, **given):
    return comparison(*entrants, **given).recommendation


def test_the_best_where_nothing_as_good_predicts_twice_as_fast():
    best, near = entrant("exp-chi2", 0.95), entrant("chi2", 0.945, us=6.0, place=1)
    found = advice(near, best)
    assert found.chosen is found.best is best
    assert found.sentence == "Use exp-chi2, exact: 95.0 % accuracy, the best of all."


def test_the_fast_one_within_a_standard_error_of_the_difference():
    best, fast = entrant("exp-chi2", 0.95, us=40.0), entrant("chi2", 0.945, us=4.0, place=1)
    worse = entrant("hellinger", 0.93, us=1.0, place=2)
    found = advice(best, fast, worse)
    assert (found.chosen, found.best) == (fast, best)
    assert found.sentence == (
        "Use chi2, exact: 94.5 % accuracy, within 0.5 points of the best (exp-chi2, exact), which may be chance, and "
        "predicts 10 times as fast."
    )


def test_the_error_is_that_of_the_difference_and_not_of_the_scores():
    """Machines that are wrong on the same rows differ for certain by less than their own error."""
    best, fast = entrant("exp-chi2", 0.95, us=40.0), entrant("chi2", 0.945, us=4.0)
    assert advice(best, fast).chosen is best


def test_of_equally_fast_ones_the_better():
    best = entrant("exp-chi2", 0.95, us=40.0)
    a, b = entrant("chi2", 0.945, us=4.0, place=1), entrant("hellinger", 0.944, us=3.9, place=2)
    assert advice(best, a, b).chosen is a
    slow = entrant("hellinger", 0.944, us=3.0, place=2)
    assert advice(best, a, slow).chosen is slow


def test_machines_that_all_rows_are_not_fitted_with_are_beside_the_point():
    exact = entrant("exp-chi2", 0.96, fit_settings=None)
    landmarks = entrant("exp-chi2", 0.95, name="landmarks", settings={"features": "landmarks", "n_components": 1959})
    found = advice(exact, landmarks)
    assert found.chosen is found.best is landmarks
    assert "Use exp-chi2, 1,959 landmarks" in found.sentence


def test_those_that_left_with_fewer_rows_are_no_rivals():
    early = entrant("chi2", 0.99, n_rows=1500)
    last = entrant("exp-chi2", 0.9)
    shown = comparison(last, early)
    assert shown.ranked == (last, early)
    assert shown.recommendation.chosen is last


def test_notes_on_the_linear_machine_and_on_labels_that_cannot_be_predicted():
    linear = entrant("linear", 0.895, is_linear=True, place=1)
    assert "scores as well within one standard error" in advice(entrant(), linear).note
    assert "linear 89.5 %" in advice(entrant(), linear).sentence
    assert advice(entrant(value=0.99), linear).note is None
    assert "No model beats the linear one" in advice(linear, entrant(value=0.8)).note
    assert "Predicting without any bins scores 50.0 %" in advice(entrant(value=0.5), floor=0.5).note


def test_the_time_of_a_fit_is_told_with_no_more_digits_than_are_known():
    assert comparison(entrant()).time_words.replace("\u202f", " ") == "about 38 s for all 60,000 rows"
    blocks = {"learned rows": 41_000, "block rows": 10_000}
    swept = comparison(entrant(), data={**comparison(entrant()).data, **blocks}).time_words
    assert swept.replace("\u202f", " ") == "about 38 s for 41,000 of 60,000 rows, in blocks of up to 10,000"
    few = comparison(entrant(), fit_seconds={})
    assert few.time_words is None


def test_pareto_front():
    a, b, c = (entrant(n, v, us=t) for n, v, t in (("a", 0.8, 1), ("b", 0.7, 2), ("c", 0.9, 3)))
    assert pareto_front([c, b, a]) == [a, c]


@pytest.mark.parametrize("name", CASES)
def test_page_is_well_formed_and_loads_nothing(name):
    found = CASES[name]()
    text = replace(found, command=COMMAND).to_html()
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert len(page.ids) == len(set(page.ids))
    assert all(r.startswith("#") for r in page.references)
    assert {r[1:] for r in page.references} <= set(page.ids)
    assert not {"script", "link", "iframe", "object", "img"} & page.tags
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    shown = "".join(page.text)
    assert found.recommendation.sentence in shown
    assert COMMAND in shown
    for e in found.ranked:
        assert e.kernel in shown
        assert e.words in text  # what the figures tell a reader who does not see them
    json.dumps(found.as_dict(), allow_nan=False)


@pytest.fixture(scope="module")
def page() -> str:
    return many().to_html()


def test_page_says_what_stands_beside_the_machines(page):
    shown = "".join(Page(page).text)
    for text in (
        "1,959 landmarks",
        "linear",
        "ridge",
        "SVM",
        "Could not be fitted: 1",
        "negative bins",
        "by 31 groups",
        "most frequent class",
        "recommended",
        "expected to take about",
        "others",
    ):
        assert text in shown, text


def test_machines_beyond_ten_are_folded(page):
    found = many()
    before, _, after = page.partition("<details><summary>The other 5 models</summary>")
    for i, e in enumerate(found.ranked):
        row = f'<th scope="row" class="text">{e.kernel}</th>'
        assert row in (before if i < 10 else after), e.name
    assert before.count("without any bins") == 1
    assert "The other" not in many(2).to_html()


def test_table_is_best_first():
    found = many()
    rounds = [e.last.n_rows for e in found.ranked]
    assert rounds == sorted(rounds, reverse=True)
    scores = [e.last.score for e in found.finalists]
    assert scores == sorted(scores, reverse=True)


def test_names_are_escaped():
    attack = "<script>alert(1)</script>"
    text = comparison(entrant(attack), command=attack).to_html()
    assert "script" not in Page(text).tags


def test_writing(page, tmp_path):
    """The same numbers give the same page."""
    target = tmp_path / "page.html"
    assert many().save(target) == target
    assert target.read_text(encoding="utf-8") == page
    with pytest.raises(FileExistsError, match="overwrite=True"):
        many().save(target)
    assert list(tmp_path.iterdir()) == [target]
