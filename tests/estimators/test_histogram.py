"""The estimators: what they learn, from whatever form the rows come in."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier

import chimap
from chimap import HistogramClassifier, HistogramRegressor, Moments, OptimalMap
from chimap.data import ArraySource
from chimap.engines import Engine, LocalEngine
from chimap.solvers.ridge import ridge

from ..histograms import classes, histograms

SMALL = {"n_components": 64, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:1200], y[:1200], X[1200:], y[1200:]


def regression(n_rows: int = 500):
    X = histograms(n_rows, 10, seed=4)
    return X, 3 + np.sqrt(X[:, 0]) - X[:, 1] ** 2


def test_better_than_linear_on_digits(digits):
    X, y, X_test, y_test = digits
    model = HistogramClassifier("exp-chi2", n_components=1024, random_state=0).fit(X, y)
    linear = RidgeClassifier().fit(X, y).score(X_test, y_test)
    assert model.score(X_test, y_test) > linear + 0.02


@pytest.mark.parametrize(
    "kernel",
    [
        "exp-chi2",
        "exp-intersection",
        "exp-jensen-shannon",
        "exp-hellinger",
        "chi2",
        "intersection",
        "jensen_shannon",
        "hellinger",
    ],
)
def test_every_kernel_learns(kernel):
    X, y = classes(800)
    model = HistogramClassifier(kernel, n_components=256, random_state=0).fit(X[:600], y[:600])
    assert model.score(X[600:], y[600:]) > 0.7


def test_weights_are_ridge_on_the_features():
    X, y = regression()
    model = HistogramRegressor("chi2", features=OptimalMap(n_terms=3), alpha=0.1, precision="float64").fit(X, y)
    Z = OptimalMap("chi2", 3).fit(X).transform(X)
    expected = ridge(Moments(Z.shape[1], 1).update(Z, y), 0.1)
    np.testing.assert_allclose(model.feature_coef_[0], expected.coef[:, 0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.predict(X), Z @ expected.coef[:, 0] + expected.intercept, rtol=1e-7)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, np.asfortranarray, lambda X: X.astype(np.float32)])
def test_same_model_from_every_form_of_the_rows(form):
    X, y = classes(300)
    expected = HistogramClassifier("exp-chi2", **SMALL).fit(X, y).decision_function(X)
    found = HistogramClassifier("exp-chi2", **SMALL).fit(form(X), y).decision_function(form(X))
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_same_model_from_a_source_and_from_arrays():
    X, y = classes(300)
    by_arrays = HistogramClassifier("exp-chi2", **SMALL).fit(X, y)
    by_source = HistogramClassifier("exp-chi2", **SMALL).fit_source(chimap.open_source(X, y))
    np.testing.assert_array_equal(by_source.feature_coef_, by_arrays.feature_coef_)


def test_same_model_whatever_the_budget():
    X, y = classes(6000, 30)
    settings = {**SMALL, "features": "fourier", "precision": "float64", "n_components": 128}
    large = HistogramClassifier(**{"kernel": "exp-chi2"} | settings, memory="1GiB").fit(X, y)
    small = HistogramClassifier(**{"kernel": "exp-chi2"} | settings, memory="7MiB").fit(X, y)
    assert small.alpha_ == pytest.approx(large.alpha_, rel=1e-9)
    np.testing.assert_allclose(small.feature_coef_, large.feature_coef_, rtol=1e-6, atol=1e-9)


def test_one_thread_gives_the_same_model():
    X, y = classes(500)
    one = HistogramClassifier("exp-chi2", **SMALL, n_jobs=1).fit(X, y).decision_function(X)
    all_cores = HistogramClassifier("exp-chi2", **SMALL).fit(X, y).decision_function(X)
    np.testing.assert_allclose(one, all_cores, atol=1e-4)


def test_partial_fit_over_batches_is_fit_on_their_union():
    X, y = regression(900)
    settings = {
        "alpha": 0.3,
        "precision": "float64",
        "kernel": "chi2",
        "features": chimap.DirectMap(n_terms=3, nodes=[0.3, 0.05, 0.01]),
    }
    batches = HistogramRegressor(**{"kernel": "exp-chi2"} | settings)
    for first in range(0, 900, 300):
        batches.partial_fit(X[first : first + 300], y[first : first + 300])
    whole = HistogramRegressor(**{"kernel": "exp-chi2"} | settings).fit(X, y)
    np.testing.assert_allclose(batches.predict(X), whole.predict(X), rtol=1e-8)


def test_partial_fit_chooses_the_alpha_too():
    X, y = classes(900)
    model = HistogramClassifier("exp-chi2", **SMALL, selection=5)
    for first in range(0, 900, 300):
        model.partial_fit(X[first : first + 300], y[first : first + 300], classes=[0, 1, 2])
    assert model.score(X, y) > 0.7
    assert model.n_rows_ == 900
    assert model.selection_.n_folds == 5


@pytest.mark.parametrize("selection", ["auto", "gcv", "holdout", 3])
@pytest.mark.parametrize("features", ["additive", "landmarks", "fourier"])
def test_one_batch_of_all_rows_is_a_fit(features, selection):
    """The user's score has the last word on the strength in both, and landmarks are made of the same rows."""
    X, y = classes(500)
    kernel = "chi2" if features == "additive" else "exp-chi2"
    settings = {"features": features, "n_components": 60, "selection": selection, "random_state": 0}
    whole = HistogramClassifier(kernel, **settings).fit(X, y)
    batch = HistogramClassifier(kernel, **settings).partial_fit(X, y, classes=[0, 1, 2])
    np.testing.assert_array_equal(batch.predict_proba(X), whole.predict_proba(X))
    assert batch.alpha_ == whole.alpha_
    assert ("accuracy" in batch.selection_.settings) == (selection in ("auto", "gcv"))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_partial_fit_draws_the_features_on_the_first_batch(form):
    """What the first batch fixes stays; sparse batches add up as dense ones do."""
    X, y = classes(900)
    features = chimap.FourierFeatures(map=chimap.DirectMap(n_terms=3, nodes=[0.3, 0.05, 0.01]))
    settings = {**SMALL, "features": features, "gamma": 2.0, "alpha": 0.3, "precision": "float64"}
    batches = HistogramClassifier(**{"kernel": "exp-chi2"} | settings)
    for part in (slice(0, 400), slice(400, 401), slice(401, 900)):
        batches.partial_fit(form(X[part]), y[part], classes=[0, 1, 2])
    whole = HistogramClassifier(**{"kernel": "exp-chi2"} | settings).fit(X, y)
    np.testing.assert_allclose(batches.decision_function(X), whole.decision_function(X), rtol=1e-7, atol=1e-9)


def test_two_classes_have_one_score():
    X, y = classes(300, n_classes=2)
    model = HistogramClassifier("exp-chi2", **SMALL).fit(X, y)
    assert model.decision_function(X).shape == (300,)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(model.decision_function(X) > 0).astype(int)])


def test_text_labels():
    X, y = classes(300)
    names = np.array(["cat", "dog", "owl"])[y]
    model = HistogramClassifier("exp-chi2", **SMALL).fit(X, names)
    assert set(model.predict(X)) <= {"cat", "dog", "owl"}
    assert model.score(X, names) > 0.7


def test_many_classes_are_scored_by_a_factor_a_fold():
    X, y = classes(1200, 20, n_classes=12)
    model = HistogramClassifier("exp-chi2", n_components=128, selection=5, random_state=0).fit(X, y)
    assert not model.selection_.iterations.any()
    assert model.score(X, y) > 0.5


def test_given_alphas():
    X, y = classes(300)
    one = HistogramClassifier("exp-chi2", **SMALL, alpha=0.5).fit(X, y)
    assert one.alpha_ == 0.5
    assert one.selection_ is None
    several = HistogramClassifier("exp-chi2", **SMALL, alpha=[10.0, 0.1, 1.0]).fit(X, y)
    np.testing.assert_array_equal(several.selection_.alphas, [0.1, 1.0, 10.0])


def test_normalisation_makes_totals_meaningless():
    X, y = classes(300)
    scaled = X * np.random.default_rng(0).uniform(0.1, 10, (300, 1))
    model = HistogramClassifier("exp-chi2", **SMALL, normalize="l1", precision="float64").fit(X, y)
    np.testing.assert_allclose(model.decision_function(scaled), model.decision_function(X), rtol=1e-9, atol=1e-9)


def test_empty_rows_are_rows():
    X, y = classes(300)
    X[:5] = 0
    assert np.isfinite(HistogramClassifier("exp-chi2", **SMALL, normalize="l1").fit(X, y).decision_function(X)).all()


def test_signed_rows():
    X, y = classes(400)
    X[:, ::2] *= -1
    model = HistogramClassifier(chimap.Exponential(chimap.chi2.signed()), **SMALL).fit(X, y)
    assert model.score(X, y) > 0.7


def test_a_random_state_is_drawn_from_once():
    X, y = classes(120)
    settings = {"kernel": "exp-chi2", "features": "landmarks"}
    automatic = HistogramClassifier(**settings, random_state=np.random.RandomState(0)).fit(X, y)
    named = HistogramClassifier(**settings, n_components=1000, random_state=np.random.RandomState(0)).fit(X, y)
    np.testing.assert_array_equal(automatic.decision_function(X), named.decision_function(X))
    state = np.random.RandomState(0)
    HistogramClassifier(**settings, random_state=state).fit(X, y)
    assert state.randint(2**31) == np.random.RandomState(0).randint(2**31, size=2)[1]


@pytest.mark.parametrize("settings", [{"kernel": "chi2", "loss": "hinge"}, {"kernel": "exp-chi2", "features": "exact"}])
def test_an_engine_is_asked_whether_it_keeps_rows(settings):
    class Another(Engine):
        run = LocalEngine().run

    X, y = classes(60)
    model = HistogramClassifier(random_state=0, **settings)
    expected = clone(model).fit(X, y).decision_function(X)
    by_engine = model.fit_source(ArraySource(X, y), engine=Another())
    np.testing.assert_array_equal(by_engine.decision_function(X), expected)
