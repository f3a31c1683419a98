"""The estimators with other losses than the square."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import chimap
from chimap import HistogramClassifier, HistogramRegressor, OptimalMap
from chimap._validation import DataError
from chimap.estimators.histogram import kth_highest
from chimap.losses import EpsilonInsensitive, Logistic, SmoothHinge, Square

from ..histograms import classes, histograms

SMOOTH = ("logistic", "squared_hinge", "smooth_hinge")
SMALL = {"features": "fourier", "n_components": 64, "random_state": 0}


def regression(n_rows: int = 500):
    X = histograms(n_rows, 10, seed=4)
    return X, 3 + np.sqrt(X[:, 0]) - X[:, 1] ** 2


@cache
def learned_digits(loss):
    """A model of the digits, and its score on the others."""
    X, y = load_digits(return_X_y=True)
    model = HistogramClassifier("exp-chi2", **{**SMALL, "n_components": 128}, loss=loss)
    return model.fit(X[:1200], y[:1200]), model.score(X[1200:], y[1200:])


@pytest.mark.parametrize("loss", [*SMOOTH, "hinge"])
def test_every_loss_learns(loss):
    model, score = learned_digits(loss)
    assert score > learned_digits("square")[1] - 0.015
    assert (model.selection_.rule, model.selection_.measure) == ("holdout", "loss")
    assert model.alpha_ == model.selection_.best["alpha"]
    assert (model.n_passes_ > 5) == (loss != "hinge")


def features(X):
    return OptimalMap("chi2", 2).fit(X).transform(X)


EXACT = {"kernel": "chi2", "features": OptimalMap(n_terms=2), "precision": "float64"}


def test_logistic_is_scikit_learns_on_the_features():
    X, y = classes(12_000)
    y = y == y[0]
    Z = features(X)
    expected = LogisticRegression(C=2.0, tol=1e-8, max_iter=2000).fit(Z, y).decision_function(Z)
    for memory in ("1GiB", "4MiB"):
        model = HistogramClassifier(**EXACT, loss="logistic", alpha=0.5, memory=memory).fit(X, y)
        # the search ends at a thousandth of the gradient at zero weights, which leaves some thousandths in the scores
        np.testing.assert_allclose(model.decision_function(X), expected, atol=5e-3 * np.abs(expected).max())


def test_squared_hinge_is_scikit_learns_on_the_features():
    X, y = classes(600)
    y = y == y[0]
    model = HistogramClassifier(**{"kernel": "exp-chi2"} | EXACT, loss="squared_hinge", alpha=0.5).fit(X, y)
    peer = LinearSVC(C=2.0, tol=1e-8, intercept_scaling=100, max_iter=100_000).fit(features(X), y)
    expected = peer.decision_function(features(X))
    np.testing.assert_allclose(model.decision_function(X), expected, atol=5e-3 * np.abs(expected).max())


def test_epsilon_insensitive_minimises_its_objective():
    X, y = regression()
    model = HistogramRegressor(**{"kernel": "exp-chi2"} | EXACT, loss="epsilon_insensitive", alpha=0.1).fit(X, y)
    assert model.loss_ == EpsilonInsensitive(0.1 * y.std(), 10 / y.std())

    def objective(w, b):
        return model.loss_.value(y, features(X) @ w + b).sum() + 0.05 * w @ w

    least = objective(model.feature_coef_[0], model.intercept_[0])
    assert least < objective(np.zeros(20), np.median(y))
    rng = np.random.default_rng(0)
    for _ in range(20):
        step = rng.standard_normal(21) * 0.03 * np.abs(model.feature_coef_).max()
        assert objective(model.feature_coef_[0] + step[:20], model.intercept_[0] + step[20]) > least * (1 - 1e-3)


def test_epsilon_insensitive_withstands_outliers():
    X, y = regression()
    spoiled = y.copy()
    spoiled[::25] += 100
    settings = {**SMALL, "alpha": 1e-2, "precision": "float64"}
    loss = EpsilonInsensitive(0.01, 100.0)
    robust = HistogramRegressor("exp-chi2", loss=loss, **settings).fit(X, spoiled).score(X, y)
    assert robust > 0.8
    assert HistogramRegressor(**{"kernel": "exp-chi2"} | settings).fit(X, spoiled).score(X, y) < 0


@pytest.mark.parametrize(
    ("loss", "alpha"), [("logistic", "auto"), *((loss, 1.0) for loss in (*SMOOTH[1:], SmoothHinge(0.3)))]
)
def test_kept_and_replayed_features_give_one_model(loss, alpha):
    X, y = classes(9000, 20)
    settings = {**SMALL, "loss": loss, "alpha": alpha, "precision": "float64"}
    kept = HistogramClassifier(**{"kernel": "exp-chi2"} | settings, memory="1GiB").fit(X, y)
    replayed = HistogramClassifier(**{"kernel": "exp-chi2"} | settings, memory="4MiB").fit(X, y)
    assert replayed.alpha_ == pytest.approx(kept.alpha_, rel=1e-6)
    np.testing.assert_allclose(replayed.decision_function(X[:500]), kept.decision_function(X[:500]), rtol=0, atol=0.02)


def counting(source, monkeypatch):
    """A list that grows by one each time that the chunks of the source are read."""
    reads, chunks = [], source.chunks
    monkeypatch.setattr(source, "chunks", lambda rows: reads.append(rows) or chunks(rows))
    return reads


@pytest.mark.parametrize(("memory", "again"), [("1GiB", False), ("3MiB", True)])
def test_the_source_is_read_again_only_where_features_do_not_fit(memory, again, monkeypatch):
    X, y = classes(9000, 20)
    source = chimap.open_source(X, y)
    reads = counting(source, monkeypatch)
    model = HistogramClassifier("exp-chi2", **SMALL, loss="logistic", alpha=1.0, memory=memory).fit_source(source)
    assert len(reads) == (1 + model.n_passes_ if again else 1)


def test_alphas_are_tried_as_given():
    X, y = classes(400)
    model = HistogramClassifier("exp-chi2", **SMALL, loss="logistic", alpha=[0.01, 1.0, 100.0]).fit(X, y)
    np.testing.assert_array_equal(model.selection_.alphas, [0.01, 1.0, 100.0])
    assert model.selection_.means.argmin() == model.selection_.chosen
    given = HistogramClassifier("exp-chi2", **SMALL, loss="logistic", alpha=model.alpha_).fit(X, y)
    assert given.selection_ is None
    np.testing.assert_allclose(given.decision_function(X), model.decision_function(X), atol=0.05)


def test_an_object_of_the_square_loss_is_ridge():
    X, y = classes(300)
    by_name = HistogramClassifier("exp-chi2", **SMALL).fit(X, y)
    by_object = HistogramClassifier("exp-chi2", **SMALL, loss=Square()).fit(X, y)
    np.testing.assert_array_equal(by_object.feature_coef_, by_name.feature_coef_)
    assert by_name.loss_ == Square()


@pytest.mark.parametrize("loss", ["logistic", SmoothHinge(0.5), "hinge"])
def test_models_are_saved_and_pickled(tmp_path, loss):
    X, y = classes(300)
    model = HistogramClassifier("exp-chi2", **SMALL, loss=loss).fit(X, y)
    model.save(tmp_path / "model")
    for copy in (chimap.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
        assert copy.loss_ == model.loss_
        assert copy.selection_.best["alpha"] == model.selection_.best["alpha"]


def test_rows_are_not_added_to_losses_that_read_them_again():
    X, y = classes(100)
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as caught:
        HistogramClassifier("exp-chi2", loss="logistic").partial_fit(X, y, classes=np.unique(y))
    assert "partial_fit needs loss='square'" in str(caught.value.__cause__)
    assert hasattr(HistogramRegressor("exp-chi2"), "partial_fit")
    assert not hasattr(HistogramRegressor("exp-chi2", loss="epsilon_insensitive"), "partial_fit")


def test_bad_losses_are_named():
    X, y = classes(50)
    with pytest.raises(ValueError, match=r"loss must be one of 'square', 'logistic', .*; got 'cubic'"):
        HistogramClassifier("exp-chi2", loss="cubic").fit(X, y)
    with pytest.raises(
        ValueError, match="loss must be one of 'square', 'epsilon_insensitive', 'poisson', 'quantile'; got 'logistic'"
    ):
        HistogramRegressor("exp-chi2", loss="logistic").fit(X, y)
    with pytest.raises(
        ValueError,
        match=r"takes the losses square, epsilon_insensitive, poisson, quantile, and .* of domain 'real'; got Log",
    ):
        HistogramRegressor("exp-chi2", loss=Logistic()).fit(X, np.arange(50.0))


# --- calibration


def test_kth_highest_against_sorting():
    scores = np.random.default_rng(0).standard_normal((50, 4))
    for k in (1, 7, 50):
        np.testing.assert_array_equal(kth_highest(scores, k), -np.sort(-scores, axis=0)[k - 1])


def test_calibration_undoes_shifts_between_classes():
    X, y = load_digits(return_X_y=True)
    model = HistogramClassifier("exp-chi2", n_components=256, random_state=0).fit(X[:1200], y[:1200])
    good = model.score(X[1200:], y[1200:])
    model.model_ = replace(model.fitted, intercept=model.intercept_ + np.linspace(-1, 1, 10))
    assert model.score(X[1200:], y[1200:]) < good - 0.1
    model.equalise_levels(X[1200:], k=60)
    assert model.score(X[1200:], y[1200:]) > good - 0.02
    np.testing.assert_allclose(kth_highest(model.decision_function(X[1200:]), 60), 0, atol=1e-6)


def test_calibration_of_two_classes_sets_how_many_are_called():
    X, y = classes(300)
    model = HistogramClassifier("exp-chi2", **SMALL).fit(X, y == y[0]).equalise_levels(X, k=40)
    assert abs(int(model.predict(X).sum()) - 40) <= 1


def test_calibration_checks_its_input():
    X, y = classes(100)
    with pytest.raises(NotFittedError):
        HistogramClassifier("exp-chi2").equalise_levels(X, k=3)
    model = HistogramClassifier("exp-chi2", **SMALL).fit(X, y)
    with pytest.raises(ValueError, match="k=101, but there are 100 rows"):
        model.equalise_levels(X, k=101)
    with pytest.raises(ValueError, match="k must be a positive whole number"):
        model.equalise_levels(X, k=0)
    with pytest.raises(DataError, match=r"scores must be \(rows, classes\)"):
        kth_highest(np.zeros(3), 1)
