"""Learning curves that come with a fit are those of machines that are fitted to the rows they name."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import r2_score

import chimap
from chimap import HistogramClassifier, HistogramRegressor
from chimap.data import ArraySource
from chimap.fit.checkpoint import Checkpoint
from chimap.moments import DoublingParts
from chimap.selection.learning_curve import LearningCurve, curve_of, leading_sizes
from chimap.solvers.exact import DualRidge

from ..histograms import classes

PLAIN = {"kernel": "chi2", "features": "additive", "precision": "float64", "random_state": 0}
X, y = classes(1200, 12)


def fitted(X, y, *, learning_curve=True, groups=None, like=HistogramClassifier, **settings):
    return like(**PLAIN | settings).fit_source(ArraySource(X, y), learning_curve=learning_curve, groups=groups)


def parts_of(model):
    return DoublingParts(model._seed)(0, y.size)


def test_points_are_ridges_of_the_rows_of_the_parts():
    model = fitted(X, y)
    Z, part = model.features_.transform(X), parts_of(model)
    scores = []
    for last in (0, 1, 2):
        own = part <= last
        peer = RidgeClassifier(alpha=model.alpha_).fit(Z[own], y[own])
        scores.append(peer.score(Z[part == 3], y[part == 3]))
    curve = model.learning_curve_
    np.testing.assert_array_equal(curve.rows, [*np.cumsum(np.bincount(part))])
    np.testing.assert_allclose(curve.scores[:-1], scores, atol=1e-12)
    assert curve.measure == "accuracy"


def test_of_targets_the_last_point_leaves_out_each_row_alone():
    t = X @ np.arange(12) + 0.1 * np.random.default_rng(0).normal(size=y.size)
    model = fitted(X, t, like=HistogramRegressor, alpha=0.05)
    Z, last = model.features_.transform(X), np.flatnonzero(parts_of(model) == 3)
    left_out = [Ridge(alpha=0.05).fit(np.delete(Z, i, axis=0), np.delete(t, i)).predict(Z[i : i + 1])[0] for i in last]
    curve = model.learning_curve_
    assert curve.measure == "r2"
    part = parts_of(model)
    grown = [Ridge(alpha=0.05).fit(Z[part <= k], t[part <= k]).score(Z[last], t[last]) for k in (0, 1, 2)]
    np.testing.assert_allclose(curve.scores[:-1], grown, atol=1e-9)
    assert curve.scores[-1] == pytest.approx(r2_score(t[last], left_out), abs=1e-9)


def test_the_model_is_the_same_with_and_without():
    one, other = fitted(X, y), fitted(X, y, learning_curve=False)
    np.testing.assert_allclose(one._coef, other._coef, rtol=1e-7, atol=1e-9)
    assert other.learning_curve_ is None


def test_a_budget_without_room_for_parts_gives_the_model_alone():
    settings = {"kernel": "exp-chi2", "features": "fourier", "n_components": 1500, "memory": "50MiB"}
    model = fitted(X, y, **settings)
    assert model.learning_curve_ is None
    np.testing.assert_array_equal(model._coef, fitted(X, y, learning_curve=False, **settings)._coef)
    roomy = fitted(X, y, **settings | {"memory": "200MiB"})
    assert roomy.learning_curve_ is not None


@pytest.mark.parametrize("settings", [{}, {"selection": 2}], ids=["one sum", "two folds"])
def test_few_rows_and_few_folds_give_no_curve(settings):
    some = slice(200) if not settings else slice(None)  # 200 rows are too few for parts
    assert fitted(X[some], y[some], **settings).learning_curve_ is None


def test_folds_that_choose_serve_as_parts():
    curve = fitted(X, y, selection=5).learning_curve_
    np.testing.assert_allclose(curve.rows / y.size, [0.2, 0.4, 0.6, 0.8], atol=0.01)
    assert curve.scores[-1] > curve.scores[0]
    assert fitted(X, y, selection=5, learning_curve=False).learning_curve_ is None


@pytest.mark.parametrize("settings", [{}, {"kernel": "exp-chi2", "features": "exact"}], ids=["sums", "exact"])
def test_a_fit_does_not_fail_for_want_of_a_point(settings):
    def choosy(model, outputs, labels):
        if labels.size < 1000:
            raise ValueError("too few rows")
        return model.score(outputs, labels)

    model = fitted(X, y, scoring=choosy, **settings)
    assert model.learning_curve_ is None
    assert model.score(X, y) > 0.8


def test_of_rare_classes_the_area_under_the_curve_is_shown():
    rare = (y == 0) & (np.random.default_rng(0).random(y.size) < 0.15)
    curve = fitted(X, rare.astype(int)).learning_curve_
    assert curve.measure == "roc_auc"
    assert (curve.scores > 0.5).all()


def test_a_leading_corner_of_the_factor_is_the_machine_of_these_rows():
    rng = np.random.default_rng(0)
    U, Y, w = rng.normal(size=(90, 5)), rng.normal(size=(90, 2)), rng.uniform(0.5, 2, 90)
    K = np.exp(-np.square(U[:, None] - U).sum(axis=2) / 5)

    def machine(n):
        return DualRidge(np.tril(K[:n, :n], -1), np.ones(n), Y[:n], w[:n])

    whole, small = machine(90), machine(40)
    whole.solve(0.3)
    alone = small.solve(0.3)
    expected = Y[60:] - K[60:, :40] @ alone.weights - alone.intercept
    np.testing.assert_allclose(whole.of_leading(40, 60), expected, atol=1e-9)


def test_an_exact_machine_has_its_curve_for_nothing():
    model = fitted(X, y, learning_curve=False, kernel="exp-chi2", features="exact")
    curve = model.learning_curve_
    np.testing.assert_array_equal(curve.rows, [150, 300, 600, 1200])
    order = model.row_numbers_
    scores = []
    for n in (150, 300, 600):
        own, last = order[:n], order[600:]
        peer = fitted(
            X[own], y[own], kernel="exp-chi2", features="exact", gamma=model.kernel_.gamma, alpha=model.alpha_
        )
        scores.append(peer.score(X[last], y[last]))
    np.testing.assert_allclose(curve.scores[:-1], scores, atol=0.004)


def test_groups_are_taken_whole():
    starts = np.array([0, 30, 140, 260, 480, 900])
    assert leading_sizes(1000, starts) == [30, 140, 480]
    groups = np.repeat(np.arange(60), 20)
    curve = fitted(X, y, kernel="exp-chi2", features="exact", groups=groups).learning_curve_
    assert (curve.rows % 20 == 0).all()
    assert curve.rows[-1] == y.size


def test_too_few_rows_have_none():
    assert fitted(X[:100], y[:100]).learning_curve_ is None
    assert curve_of("accuracy", [(10, float("nan")), (20, 0.5)]) is None


@pytest.mark.parametrize("resumed_with", [True, False])
def test_an_interrupted_fit_goes_on_with_its_parts(resumed_with, tmp_path):
    class Stop(Exception):
        pass

    class Once(Checkpoint):
        def reached(self, *standing):
            super().reached(*standing)
            raise Stop

    source = ArraySource(X, y)
    make = lambda: HistogramClassifier(**PLAIN, memory="4MiB")  # noqa: E731
    whole = make().fit_source(source, learning_curve=True, checkpoint=Checkpoint(tmp_path / "whole", 1e-9))
    with pytest.raises(Stop):
        make().fit_source(source, learning_curve=True, checkpoint=Once(tmp_path / "cut", 1e-9))
    again = make().fit_source(source, learning_curve=resumed_with, checkpoint=Checkpoint(tmp_path / "cut", 1e-9))
    np.testing.assert_array_equal(again.learning_curve_.scores, whole.learning_curve_.scores)
    np.testing.assert_array_equal(again._coef, whole._coef)


def test_a_file_keeps_it(tmp_path):
    model = fitted(X, y)
    model.save(tmp_path / "a.model")
    kept = chimap.load(tmp_path / "a.model").learning_curve_
    assert isinstance(kept, LearningCurve)
    np.testing.assert_array_equal(kept.scores, model.learning_curve_.scores)
