"""Probabilities of rare classes, and the threshold of two classes: best among all cuts, as scikit-learn scores them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score

from chimap._validation import DataError
from chimap.selection.calibration import Calibration, TaskCalibration, best_threshold, checked_threshold


def measure(wanted):
    def cost(y, found, weights):
        return -float(weights @ np.where(y & ~found, float(wanted), (~y & found).astype(float)))

    def f1(y, found, weights):
        return f1_score(y, found, sample_weight=weights, zero_division=0)

    def balanced(y, found, weights):
        return balanced_accuracy_score(y, found, sample_weight=weights)

    return {"f1": f1, "balanced": balanced}.get(wanted, cost)


@pytest.mark.parametrize("wanted", ["f1", "balanced", 0.2, 1.0, 12.0])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("is_weighted", [False, True])
def test_no_cut_is_better(wanted, seed, is_weighted):
    rng = np.random.default_rng(seed)
    y = rng.random(60) < 0.2
    y[:2] = True, False
    outputs = np.round(rng.standard_normal(60) + y - 0.7, 1)  # some of them equal
    weights = rng.random(60) + 0.1 if is_weighted else np.ones(60)
    found = best_threshold(outputs, y, wanted, weights if is_weighted else None)
    value = measure(wanted)
    cuts = np.concatenate([np.unique(outputs) - 0.05, [outputs.max() + 1]])
    best = max(value(y, outputs > cut, weights) for cut in cuts)
    assert value(y, outputs > found, weights) == pytest.approx(best, abs=1e-12)
    assert not np.isin(found, outputs)


@pytest.mark.parametrize("wanted", ["f1", "balanced", 1.5])
def test_no_cut_of_a_few_rows_is_better(wanted):
    """Of every order of up to two, three or four rows of each class, with unequal weights."""
    value = measure(wanted)
    for n_second, n_first in [(1, 1), (2, 2), (3, 2), (2, 3), (1, 4), (4, 1)]:
        for places in combinations(range(n_second + n_first), n_second):
            y = np.isin(np.arange(n_second + n_first), places)
            outputs = np.arange(y.size) - 1.7
            weights = 1.0 + (np.arange(y.size) * 0.37) % 1
            found = best_threshold(outputs, y, wanted, weights)
            best = max(value(y, outputs > cut, weights) for cut in np.arange(y.size + 1) - 2.2)
            assert value(y, outputs > found, weights) == pytest.approx(best, abs=1e-12)


def test_a_row_at_0_is_above_the_threshold_if_that_is_right():
    assert best_threshold(np.array([-1.0, 0.0]), np.array([False, True]), "balanced") == -0.5
    assert best_threshold(np.array([0.0, 1.0]), np.array([False, True]), "balanced") == 0.5


def test_of_cuts_that_are_as_good_the_nearest_to_0():
    y = np.array([False, False, True, True])
    assert best_threshold(np.array([-2.0, -1.0, 1.0, 2.0]), y, "balanced") == 0
    assert best_threshold(np.array([-4.0, -3.0, -2.0, -1.0]), y, "balanced") == -2.5
    assert best_threshold(np.array([3.0, 4.0, 5.0, 6.0]), y, "f1") == 4.5
    assert best_threshold(np.array([-4.0, -3.0, -2.0, -1.0]), y, 1e9) == -2.5
    assert best_threshold(np.array([-1.0, -3.0, -2.0, -4.0]), y, 1e9) < -4
    assert best_threshold(np.array([1.0, 3.0, 2.0, 0.5]), y, 1e-9) > 3


def test_rows_of_one_class():
    with pytest.raises(DataError, match="3 that are held out have one class only"):
        best_threshold(np.arange(3.0), np.ones(3, bool), "f1")


@pytest.mark.parametrize("wrong", ["F1", 0, -1.0, float("nan"), float("inf"), True, [1.0]])
def test_bad_thresholds(wrong):
    with pytest.raises(ValueError, match="threshold must be None, 'f1', 'balanced', or a cost above 0"):
        checked_threshold(wrong)


def log_loss(p: np.ndarray, y: np.ndarray) -> float:
    return float(-np.mean(np.where(y == 1, np.log(p), np.log1p(-p))))


@pytest.mark.parametrize("spread", [1.0, 0.05])  # of the outputs, all of which are below 0
@pytest.mark.parametrize(("n", "n_rare"), [(2000, 20), (20_000, 20), (100_000, 10)])
def test_a_rare_class_is_as_probable_as_a_logistic_regression_says(n, n_rare, spread):
    """Outputs of a rare class lie near -1, where slope and offset of the sigmoid are nearly collinear."""
    rng = np.random.default_rng(0)
    y = (np.arange(n) < n_rare).astype(int)
    f = -1 + spread * rng.normal(np.where(y == 1, 0.1, 0.0), np.where(y == 1, 0.05, 0.02))
    calibration = Calibration.of(f[:, None], y)
    scores = calibration.scale * f + calibration.offsets[0]  # without the rule on the sign
    standard = ((f - f.mean()) / f.std())[:, None]
    expected = LogisticRegression(C=1e6, tol=1e-10, max_iter=1000).fit(standard, y).predict_proba(standard)[:, 1]
    prior = log_loss(np.full(n, n_rare / n), y)
    assert log_loss(expected, y) < 0.5 * prior
    assert log_loss(expit(scores), y) < log_loss(expected, y) + 0.03 * prior
    tasks = TaskCalibration.of(np.stack([f, f + 3], axis=1), np.stack([y, 1 - y], axis=1))
    np.testing.assert_allclose(tasks.scales[0], calibration.scale, rtol=1e-9)


def test_a_rare_class_among_many_is_not_told_by_its_prior():
    rng = np.random.default_rng(0)
    y = np.r_[np.zeros(10_000, int), np.ones(10_000, int), np.full(20, 2)]
    F = np.full((y.size, 3), -1.0) + 0.02 * rng.standard_normal((y.size, 3))
    F[np.arange(y.size), y] += np.array([1.0, 1.0, 0.08])[y]
    p = Calibration.of(F, y)(F)[:, 2]
    assert p.sum() == pytest.approx(20, rel=0.25)
    assert p[-20:].mean() > 20 * p[:-20].mean()
