"""What an evaluation says beyond the score, and where the page says it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from chimap._formatting import microseconds
from chimap.reports import TwoClasses, worst_mistakes
from chimap.reports.insight import Insight
from chimap.reports.sections.insight import more_rows
from chimap.selection.learning_curve import LearningCurve

from .cases import page_of, unequal


def test_of_unequal_classes_auc_average_precision_and_balanced_accuracy_lead():
    evaluation = unequal()
    page = page_of("two unequal classes")
    head = page[page.index('class="label"') : page.index("Confusion matrix</h2>")]
    order = [
        "ROC AUC on",
        "average precision of class active",
        "balanced accuracy",
        "are found",
        "% confidence interval",
        "guessing: 0.500",
    ]
    places = [head.index(word) for word in order]
    assert places == sorted(places)
    metrics = evaluation.metrics
    low, high = metrics.auc_interval
    assert 0 < low < metrics.auc < high < 1
    assert f"interval: {low:.3f} to {high:.3f}" in head  # of the score that leads
    found, there = metrics.confusion[0, 0], metrics.support[0]
    assert (
        f"{found} of {there} rows of class active are found (recall {100 * found / there:.1f}\u202f%), "
        f"with {metrics.confusion[1, 0]} false positives (precision " in head
    )
    assert "Balanced accuracy on" not in page_of("ten classes")


@pytest.mark.parametrize("scores", [[0.7, 0.8, 0.9], [0.9, 0.97, 1.0]])
def test_the_learning_curve_says_what_twice_the_rows_gained_and_on_which_rows(scores):
    curve = LearningCurve("accuracy", np.array([250, 500, 1000]), np.array(scores))
    evaluation = unequal()
    told = more_rows(replace(evaluation, insight=Insight(curve=curve)))
    assert told.lead == f"Twice the rows gained {100 * (scores[2] - scores[1]):.0f} points."
    assert "its level differs" in told.summary
    ticks = [float(tick) for tick in re.findall(r">([\d.]+) %<", told.figures[0].draw())]
    assert 10 < max(ticks) <= 100
    assert told.tables[0].rows[-1] == ("1,000", f"{100 * scores[2]:.1f} %")
    own = more_rows(replace(evaluation, insight=Insight(curve=curve, is_curve_of_rows=True)))
    assert "rows of this page" in own.summary
    short = replace(curve, rows=curve.rows[1:], scores=curve.scores[1:])
    assert not more_rows(replace(evaluation, insight=Insight(curve=short))).figures  # two points are a sentence


def test_a_regression_names_its_worst_rows_and_a_linear_model():
    page = page_of("regression, few rows")
    for told in ("Would more rows help?", "Most important bins", "Worst mistakes", "Absolute error"):
        assert page.count(told) == 1
    assert "Best linear model: linear on raw rows 0.750 (learned from 1,000 rows)" in page
    assert "Margin" not in page


def test_two_classes_have_roc_and_reliability_in_place_of_curves_a_class():
    page = page_of("two unequal classes")
    for told in ("ROC curve and calibration", "Would more rows help?", "Most important bins", "Worst mistakes"):
        assert page.count(told) == 1
    assert "Precision and recall" not in page
    assert "&lt;bit&gt; 17" in page
    assert "Best linear model: linear on l1 rows ROC AUC 0.800; a tie within the error" in page


def test_the_most_surely_wrong_come_first():
    names, y, predicted = np.array(["a", "b", "c"]), np.array([0, 1, 1]), np.array([1, 0, 1])
    scores = np.array([[0.0, 0.2], [3.0, 1.0], [0.0, 9.0]])
    found = worst_mistakes(names, y, predicted, scores, [0, 1])
    assert [(one.row, one.true, one.predicted) for one in found] == [("b", 1, 0), ("a", 0, 1)]


def test_probabilities_that_are_right_lie_on_the_line():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    bands = TwoClasses(rng.random(p.size) < p, p, p).reliability()
    assert len(bands) == 10
    assert max(abs(said - share) for said, share, _ in bands) < 0.05
    assert sum(rows for *_, rows in bands) == p.size
    assert TwoClasses(p > 0.5, p).reliability() == []


def test_json_holds_it():
    plain = json.loads(json.dumps(unequal().as_dict()["insight"]))
    assert (plain["linear"], plain["linear_measure"]) == (0.8, "ROC AUC")
    assert plain["linear_model"]["ties"]
    assert plain["learning_curve"]["rows"] == [250, 500, 1000]
    assert plain["worst_mistakes"][0]["row"].startswith("m")


def test_times_a_row_have_a_unit_that_fits():
    assert microseconds(2.16e-3).replace("\u202f", " ") == "2.16 ms"
    assert microseconds(2.16e-6).replace("\u202f", " ") == "2.16 µs"
