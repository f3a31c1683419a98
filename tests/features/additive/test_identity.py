"""The linear kernel is learned from the bins themselves, wherever they lie."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import HistogramClassifier, HistogramRegressor, load
from chimap.features.additive.identity import IdentityMap


def far(mean, dtype, n=600, n_bins=20):
    rng = np.random.default_rng(0)
    U = rng.random((n, n_bins))
    return (mean + U).astype(dtype), U @ rng.standard_normal(n_bins)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("mean", [0, 10, 100, 1000])
def test_rows_far_from_zero_lose_nothing(mean, precision):
    X, value = far(mean, precision)
    y = value > np.median(value)
    model = HistogramClassifier("linear", precision=precision, random_state=0).fit(X[:400], y[:400])
    assert isinstance(model.features_, IdentityMap)
    assert model.describe()["features"] == "the bins as they are"
    assert model.score(X[400:], y[400:]) > 0.95


def test_is_ridge_on_the_rows(tmp_path):
    X, value = far(3, np.float64)
    model = HistogramRegressor("linear", precision="float64", random_state=0).fit(X - 3.5, value)  # of both signs
    centred = X - X.mean(axis=0)
    strength = getattr(model, "alpha_", None) or model.strength_
    weights = np.linalg.solve(centred.T @ centred + strength * np.eye(20), centred.T @ value)
    np.testing.assert_allclose(model.feature_coef_[0], weights, rtol=1e-8)
    np.testing.assert_allclose(model.predict(sp.csr_matrix(X - 3.5)), model.predict(X - 3.5), atol=1e-12)
    model.save(tmp_path / "linear.model")
    np.testing.assert_array_equal(load(tmp_path / "linear.model").predict(X), model.predict(X))
