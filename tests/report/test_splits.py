"""Repeated splits against scikit-learn's cross-validation."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_validate

from chimap.data import PerClassSplits
from chimap.report import repeated_splits


@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_scores_are_scikit_learns(n_classes, container):
    X, y = load_digits(return_X_y=True)
    X, y = container(X[y < n_classes]), y[y < n_classes]
    splits = PerClassSplits(10, 40, n_splits=4, random_state=0)
    found = repeated_splits(RidgeClassifier(), X, y, splits)
    expected = cross_validate(RidgeClassifier(), X, y, cv=splits, scoring=["accuracy", "balanced_accuracy"])
    np.testing.assert_allclose(found.accuracy, expected["test_accuracy"])
    np.testing.assert_allclose(found.class_rate, expected["test_balanced_accuracy"])
    assert (found.n_train, found.n_test) == (10 * n_classes, 40 * n_classes)
    assert ((found.mean_average_precision > 0.5) & (found.mean_average_precision <= 1)).all()
    name, mean, deviation = found.rows()[1]
    assert name == "Class recognition rate"
    assert (mean, deviation) == pytest.approx((found.class_rate.mean(), np.std(found.class_rate, ddof=1)))
    plain = found.as_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_one_split_has_no_deviation():
    X, y = load_digits(return_X_y=True)
    found = repeated_splits(RidgeClassifier(), X, y, PerClassSplits(5, n_splits=1, random_state=0))
    assert np.isnan(found.rows()[0][2])
    assert found.as_dict()["accuracy"]["deviation"] is None
