"""Ridge on more mapped bins than their products may be summed up for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import HistogramClassifier, HistogramRegressor, load
from chimap._validation import MemoryBudgetError
from chimap.machines.explicit import MOST_SUMMED
from chimap.solvers.wide_ridge import WideRidgeSolver


def words(n=300, n_bins=5000, seed=0):
    """Counts of words, a few of which say the class."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, n_bins, density=0.004, random_state=rng, format="lil")
    y = np.arange(n) % 3
    for i in range(n):
        X[i, y[i] * 10 + rng.choice(10, 3, replace=False)] = 1
    X = X.tocsr()
    X.data = np.ceil(3 * X.data)
    return X, y


def model(**given):
    return HistogramClassifier("chi2", features="additive", random_state=0, **given)


def test_weights_are_those_of_the_exact_machine(monkeypatch):
    monkeypatch.setattr("chimap.solvers.wide_ridge.WideRidgeProblem.tolerance", 1e-7)
    X, y = words()
    assert 2 * X.shape[1] > MOST_SUMMED
    wide = model(alpha=1.0, precision="float64").fit(X[:200], y[:200])
    exact = HistogramClassifier("chi2", features="exact", alpha=1.0, precision="float64").fit(X[:200], y[:200])
    np.testing.assert_allclose(wide.decision_function(X[200:]), exact.decision_function(X[200:]), atol=1e-4)
    assert wide.score(X[200:], y[200:]) > 0.9


def test_the_strength_is_chosen_on_rows_held_out(tmp_path):
    X, y = words()
    wide = model().fit(X, y)
    assert wide.selection_.rule == "holdout"
    assert len(wide.selection_.table()) > 2
    assert np.allclose(wide.predict_proba(X).sum(axis=1), 1)
    wide.save(tmp_path / "a.model")
    np.testing.assert_array_equal(load(tmp_path / "a.model").predict(X), wide.predict(X))


def test_numbers_are_learned_too():
    X, y = words()
    target = y + 100.0
    wide = HistogramRegressor("hellinger", random_state=0, alpha=0.01).fit(X[:200], target[:200])
    assert wide.fitted.recipe.solver == WideRidgeSolver.name
    assert wide.score(X[200:], target[200:]) > 0.5


def test_a_weight_of_two_is_a_row_twice():
    X, y = words(120)
    counts = np.arange(120) % 2 + 1
    rows = np.repeat(np.arange(120), counts)
    weighted = model(alpha=1.0).fit(X, y, sample_weight=counts)
    repeated = model(alpha=1.0).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=0.02)


def test_a_budget_that_is_too_small_names_what_would_do():
    X, y = words()
    with pytest.raises(MemoryBudgetError, match="ridge of wide rows keeps the features of all 300 rows"):
        model(alpha=1.0, memory="2MiB").fit(X, y)
