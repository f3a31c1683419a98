"""The score that headlines lead with: every scorer of scikit-learn, by its definition, in one form everywhere."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.metrics import f1_score, get_scorer, get_scorer_names

import chimap
from chimap._formatting import is_error, is_proportion, measure_in_words
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.reports.leading import AnsweredTasks, asked_score
from chimap.reports.linear import linear_model
from chimap.reports.score import score_of
from chimap.selection import jackknife

RNG = np.random.default_rng(0)
X = RNG.poisson(4, (120, 6)).astype(float)
MASS = X[:, 0] + 0.5 * X[:, 1] + RNG.normal(size=120) + 5
TWO, THREE = (np.median(MASS) < MASS).astype(int), np.digitize(MASS, np.quantile(MASS, [0.33, 0.66]))
TRAINING, UNSEEN = slice(0, 80), slice(80, 120)


def halves(y):
    return ArraySource(X[TRAINING], y[TRAINING]), ArraySource(X[UNSEEN], y[UNSEEN])


@pytest.fixture(autouse=True)
def few_parts(monkeypatch):
    monkeypatch.setattr(jackknife, "N_PARTS", 4)


@pytest.fixture(scope="module")
def models():
    """Return a model of each kind of labels, and its rows."""
    made = {
        "two": (chimap.HistogramClassifier("chi2", alpha=0.1), TWO),
        "three": (chimap.HistogramClassifier("chi2", alpha=0.1), THREE),
        "numbers": (chimap.HistogramRegressor("chi2", alpha=0.1), MASS),
    }
    return {name: (model.fit(X[TRAINING], y[TRAINING]), y) for name, (model, y) in made.items()}


@pytest.mark.parametrize("kind", ["two", "three", "numbers"])
@pytest.mark.parametrize("scoring", get_scorer_names())
def test_a_fit_leads_with_the_scorer_that_was_asked_for(models, kind, scoring):
    """It has the value that scikit-learn gives, lies in its interval, and no guess is better than perfect."""
    model, y = models[kind]
    found = score_of(model.fitted, halves(y)[1], scoring=scoring)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = get_scorer(scoring)(model, X[UNSEEN], y[UNSEEN])
        except (ValueError, AttributeError, TypeError):
            expected = np.nan
    if not np.isfinite(expected):  # of other labels: the usual one leads
        assert found.metrics.asked is None
        assert found.lead.measure == {"two": "accuracy", "three": "accuracy", "numbers": "r2"}[kind]
        return
    lead, (low, high) = found.lead, found.lead.interval
    assert lead.measure.partition(" of ")[0] == scoring
    assert lead.value == pytest.approx(expected, abs=1e-6)
    if is_proportion(scoring):
        assert 0 <= low <= lead.value <= high <= 1
        assert 0 <= lead.guess <= 1
        assert low < high
    elif not np.isnan(low):  # rows differ in it
        assert low < lead.value <= high
        assert not is_error(scoring) or (high <= 0 and lead.guess <= 0)
    is_told = found.metrics.known(lead.measure, None) is not None
    assert is_told or measure_in_words(lead.measure) in " ".join(next(iter(found.metrics.lines().items())))


def test_the_positive_class_is_the_one_that_was_named(models):
    model = chimap.HistogramClassifier("chi2", alpha=0.1, positive=0, scoring="f1").fit(X[TRAINING], TWO[TRAINING])
    found = score_of(model.fitted, halves(TWO)[1])
    truth, predicted = TWO[UNSEEN], model.predict(X[UNSEEN])
    assert (found.lead.measure, found.scoring) == ("f1 of 0", "f1")
    assert found.lead.value == pytest.approx(f1_score(truth, predicted, pos_label=0))
    assert found.lead.guess == pytest.approx(f1_score(truth, np.zeros(40), pos_label=0))
    assert found.line.startswith(f"F1 of 0 {found.lead.in_words}, ")


def test_an_order_has_scores_of_its_own():
    model = chimap.HistogramClassifier("chi2", alpha=0.1, ordered=[0, 1, 2], scoring="neg_mean_absolute_error")
    found = score_of(model.fit(X[TRAINING], THREE[TRAINING]).fitted, halves(THREE)[1])
    steps = np.abs(model.predict(X[UNSEEN]) - THREE[UNSEEN])
    assert found.lead.value == pytest.approx(-steps.mean())
    assert found.lead.guess == pytest.approx(-np.abs(1 - THREE[UNSEEN]).mean())
    assert found.lead.in_words.startswith(f"{steps.mean():.3f} (")


def test_the_linear_model_is_compared_by_the_same_score():
    model = chimap.HistogramClassifier("chi2", alpha=0.1, scoring="f1", random_state=0)
    training, unseen = halves(TWO)
    score = score_of(model.fit_source(training).fitted, unseen)
    found = linear_model(model, training, unseen, score)
    assert found.measure == score.lead.measure == "f1 of 1"
    assert found.lead == pytest.approx(score.lead.value - found.score)
    assert "F1 of 1" in found.line


def test_several_tasks_lead_with_the_mean_and_leave_out_what_is_missing():
    Y = np.column_stack([TWO, THREE > 0]).astype(float)
    Y[85:100, 1] = np.nan
    model = chimap.HistogramClassifier("chi2", alpha=0.1, scoring="f1").fit(X[TRAINING], Y[TRAINING])
    found = score_of(model.fitted, ArraySource(X[UNSEEN], Y[UNSEEN]))
    predicted, seen = model.predict(X[UNSEEN]), ~np.isnan(Y[UNSEEN])
    each = [f1_score(Y[UNSEEN][rows, t], predicted[rows, t]) for t, rows in enumerate(seen.T)]
    assert found.lead.measure == "mean f1"
    assert found.lead.value == pytest.approx(np.mean(each))
    assert asked_score("neg_log_loss", AnsweredTasks.of(model.fitted, Y[UNSEEN], model.decision_function(X[UNSEEN])))


def test_a_scorer_that_fails_leaves_the_usual_score(models):
    model, y = models["two"]

    def failing(model, rows, y):
        raise DataError("no")

    found = score_of(model.fitted, halves(y)[1], scoring=failing)
    assert (found.scoring, found.metrics.asked) == ("accuracy", None)
