"""An integer weight equals repeated rows, and weight 0 an absent row, for every estimator and loss."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import (
    HistogramClassifier,
    HistogramRegressor,
    MomentsGroupLasso,
    MomentsLasso,
    MomentsRidge,
    MomentsRidgeClassifier,
)

from ..histograms import classes

FIXED = {"precision": "float64", "random_state": 0, "features": "additive"}


def rows(n_classes=3, n=90):
    """Histograms, labels, weights 0 to 3, and the places of the rows that these stand for."""
    X, y = classes(n, 10, n_classes)
    weights = np.random.default_rng(1).integers(0, 4, n)
    return X, y, weights, np.repeat(np.arange(n), weights)


CLASSIFIERS = {
    loss: HistogramClassifier("linear", loss=loss, alpha=0.3, **FIXED)
    for loss in ("square", "logistic", "squared_hinge", "smooth_hinge")
} | {
    "two blocks": HistogramClassifier("linear", blocks=[slice(0, 5), slice(5, 10)], alpha=0.3, **FIXED),
    "components": HistogramClassifier("linear", n_principal=4, alpha=0.3, **FIXED),
    "exact": HistogramClassifier("gaussian", gamma=2.0, alpha=0.3, **FIXED | {"features": "exact"}),
    "moments": MomentsRidgeClassifier(alpha=0.3),
}
REGRESSORS = {
    "square": HistogramRegressor("linear", alpha=0.3, **FIXED),
    "epsilon_insensitive": HistogramRegressor("linear", loss="epsilon_insensitive", alpha=0.3, **FIXED),
    "exact": HistogramRegressor("gaussian", gamma=2.0, alpha=0.3, **FIXED | {"features": "exact"}),
    "moments": MomentsRidge(alpha=0.3),
    "moments, components": MomentsRidge(alpha=0.3, n_components=4),
    "lasso": MomentsLasso(alpha=1e-3),
    "group lasso": MomentsGroupLasso([[0, 1], [2, 3, 4], [5, 6, 7, 8, 9]], alpha=1e-3),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, n_classes):
    X, y, weights, repeated = rows(n_classes)
    model = CLASSIFIERS[name]
    found = model.fit(X, y, sample_weight=weights).decision_function(X)
    np.testing.assert_allclose(found, model.fit(X[repeated], y[repeated]).decision_function(X), atol=1e-9)


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name):
    X, _, weights, repeated = rows()
    y = np.sqrt(X[:, 0]) - X[:, 1]
    model = REGRESSORS[name]
    found = model.fit(X, y, sample_weight=weights).predict(X)
    np.testing.assert_allclose(found, model.fit(X[repeated], y[repeated]).predict(X), atol=1e-9)
