"""Measures against scikit-learn, SciPy and definitions, their intervals, and what cannot be measured."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from scipy.stats import binomtest, norm, t
from sklearn import metrics as sk

from chimap._validation import DataError
from chimap.reports import (
    Reliability,
    accuracy,
    classification_metrics,
    majority_baseline,
    mean_baseline,
    most_confused,
    regression_metrics,
    task_metrics,
    wilson_interval,
)
from chimap.reports.measures import auc_interval, mean_share_interval, share_interval
from chimap.selection.jackknife import independent_rows, wilson

from .cases import CASES


@pytest.mark.parametrize("measure", [accuracy, classification_metrics, regression_metrics])
def test_no_rows_and_unequal_lengths_are_refused(measure):
    with pytest.raises(ValueError, match="y_true has 0 rows"):
        measure([], [])
    with pytest.raises(ValueError, match="3 rows and y_pred 2"):
        measure([1, 2, 3], [1, 2])


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="y_pred, row 1: nan"):
        regression_metrics([1.0, 2.0], [1.0, np.nan])
    with pytest.raises(ValueError, match="must hold numbers"):
        regression_metrics(["a", "b"], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        regression_metrics(np.ones((2, 2)), np.ones((2, 2)))


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (0, 30), (30, 30), (7, 10), (9_312, 10_000)])
def test_wilson_interval_holds_the_shares_that_the_rows_allow(successes, n, confidence):
    share, z = successes / n, norm.ppf((1 + confidence) / 2)
    ends = wilson_interval(successes, n, confidence)
    assert 0 <= ends[0] <= share <= ends[1] <= 1
    for p in ends:
        if 0 < p < 1:
            assert abs(share - p) == pytest.approx(z * np.sqrt(p * (1 - p) / n), rel=1e-9)


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (-1, 5), (6, 5)])
def test_wilson_interval_refuses_impossible_counts(successes, n):
    with pytest.raises(ValueError, match="0 <= successes <= n"):
        wilson_interval(successes, n)


def test_wilson_interval_refuses_percentages():
    with pytest.raises(ValueError, match="between 0 and 1"):
        wilson_interval(5, 10, confidence=95)


def test_baselines():
    assert majority_baseline(["a", "b", "b"], ["b", "a", "a", "b"]).value == 0.5
    assert "“b”" in majority_baseline(["a", "b", "b"], ["b"]).name
    assert mean_baseline([1.0, 3.0], [1.0, 3.0]).value == 1.0


@pytest.fixture
def labels() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y_true = rng.choice(["ant", "bee", "cat", "dog"], 200, p=[0.4, 0.3, 0.2, 0.1])
    return y_true, np.where(rng.random(200) < 0.7, y_true, rng.choice(["ant", "bee", "cat"], 200))


def test_classification_agrees_with_scikit_learn(labels):
    found = classification_metrics(*labels)
    assert found.classes == ("ant", "bee", "cat", "dog")
    assert accuracy(*labels) == found.accuracy == sk.accuracy_score(*labels)
    assert found.balanced_accuracy == pytest.approx(sk.balanced_accuracy_score(*labels))
    assert found.macro_f1 == pytest.approx(sk.f1_score(*labels, average="macro"))
    np.testing.assert_array_equal(found.confusion, sk.confusion_matrix(*labels))
    np.testing.assert_array_equal(found.confusion.sum(axis=1), found.support)


def test_ranking_of_two_classes():
    y, scores = ["a", "b", "b", "a"], np.array([-1.0, 0.5, -0.2, -0.1])
    found = classification_metrics(y, ["a", "b", "a", "a"], scores=scores)
    assert found.auc == found.as_dict()["auc"] == 0.75  # of four pairs one is out of order
    assert classification_metrics(y, y).auc is None
    one_sided = classification_metrics(["a", "a"], ["a", "b"], scores=scores[:2])
    assert one_sided.auc is None


def test_classification_by_hand():
    found = classification_metrics([0, 0, 0, 1], [0, 0, 1, 1])
    assert found.confusion.tolist() == [[2, 1], [0, 1]]
    np.testing.assert_allclose(found.precision, [1, 1 / 2])
    np.testing.assert_allclose(found.recall, [2 / 3, 1])
    np.testing.assert_allclose(found.f1, [4 / 5, 2 / 3])
    assert (found.n_correct, found.n_rows, found.accuracy) == (3, 4, 0.75)


@pytest.mark.filterwarnings("error")
def test_undefined_ratios_are_nan_and_none_in_json():
    found = classification_metrics(["a", "a"], ["a", "a"], classes=["a", "b"])
    assert np.isnan(found.recall[1])
    assert np.isnan(found.precision[1])
    assert found.balanced_accuracy == 1.0
    plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert plain["per_class"][1] == {"class": "b", "precision": None, "recall": None, "f1": None, "support": 0}


def test_most_confused_pairs_come_first():
    y_true = ["a"] * 5 + ["b"] * 2 + ["c"] * 3
    y_pred = ["a", "b", "b", "c", "a", "a", "a", "c", "c", "b"]
    pairs = most_confused(classification_metrics(y_true, y_pred), n=3)
    assert pairs == [("b", "a", 2, 1.0), ("a", "b", 2, 0.4), ("c", "b", 1, 1 / 3)]


def test_bad_labels_are_refused():
    with pytest.raises(ValueError, match="All 3 rows are of one class, cat"):
        classification_metrics(["cat"] * 3, ["cat"] * 3)
    with pytest.raises(ValueError, match="Label dog occurs"):
        classification_metrics(["cat", "dog"], ["cat", "cat"], classes=["cat", "cow"])
    with pytest.raises(ValueError, match="same kind of label"):
        classification_metrics(["1", "2"], [1, 2])


def test_the_error_is_by_tenths_and_by_rows():
    confidence = np.array([0.31, 0.39, 0.9, 0.94, 0.92, 1.0])
    right = np.array([True, False, True, True, False, True])
    found = Reliability(confidence, right)
    bands = found.bands()
    assert [rows for _, _, rows in bands] == [2, 4]  # 1 is of the last tenth
    assert bands[0][:2] == pytest.approx((0.35, 0.5))
    assert bands[1][:2] == pytest.approx((0.94, 0.75))
    assert found.error == pytest.approx((2 * 0.15 + 4 * 0.19) / 6)


def test_probabilities_that_come_true_have_no_error():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.1, 1, 200_000)
    right = rng.random(confidence.size) < confidence
    assert Reliability(confidence, right).error < 0.005
    assert Reliability(confidence, ~right).error > 0.2


@pytest.mark.parametrize(
    ("confidence", "right"), [([], []), ([0.5], [True, False]), ([1.5], [True]), ([np.nan], [True])]
)
def test_what_is_no_probability_is_refused(confidence, right):
    with pytest.raises(DataError, match="probabilit"):
        Reliability(np.array(confidence), np.array(right, dtype=bool))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ten classes", "two unequal classes"])
def test_the_page_and_json_say_the_error(name):
    evaluation = CASES[name]()
    said = json.loads(json.dumps(evaluation.as_dict()))["reliability"]
    assert said["expected_calibration_error"] == pytest.approx(evaluation.reliability.error)
    assert sum(band["rows"] for band in said["bands"]) == evaluation.reliability.right.size
    page = evaluation.to_html()
    off = f"{100 * evaluation.reliability.error:.1f}"
    assert len(re.findall(rf"differ by {off}\s%\son average", page)) == 1
    assert ("Calibration of the probabilities" in page) == (name == "ten classes")


def test_regression_agrees_with_scikit_learn():
    rng = np.random.default_rng(1)
    y_true = rng.standard_normal(300)
    y_pred = y_true + rng.standard_normal(300) / 2
    found = regression_metrics(y_true, y_pred)
    assert found.r2 == pytest.approx(sk.r2_score(y_true, y_pred))
    assert found.rmse == pytest.approx(sk.root_mean_squared_error(y_true, y_pred))
    assert found.mae == pytest.approx(sk.mean_absolute_error(y_true, y_pred))
    for name in ("r2", "rmse", "mae"):
        lower, upper = getattr(found, f"{name}_interval")
        assert lower < getattr(found, name) < upper
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["r2"] == found.r2


def test_regression_intervals_by_hand():
    found = regression_metrics([0.0, 0.0, 4.0, 4.0], [1.0, -1.0, 4.0, 4.0])
    half = t.ppf(0.975, 3) * np.sqrt(1 / 3) / 2
    np.testing.assert_allclose(found.mae_interval, (0, 0.5 + half))
    np.testing.assert_allclose(found.rmse_interval, (0, np.sqrt(0.5 + half)))
    # Every target is 2 from the mean, so R2 = 1 - mean(e^2) / 4 and its deviation is that of e^2 over 4.
    np.testing.assert_allclose(found.r2_interval, (0.875 - half / 4, 1))


def test_intervals_count_groups_and_not_their_rows():
    """Ten rows of a group that are all right or all wrong tell as much as one."""
    rng = np.random.default_rng(3)
    held, groups = np.zeros(2), np.repeat(np.arange(12), 10)
    for _ in range(60):
        right = rng.random(12) < 0.7
        y = np.repeat(right, 10)
        found = classification_metrics(np.ones(120, bool), y, classes=[False, True], groups=groups)
        assert found.interval == pytest.approx(share_interval(right, 0.95, np.arange(12)))
        noise = np.repeat(rng.standard_normal(12), 10)
        errors = regression_metrics(np.zeros(120), noise, groups=groups)
        intervals = found.interval, errors.mae_interval
        held += [low <= truth <= high for (low, high), truth in zip(intervals, (0.7, np.sqrt(2 / np.pi)), strict=True)]
        alone = regression_metrics(np.zeros(12), noise[::10])
        assert errors.mae_interval == pytest.approx(alone.mae_interval)
    assert held.min() >= 0.9 * 60, held
    assert found.n_groups == errors.n_groups == 12
    assert found.line(majority_baseline([True], [True])).count("on 120 rows of 12 groups")
    assert share_interval(y, 0.95, np.zeros(120)) == (0, 1)
    assert np.isnan(regression_metrics([1.0, 2.0], [1.0, 1.0], groups=np.zeros(2)).mae_interval).all()


def test_regression_intervals_hold_their_confidence():
    rng = np.random.default_rng(2)
    # e = 0.4 noise - 0.2 y, so that E[e^2] = 0.16 + 0.04.
    truth = {"r2": 0.8, "rmse": np.sqrt(0.2), "mae": np.sqrt(0.2 * 2 / np.pi)}
    held = dict.fromkeys(truth, 0)
    for _ in range(400):
        y_true = rng.standard_normal(400)
        found = regression_metrics(y_true, 0.8 * y_true + 0.4 * rng.standard_normal(400))
        for name, value in truth.items():
            lower, upper = getattr(found, f"{name}_interval")
            held[name] += lower <= value <= upper
    assert min(held.values()) >= 0.92 * 400


@pytest.mark.filterwarnings("error")
def test_constant_target_and_single_row_have_no_r2():
    constant = regression_metrics([2.0, 2.0, 2.0], [2.0, 2.5, 1.0])
    assert np.isnan(constant.r2)
    assert np.isfinite(constant.rmse_interval).all()
    single = regression_metrics([2.0], [3.0])
    assert single.rmse == 1.0
    assert single.as_dict()["rmse_interval"] == [None, None]


def test_measures_of_tasks_are_scikit_learns_on_the_rows_that_have_a_label():
    rng = np.random.default_rng(3)
    Y = np.where(rng.random((90, 3)) < 0.3, np.nan, (rng.random((90, 3)) < 0.4).astype(float))
    Y[:, 2] = np.where(np.isnan(Y[:, 2]), np.nan, 0)
    f = rng.normal(size=Y.shape) + np.nan_to_num(Y)
    found = task_metrics(Y, f, ["a", "b", "c"])
    for j in range(2):
        own = ~np.isnan(Y[:, j])
        expected = [m(Y[own, j], f[own, j]) for m in (sk.roc_auc_score, sk.average_precision_score)]
        expected.append(sk.balanced_accuracy_score(Y[own, j], f[own, j] > 0))
        assert [values[j] for values in found.measures.values()] == pytest.approx(expected)
    assert all(np.isnan(values[2]) for values in found.measures.values())
    assert found.mean("ROC AUC") == pytest.approx(found.measures["ROC AUC"][:2].mean())
    assert found.n_positive.tolist() == [int((Y[:, j] == 1).sum()) for j in range(3)]
    assert found.as_dict()["tasks"][2]["ROC AUC"] is None
    for j in range(2):
        first, second = (int((Y[:, j] == label).sum()) for label in (0, 1))
        assert tuple(found.intervals[j]) == auc_interval(found.measures["ROC AUC"][j], first, second)
    assert found.interval == pytest.approx(found.intervals[:2].mean(axis=0).tolist())
    assert found.as_dict()["ROC AUC_interval"] == list(found.interval)
    by_groups = task_metrics(Y, f, ["a", "b", "c"], groups=np.arange(90) // 3)
    assert by_groups.n_groups == 30
    assert np.diff(by_groups.interval) > np.diff(found.interval)
    noisy = f + rng.normal(size=f.shape)
    of_first = regression_metrics(f[:, 0], noisy[:, 0])
    assert tuple(task_metrics(f, noisy, ["a", "b", "c"], False).intervals[0]) == pytest.approx(of_first.r2_interval)
    numbers = task_metrics(f, f + 1, ["a", "b", "c"], is_classification=False)
    assert numbers.n_positive is None
    assert list(numbers.measures) == ["R2", "RMSE", "MAE"]
    there = task_metrics(f, f + 2, ["a", "b", "c"], is_classification=False)
    assert there.measures["MAE"] == pytest.approx([2, 2, 2])
    assert there.measures["RMSE"] == pytest.approx([2, 2, 2])


def test_wilson_with_an_error_is_that_of_as_many_rows_and_never_has_width_0():
    for successes, n in [(0, 12), (12, 12), (9, 10), (47, 93)]:
        share = successes / n
        by_scipy = binomtest(successes, n).proportion_ci(0.95, method="wilson")
        for error in (0.0, float("nan"), np.sqrt(share * (1 - share) / n)):
            assert wilson(share, error, n) == pytest.approx(tuple(by_scipy), abs=1e-7)
    narrow, wide = wilson(0.8, 0.04, 100), wilson(0.8, 0.08, 100)
    assert wide == pytest.approx(wilson(0.8, 0.0, 25))
    assert wide[0] < narrow[0] < 0.8 < narrow[1] < wide[1]
    assert wilson(1.0, 0.3, 40) == wilson(1.0, 0.0, 40)
    assert wilson(1.02, 0.0, 40)[1] == 1.0
    assert independent_rows(np.repeat([0, 1, 2], [2, 2, 2]), 6) == 3
    assert independent_rows(None, 6) == 6


@pytest.mark.parametrize(("gap", "n_first", "n_second"), [(1.5, 20, 60), (2.5, 30, 30), (0.3, 15, 100)])
def test_intervals_of_an_auc_cover_it(gap, n_first, n_second):
    rng, area = np.random.default_rng(0), norm.cdf(gap / np.sqrt(2))
    first, second = rng.normal(size=(500, 1, n_first)), rng.normal(size=(500, n_second, 1)) + gap
    found = [auc_interval(auc, n_first, n_second) for auc in (second > first).mean(axis=(1, 2))]
    covered = np.mean([low <= area <= high for low, high in found])
    assert covered == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize("auc", [0.0, 1.0])
def test_no_interval_of_an_auc_has_width_0(auc):
    low, high = auc_interval(auc, 6, 6)
    assert 0 <= low <= auc <= high <= 1
    assert high - low > 0.2


def test_the_interval_of_a_balanced_accuracy_is_that_of_a_mean_of_recalls():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], [400, 400])
    predicted = np.where(rng.random(800) < 0.2, 1 - y, y)
    found = classification_metrics(y, predicted)
    np.testing.assert_allclose(found.balanced_interval, found.interval, atol=2e-3)  # of as many rows each
    few = classification_metrics(np.repeat([0, 1], [400, 6]), np.repeat([0, 1], [400, 6]))
    low, high = few.balanced_interval
    assert high == 1
    assert low == pytest.approx(1 - (1 - wilson_interval(6, 6)[0]) / 2, abs=1e-3)
    assert mean_share_interval(np.array([0.5]), [(0.2, 0.9)]) == pytest.approx((0.2, 0.9))
