"""Which rows of a pool to label next."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

from chimap import HistogramClassifier, HistogramRegressor, suggest
from chimap.diagnostics.suggestion import _greedy, _posterior

X, y = load_digits(return_X_y=True)
KNOWN, POOL = X[:80], X[80:200]
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def model():
    return HistogramClassifier("exp-chi2", features="exact", alpha=0.1, random_state=0).fit(KNOWN, y[:80])


def test_the_covariance_is_that_of_a_gaussian_process():
    Z = RNG.normal(size=(30, 4))
    square = Z @ Z.T
    kernel = DotProduct(1e-9, "fixed") + ConstantKernel(1e4 * np.diag(square).mean(), "fixed")
    process = GaussianProcessRegressor(kernel, alpha=0.7, optimizer=None).fit(Z[:20], np.zeros(20))
    _, expected = process.predict(Z[20:], return_cov=True)
    np.testing.assert_allclose(_posterior(square, 20, 0.7), expected, atol=1e-6)


def test_the_greedy_choice_is_that_of_all_choices_and_what_it_removes_is_what_labels_remove():
    Z = RNG.normal(size=(30, 4))
    C, weights = _posterior(Z @ Z.T, 20, 0.7), RNG.random(10)
    units = [np.array([i]) for i in range(10)]
    order, removed = _greedy(C, 0.7, weights, units, np.ones(10), 3)
    left = []
    for row in range(10):  # labelled too
        labelled = np.r_[0:20, 20 + row, 20:30]
        left.append(weights @ _posterior((Z @ Z.T)[np.ix_(labelled, labelled)], 21, 0.7).diagonal())
    assert order[0] == np.argmin(left)
    assert removed[0] == pytest.approx(1 - min(left) / (weights @ C.diagonal()), rel=1e-6)
    labelled = np.r_[0:20, 20 + np.array(order), 20:30]
    after = weights @ _posterior((Z @ Z.T)[np.ix_(labelled, labelled)], 23, 0.7).diagonal()
    assert removed[-1] == pytest.approx(1 - after / (weights @ C.diagonal()), rel=1e-6)
    assert _greedy(C, 0.7, weights, [np.arange(10)], np.ones(10), 1)[1][0] > removed[-1]


def test_copies_are_not_chosen_twice(model):
    twice = np.vstack([POOL[:40], POOL[:40], KNOWN[:10]])
    found = suggest(model, twice, 20)
    places = np.concatenate(found.places)
    assert np.unique(places % 40).size == 20
    assert places.max() < 80  # a labelled row tells nothing


def test_rows_that_the_model_keeps_are_the_labelled_ones(model):
    alone, given = suggest(model, POOL, 8), suggest(model, POOL, 8, labelled=KNOWN)
    assert alone.chosen == given.chosen
    np.testing.assert_allclose(alone.removed, given.removed, rtol=1e-4)
    assert (np.diff(alone.removed) > 0).all()
    assert alone.as_dict()["answers"][0] == model.predict(POOL)[int(alone.chosen[0])]


def test_groups_and_costs(model):
    groups = np.repeat(["a", "b", "c", "d"], 30)
    found = suggest(model, POOL, 4, groups=groups)
    assert sorted(found.chosen) == ["a", "b", "c", "d"]
    assert sum(rows.size for rows in found.places) == 120
    cost = np.where(np.arange(120) % 2, 1e6, 1.0)
    cheap = np.concatenate(suggest(model, POOL, 20, cost=cost).places)
    assert not (cheap % 2).any()
    assert "Labelled groups" in found.to_html()


def test_models_without_rows_take_the_labelled_ones():
    additive = HistogramRegressor("chi2", alpha=0.1).fit(KNOWN, y[:80])
    with pytest.raises(ValueError, match="labelled"):
        suggest(additive, POOL)
    assert len(suggest(additive, POOL, 3, labelled=KNOWN).chosen) == 3


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"n": 121}, "120 rows to choose from"),
        ({"groups": np.zeros(3)}, "a group for each of 120 rows"),
        ({"cost": np.zeros(120)}, "a number above 0 for each of 120 rows"),
        ({"cost": np.full(120, "dear")}, "expected numbers"),
    ],
)
def test_bad_input_is_refused(model, more, message):
    with pytest.raises(ValueError, match=message):
        suggest(model, POOL, **more)
