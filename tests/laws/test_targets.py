"""Units of several targets decide nothing: not the strength, not the width of a loss, not the answers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import HistogramRegressor, PrincipalFeatures
from chimap.losses import EpsilonInsensitive

from ..histograms import histograms

ADDITIVE = {"kernel": "chi2", "features": "additive"}
LANDMARKS = {"kernel": "exp-chi2", "features": "landmarks", "n_components": 40}
CASES = {
    "gcv": LANDMARKS,
    "gcv by name": {**LANDMARKS, "selection": "gcv"},
    "folds": {**LANDMARKS, "selection": 4},
    "holdout": {**LANDMARKS, "selection": "holdout"},
    "fixed": {**LANDMARKS, "alpha": 0.1},
    "components": {**ADDITIVE, "features": PrincipalFeatures([4, 12])},
    "epsilon_insensitive": {**LANDMARKS, "loss": "epsilon_insensitive"},
    "epsilon_insensitive, fixed": {**LANDMARKS, "loss": "epsilon_insensitive", "alpha": 0.1},
    "exact": {"kernel": "exp-chi2", "features": "exact"},
    "race": {},
}
UNITS = np.array([1e-3, 1e6, 1.0])


def rows(n=240):
    X = histograms(n, 10, seed=2)
    rng = np.random.default_rng(0)
    smooth = np.sin(6 * np.sqrt(X[:, 0])) + np.sqrt(X[:, 1])
    Y = np.column_stack([smooth, smooth**2, 3 + X[:, 2]]) + 0.1 * rng.standard_normal((n, 3))
    return X, Y + np.array([5.0, 0.0, -2.0])


@pytest.mark.parametrize("has_gaps", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_targets_of_any_unit(name, has_gaps):
    X, Y = rows(90 if name == "race" else 240)
    if has_gaps:
        if name in ("components", "gcv by name"):
            pytest.skip("refused for targets with missing entries")
        Y[::7, 1] = np.nan
    model = HistogramRegressor(random_state=0, precision="float64", **CASES[name])
    model.fit(X, Y)
    alpha, predicted, sets = model.alpha_, model.predict(X), model.predict_set(X)
    noise = model.noise_variance_
    model.fit(X, Y * UNITS)
    assert model.alpha_ == pytest.approx(alpha, rel=1e-9)
    np.testing.assert_allclose(model.predict(X) / UNITS, predicted, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.predict_set(X) / UNITS[:, None], sets, rtol=1e-4, atol=1e-5)
    if noise is not None:
        np.testing.assert_allclose(model.noise_variance_, noise * UNITS**2, rtol=1e-6)
    if name == "exact":
        held_out = np.nanmean(model.held_out_, axis=0)
        np.testing.assert_allclose(held_out, np.nanmean(predicted, axis=0) * UNITS, rtol=0.1)
    if name == "gcv" and not has_gaps:
        std = model.predict(X, return_std=True)[1]
        np.testing.assert_allclose(std.mean(axis=0), np.sqrt(noise) * UNITS, rtol=0.3)


def test_words_whose_features_stay_in_memory(monkeypatch):
    monkeypatch.setattr("chimap.machines.wide.MOST_SUMMED", 10)
    X, Y = rows()
    X = sp.csr_matrix(X)
    model = HistogramRegressor(random_state=0, precision="float64", **ADDITIVE).fit(X, Y)
    alpha, predicted = model.alpha_, model.predict(X)
    model.fit(X, Y * UNITS)
    assert model._taken["solver"] == "wide ridge"
    assert model.alpha_ == pytest.approx(alpha, rel=1e-9)
    np.testing.assert_allclose(model.predict(X) / UNITS, predicted, rtol=1e-3, atol=1e-3)


def test_batches():
    X, Y = rows()
    Y[5, 1] = np.nan
    found = []
    for units in (np.ones(3), UNITS):
        model = HistogramRegressor(random_state=0, precision="float64", **ADDITIVE)
        for part in (slice(0, 100), slice(100, 240)):
            model.partial_fit(X[part], Y[part] * units)
        found.append((model.predict(X) / units, model.alpha_))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-4, atol=1e-5)
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-6)


def test_a_target_of_noise_does_not_decide():
    X, Y = rows()
    noise = 1e6 * np.random.default_rng(1).standard_normal(240)
    model = HistogramRegressor(random_state=0, **LANDMARKS)
    alone = model.fit(X[:160], Y[:160, 0]).score(X[160:], Y[160:, 0])
    beside = model.fit(X[:160], np.column_stack([Y[:160, 0], noise[:160]])).predict(X[160:])[:, 0]
    missed = np.square(beside - Y[160:, 0]).sum() / np.square(Y[160:, 0] - Y[160:, 0].mean()).sum()
    assert 1 - missed > alone - 0.1


def test_widths_given_in_units_of_the_targets_are_kept():
    """An object says how wide an error costs nothing, for every target in its own units."""
    X, Y = rows()
    loss = EpsilonInsensitive(0.3, 20.0)
    settings = {"loss": loss, "alpha": 0.01, "random_state": 0, "precision": "float64", **ADDITIVE}
    several = HistogramRegressor(**settings).fit(X, Y[:, :2])
    assert several.loss_ == loss
    for j in range(2):
        alone = HistogramRegressor(**settings).fit(X, Y[:, j])
        np.testing.assert_allclose(several.predict(X)[:, j], alone.predict(X), atol=0.02)
