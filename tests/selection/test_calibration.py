"""The threshold of two classes: best among all cuts, by the formulas of scikit-learn."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score

from chimap._validation import DataError
from chimap.selection.calibration import best_threshold, checked_threshold


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
