"""The number of landmarks, where it is left to the fit."""

import numpy as np
import pytest

from chimap import HistogramClassifier, HistogramRegressor
from chimap.machines import explicit, sums

RNG = np.random.default_rng(0)
TOPICS = RNG.dirichlet(np.full(12, 0.4), size=60)
TOPIC = RNG.integers(0, 60, 1600)
COUNTS = RNG.poisson(60 * TOPICS[TOPIC]).astype(np.float32)
LABELS = TOPIC % 4
FEW = 12  # of 60 topics: twice as many help


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(explicit, "landmarks_of", lambda n_rows: FEW)


def fitted(rows=slice(0, 1200), y=LABELS, make=HistogramClassifier, groups=None, **settings):
    settings = {"features": "landmarks", "random_state": 0, **settings}
    return make("exp-chi2", **settings).fit(COUNTS[rows], y[rows], groups=groups)


def n_landmarks(model):
    return model.features_.n_landmarks_


def score(model):
    return model.score(COUNTS[1200:], LABELS[1200:])


def test_landmarks_double_while_rows_left_out_gain():
    model = fitted()
    assert n_landmarks(model) in (4 * FEW, 8 * FEW, 16 * FEW)
    assert score(model) > score(fitted(n_components=FEW)) + 0.02
    # it is the model of so many landmarks
    alike = fitted(n_components=n_landmarks(model), gamma=model.kernel_.gamma)
    np.testing.assert_array_equal(model.decision_function(COUNTS[1200:]), alike.decision_function(COUNTS[1200:]))


def test_they_stay_where_more_gain_no_more_than_the_error():
    noise = RNG.permutation(LABELS)
    assert n_landmarks(fitted(y=noise)) == FEW


@pytest.mark.parametrize("most", [FEW, 2 * FEW, 4 * FEW])
def test_they_stay_within_the_work(most, monkeypatch):
    monkeypatch.setattr(sums, "landmarks_in", lambda seconds, n_rows: most)
    assert n_landmarks(fitted()) == most


def test_a_number_that_is_given_stays():
    assert n_landmarks(fitted(n_components=FEW)) == FEW


def test_they_stay_below_a_share_of_the_rows():
    assert n_landmarks(fitted(rows=slice(0, 90))) == FEW


def test_groups_are_left_out_whole():
    """Rows of a group are copies of one row: if single rows were left out, twice as many landmarks would know more."""
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(150), 8)
    rows = rng.dirichlet(np.ones(12), size=150)[groups].astype(np.float32)
    y = rng.integers(0, 2, 150)[groups]
    settings = {"features": "landmarks", "random_state": 0}
    assert n_landmarks(HistogramClassifier("exp-chi2", **settings).fit(rows, y, groups=groups)) == FEW
    assert n_landmarks(HistogramClassifier("exp-chi2", **settings).fit(rows, y)) > FEW


def test_targets_are_compared_in_their_units():
    Y = np.column_stack([1e4 * TOPICS[TOPIC, 0], TOPICS[TOPIC, 1]]) + RNG.normal(size=(1600, 1)) * 1e-3
    model = fitted(y=Y, make=HistogramRegressor)
    assert n_landmarks(model) > FEW


def test_other_losses_keep_their_number():
    assert n_landmarks(fitted(loss="logistic")) == FEW
