"""The linear model that headlines compare with: which one, its score, and ties."""

from __future__ import annotations

import numpy as np
import pytest

import chimap
from chimap.data import ArraySource
from chimap.models.race_result import Candidate, RaceResult, Trial, linear_in_words
from chimap.recipe import Recipe
from chimap.reports.linear import LinearRival, linear_model, rows_to_learn_from
from chimap.reports.score import score_of
from tests.histograms import classes

ASKED = Recipe("HistogramClassifier", True)
X, Y = classes(200, 12)
COUNTS = np.round(50 * X)


def trial(score, deviations=(0.01, -0.01), n=0, **settings):
    return Trial(Candidate(str(settings), ASKED.with_raced(**settings)), n, 100, score, 1.0, deviations=deviations)


def result(*trials, measure="accuracy"):
    return RaceResult(list(trials), measure, 100, 1.0)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("linear",), "linear on raw rows"),
        (("linear", "log-cp10k", "square"), "linear on log-cp10k rows"),
        (("linear", "tf-idf", "squared_hinge"), "linear SVM on tf-idf rows"),
        (("linear", "log-z", "logistic"), "logistic regression on log-z rows"),
        (("hellinger", "l1"), "linear on square roots of l1 rows"),
        (("exp-hellinger", "l1"), None),
        (("chi2",), None),
        (("chi2+linear",), None),
        ((["linear", "linear"],), None),
        ((None,), None),
    ],
)
def test_what_is_linear_in_normalised_rows_is_named(given, expected):
    assert linear_in_words(*given) == expected


def test_the_best_linear_machine_is_any_that_is_linear_not_only_a_baseline():
    best = trial(0.9, kernel="exp-chi2", normalize="l1")
    logs = trial(0.854, kernel="linear", normalize="log-cp10k")
    raced = result(best, logs, trial(0.7, kernel="linear", normalize=None))
    assert raced.linear is logs
    assert raced.sentence.startswith(f"{best.candidate.name}: accuracy 90.0 % (82.6 to 94.5 %) on 100 left-out rows")
    assert raced.against_linear == "; linear on log-cp10k rows 85.4 %"
    assert raced.rows()[1]["linear"] == "linear on log-cp10k rows"
    assert result(logs, best).against_linear == ""


def test_a_winner_that_others_lead_by_chance_is_shown_and_said_to_be_preferred():
    won, others = trial(0.8, kernel="chi2"), [trial(0.81, kernel="chi2", normalize=f"{i}") for i in range(12)]
    raced = result(won, *others)
    assert "; preferred, as none is better beyond chance, of 13 candidates" in raced.sentence
    shown = repr(raced).splitlines()
    assert shown[-2].startswith("> ")
    assert won.candidate.name in shown[-2]
    assert shown[-1] == "  and 2 more: table()"
    assert "; best of 13 candidates" in result(*others, won).sentence


def test_machines_tie_within_the_error_of_their_difference():
    best = trial(0.9, kernel="chi2")
    assert result(best, trial(0.89, (0.02, -0.02), kernel="linear")).linear_ties
    assert not result(best, trial(0.89, kernel="linear")).linear_ties  # both are wrong on the same rows
    assert not result(best, trial(0.89, (), kernel="linear")).linear_ties
    tied = result(best, trial(0.9, kernel="linear"), measure="r2")
    assert tied.against_linear == "; a tie with linear on raw rows 0.900"


def halves(model):
    training, unseen = ArraySource(COUNTS[::2], Y[::2]), ArraySource(COUNTS[1::2], Y[1::2])
    model.fit_source(training)
    return training, unseen, score_of(model.fitted, unseen)


def test_it_is_that_of_the_race_fitted_anew_and_scored_on_the_rows_of_the_headline():
    model = chimap.HistogramClassifier(normalize=[None, "log1p"], random_state=0)
    training, unseen, score = halves(model)
    found = linear_model(model, training, unseen, score)
    best = model.race_.linear.candidate
    assert found.is_own == (model.race_.winner is best)
    assert found.name == best.linear_name
    if not found.is_own:
        by_hand = chimap.HistogramClassifier("linear", normalize=best.settings["normalize"], random_state=0)
        by_hand.fit(COUNTS[::2], Y[::2])
        assert found.score == by_hand.score(COUNTS[1::2], Y[1::2])
    assert found.lead == pytest.approx(score.metrics.accuracy - found.score)


def test_without_a_race_it_is_the_best_of_a_few_and_a_linear_model_is_its_own():
    model = chimap.HistogramClassifier("exp-chi2", normalize="l1", random_state=0)
    found = linear_model(model, *halves(model))
    assert not found.is_own
    assert found.n_rows == 100
    assert found.name in {f"linear on {rows} rows" for rows in ("l1", "raw", "sqrt")}
    model = chimap.HistogramClassifier("linear", random_state=0)
    training, unseen, score = halves(model)
    own = linear_model(model, training, unseen, score)
    assert (own.is_own, own.score, own.ties) == (True, score.metrics.accuracy, False)
    assert own.line == "linear on raw rows, which is the model itself"
    assert linear_model(model, None, unseen, score) is None


def test_a_sample_has_a_row_of_each_class():
    labels = np.repeat(["a", "b", "c"], [3000, 2999, 1])
    source = ArraySource(np.random.default_rng(0).random((6000, 4)), labels)
    assert rows_to_learn_from(source, 2**30).n_rows == 6000
    some = rows_to_learn_from(source, 2**16)
    assert some.n_rows < 300
    assert set(some.labels()) == {"a", "b", "c"}


def test_numbers_and_json():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 9, (80, 5)).astype(float)
    source = ArraySource(rows, rows[:, 0] + rng.normal(size=80))
    model = chimap.HistogramRegressor("chi2", alpha=1e-3).fit_source(source)
    found = linear_model(model, source, source, score_of(model.fitted, source))
    assert found.measure == "r2"
    assert LinearRival.of(found.as_dict()) == found
    assert LinearRival("linear on raw rows", 0.5, "r2", 9, 0.01, 0.02).line == (
        "linear on raw rows 0.500; a tie within the error"
    )
