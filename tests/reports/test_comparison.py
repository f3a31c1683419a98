"""The race without the fit: what it runs, which machines all rows would get, and the page."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

from chimap import HistogramClassifier, HistogramRegressor
from chimap._errors import InputError
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.reports import compare
from chimap.reports.sections.behind import section as behind
from chimap.selection.jackknife import error_between
from tests.histograms import classes, tracks

from .comparisons import CASES, comparison, failing, many, rival
from .test_evaluation_page import Page

COMMAND = "chimap fit 'my data.npz' <output>"
X, y = classes(300, 12)
COUNTS = np.round(50 * X)


@pytest.fixture(scope="module")
def raced():
    return compare(HistogramClassifier(random_state=0), ArraySource(COUNTS, y))


def test_it_is_the_race_of_the_fit(raced):
    fitted = HistogramClassifier(random_state=0).fit(COUNTS, y)
    assert [(r.name, r.trial.score) for r in raced.rivals] == [(t.candidate.name, t.score) for t in fitted.race_.trials]
    assert raced.result.expected == fitted.race_.expected
    again = HistogramClassifier(random_state=0, **raced.winner.settings).fit(COUNTS, y)
    assert again.kernel_.name == fitted.kernel_.name
    assert again.alpha_ == fitted.alpha_


def test_every_rival_has_the_plan_of_its_machine(raced):
    assert {r.machine for r in raced.ranked} == {"kernel matrix"}
    assert {r.n_rows for r in raced.ranked} == {300}
    assert all(r.seconds > 0 and r.n_bytes > 300**2 for r in raced.ranked)
    assert "for all 300 rows (kernel matrix)" in raced.cost


def test_machines_are_those_that_the_memory_holds():
    source = ArraySource(np.tile(X, (8, 1)), np.tile(y, 8))
    found = compare(HistogramClassifier(memory="2MiB", normalize=["l1", None], random_state=0), source)
    assert "kernel matrix" not in {r.machine for r in found.ranked}
    assert all(r.n_bytes <= 2 * 2**20 for r in found.ranked)


def test_groups_are_held_out_together():
    rows, labels, groups = tracks(20, 6, 8)
    model = HistogramClassifier(random_state=0, normalize=["l1", None])
    alone = compare(model, ArraySource(rows, labels))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        together = compare(model, ArraySource(rows, labels), groups=groups)
    assert together.data["groups"] == 20
    assert alone.winner.trial.score > together.winner.trial.score + 0.1


def test_numbers_for_labels_and_another_score():
    target = np.sqrt(X[:, 0]) + X[:, 3]
    found = compare(HistogramRegressor(random_state=0), ArraySource(X, target))
    assert found.metric == "R²"
    assert found.winner.trial.score > 0.9
    scored = compare(HistogramClassifier(scoring="balanced_accuracy", random_state=0), ArraySource(X, y))
    assert scored.result.measure == "balanced_accuracy"


def test_a_kernel_that_is_named_is_raced_on_several_normalisations():
    found = compare(HistogramClassifier("exp-chi2", normalize=[None, "l1"], random_state=0), ArraySource(COUNTS, y))
    assert {r.settings["normalize"] for r in found.ranked} == {None, "l1"}


def test_bad_input():
    with pytest.raises(DataError, match="array has no labels"):
        compare(HistogramClassifier(), ArraySource(X))
    with pytest.raises(DataError, match="all rows are of one group"):
        compare(HistogramClassifier(), ArraySource(X, y), groups=np.zeros(300))
    with pytest.raises(InputError, match="nothing is left to a race: give kernel='auto'"):
        compare(HistogramClassifier("chi2"), ArraySource(X, y))


# --- how it is told


def test_the_winner_its_score_and_that_of_the_linear_machine():
    best, linear = rival("exp-chi2, raw rows", 0.95), rival("linear ridge, raw rows", 0.8, is_linear=True)
    found = comparison(best, linear)
    assert found.sentence == "Use exp-chi2, raw rows: 95.0 % accuracy; linear on raw rows 80.0 %."
    assert found.note == ""
    expected = comparison(best, linear, expected=(0.94, 0.01)).sentence
    assert expected.endswith("Expect 94.0 % (91.7 to 95.7 %) of unseen rows.")


def test_an_interval_is_wide_and_kernels_that_all_tie_are_a_sentence_and_no_figure():
    tied = comparison(*(rival(f"kernel-{i}, raw rows", 1.0, error=0.0) for i in range(4)))
    assert tied.interval(tied.winner.trial) == "99.8 to 100.0 %"
    section = behind(tied)
    assert section.lead == "kernel-0, raw rows ties with the 3 that were scored on the same rows."
    assert not section.figures
    assert section.summary == "They have the same score on these rows."
    ahead = behind(comparison(rival("best", 0.9), *(rival(f"{i}", 0.5, error=0.02) for i in range(3))))
    assert ahead.lead == "best is ahead of all 3."
    assert ahead.figures
    values = 0.9, 0.9, 0.9, 0.1
    some = behind(comparison(*(rival(f"{i}", value, error=0.01 + i / 1000) for i, value in enumerate(values))))
    assert some.lead == "0 is ahead of 1 of 3, and ties with the others."


def test_notes():
    linear = rival("linear ridge, raw rows", 0.945, error=0.0, is_linear=True)
    assert "scores as well within one standard error" in comparison(rival(value=0.95), linear).note
    assert "No candidate beats the linear ones" in comparison(linear, rival(value=0.8)).note
    assert "Others lead by no more than chance" in comparison(rival(value=0.95), rival("chi2", 0.96)).note


def test_the_cost_of_a_fit_is_told_with_no_more_digits_than_are_known():
    cost = comparison(rival()).cost.replace("\u202f", " ")
    assert cost == "about 38 s and 1.0 GiB for all 60,000 rows (blocks of rows)"
    assert "for 41,000 of 60,000 rows" in comparison(rival(n_rows=41_000)).cost
    assert comparison(rival(machine="")).cost == ""


@pytest.mark.parametrize("name", CASES)
def test_page_is_well_formed_and_loads_nothing(name):
    found = replace(CASES[name](), command=COMMAND)
    text = found.to_html()
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert len(page.ids) == len(set(page.ids))
    assert all(r.startswith("#") for r in page.references)
    assert {r[1:] for r in page.references} <= set(page.ids)
    assert not {"script", "link", "iframe", "object", "img"} & page.tags
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    shown = "".join(page.text)
    assert found.sentence in shown
    assert COMMAND in shown
    for each in found.ranked:
        assert each.name in shown
    same = [r for r in found.ranked[1:] if np.isfinite(error_between(r.trial, found.winner.trial))]
    rounds = {trial.n_rows for trial in found.result.history if not trial.error}
    assert text.count("<svg") == (len(rounds) > 2) + (len(same) > 2)  # a curve of two points is none
    json.dumps(found.as_dict(), allow_nan=False)


def test_page_says_what_stands_beside_the_machines():
    shown = "".join(Page(many().to_html()).text)
    for text in ("Could not be fitted: 1", "negative bins", "by 31 groups", "none within the memory", "others"):
        assert text in shown, text


def test_candidates_beyond_ten_are_folded():
    before, _, after = many().to_html().partition("<details><summary>The other 6 candidates</summary>")
    for i, each in enumerate(many().ranked):
        row = f'<th scope="row" class="text">{each.name}</th>'
        assert row in (before if i < 10 else after), each.name
    assert "The other" not in many(2).to_html()


def test_json_is_plain(raced):
    back = json.loads(json.dumps(raced.as_dict(), allow_nan=False))
    assert back["sentence"] == raced.sentence
    assert [each["name"] for each in back["candidates"]] == [r.name for r in raced.rivals]
    assert comparison(rival(), failing()).as_dict()["candidates"][1]["error"] == "negative bins"


def test_names_are_escaped():
    attack = "<script>alert(1)</script>"
    text = comparison(rival(attack), command=attack).to_html()
    assert "script" not in Page(text).tags


def test_writing(tmp_path):
    """The same numbers give the same page."""
    target = tmp_path / "page.html"
    assert many().save(target) == target
    assert target.read_text(encoding="utf-8") == many().to_html()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        many().save(target)
    assert list(tmp_path.iterdir()) == [target]
