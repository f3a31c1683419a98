"""Repeated splits against scikit-learn's cross-validation."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import ShuffleSplit, cross_validate

from chimap.data.reading import READINGS
from chimap.data.split import PerClassSplits
from chimap.readers import MoleculeBlocks, MorganCounts, WordCounts
from chimap.reports import repeated_splits
from chimap.reports.splits import SplitScores


@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_scores_are_scikit_learns(n_classes, container):
    X, y = load_digits(return_X_y=True)
    X, y = container(X[y < n_classes]), y[y < n_classes]
    splits = PerClassSplits(10, 40, n_splits=4, random_state=0)
    found = repeated_splits(RidgeClassifier(), X, y, splits)
    expected = cross_validate(RidgeClassifier(), X, y, cv=splits, scoring=["accuracy", "balanced_accuracy"])
    np.testing.assert_allclose(found.scores["accuracy"], expected["test_accuracy"])
    class_rate = found.scores["class_rate"]
    np.testing.assert_allclose(class_rate, expected["test_balanced_accuracy"])
    assert (found.n_train, found.n_test) == (10 * n_classes, 40 * n_classes)
    precision = found.scores["mean_average_precision"]
    assert ((precision > 0.5) & (precision <= 1)).all()
    name, mean, deviation = found.rows()[1]
    assert name == "Class recognition rate"
    assert (mean, deviation) == pytest.approx((class_rate.mean(), np.std(class_rate, ddof=1)))
    plain = found.as_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_numbers_and_several_tasks_have_the_scores_of_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    splits = ShuffleSplit(3, test_size=0.3, random_state=0)
    wanted = {"R2": "r2", "RMSE": "neg_root_mean_squared_error", "MAE": "neg_mean_absolute_error"}
    expected = cross_validate(Ridge(), X, y, cv=splits, scoring=wanted)
    found = repeated_splits(Ridge(), X, y, splits)
    several = repeated_splits(Ridge(), X, np.column_stack([y, -y]), splits)
    for name in wanted:
        np.testing.assert_allclose(found.scores[name], np.abs(expected[f"test_{name}"]))
        np.testing.assert_allclose(several.scores[name], found.scores[name])
    assert not found.are_shares
    assert found.rows()[0][0] == "R²"
    Y = np.column_stack([y > 150, y > 100]).astype(float)
    expected = cross_validate(RidgeClassifier(), X, Y[:, 0], cv=splits, scoring="roc_auc")["test_score"]
    other = cross_validate(RidgeClassifier(), X, Y[:, 1], cv=splits, scoring="roc_auc")["test_score"]
    found = repeated_splits(RidgeClassifier(), X, Y, splits)
    np.testing.assert_allclose(found.scores["ROC AUC"], (expected + other) / 2)


def test_one_split_has_no_deviation():
    X, y = load_digits(return_X_y=True)
    found = repeated_splits(RidgeClassifier(), X, y, PerClassSplits(5, n_splits=1, random_state=0))
    assert np.isnan(found.rows()[0][2])
    assert found.as_dict()["accuracy"]["deviation"] is None


def test_scores_tell_what_a_reading_knows_of_all_rows():
    known = {name: reading.known_of_all for name, reading in READINGS.items()}
    assert all(known[each.__name__] for each in (WordCounts, MoleculeBlocks))
    assert not known[MorganCounts.__name__]
    scores = SplitScores({"R2": np.array([0.5, 0.7])}, 7, 3, "Words know all rows.")
    assert scores.lines().endswith("\nWords know all rows.")
    assert scores.as_dict()["note"] == "Words know all rows."
