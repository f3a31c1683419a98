"""Probabilities of every classifier and loss, from outputs that were held out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit, softmax
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

import chimap
from chimap import (
    AnchorMap,
    FourierKernelLearner,
    HistogramClassifier,
    LookupClassifier,
    MultipleKernelLearner,
    OnlineIntersectionClassifier,
    PrincipalFeatures,
)
from chimap.selection.calibration import Calibration, _sigmoid, _sigmoids

from ..held_out import watched

DIGITS = load_digits(return_X_y=True)
SMALL = {"n_components": 128, "random_state": 0, "precision": "float64"}
HALVES = [slice(0, 32), slice(32, 64)]

CLASSIFIERS = {
    "folds": HistogramClassifier("exp-chi2", **SMALL),
    "gcv": HistogramClassifier("exp-chi2", **SMALL, selection="gcv"),
    "given": HistogramClassifier("exp-chi2", **SMALL, alpha=1.0),
    "components": HistogramClassifier("exp-chi2", **SMALL, features=PrincipalFeatures([20, 60])),
    "few rows": HistogramClassifier("exp-chi2", n_components=2048, random_state=0, alpha=1.0),
    "auto": HistogramClassifier(random_state=0),
    "exact": HistogramClassifier("exp-chi2", features="exact"),
    "hinge": HistogramClassifier("chi2", loss="hinge", random_state=0),
    "hinge, given": HistogramClassifier("chi2", loss="hinge", alpha=10.0, random_state=0),
    "squared hinge": HistogramClassifier("exp-chi2", **SMALL, loss="squared_hinge", alpha=[1.0, 10.0]),
    "squared hinge, given": HistogramClassifier("exp-chi2", **SMALL, loss="squared_hinge", alpha=10.0),
    "smooth hinge, given": HistogramClassifier("exp-chi2", **SMALL, loss="smooth_hinge", alpha=10.0),
    "logistic": HistogramClassifier("exp-chi2", **SMALL, loss="logistic", alpha=1.0),
    "widths": FourierKernelLearner(n_components=128, n_tune_components=32, max_iter=2, random_state=0),
    "channels": MultipleKernelLearner(n_components=64, blocks=HALVES, n_alphas=4, selection=2, random_state=0),
    "lookup": LookupClassifier(AnchorMap(n_anchors=17), alpha=100.0),
    "online": OnlineIntersectionClassifier(random_state=0),
}


def calibration_error(p: np.ndarray, right: np.ndarray) -> float:
    """Expected calibration error by ten bins of the largest probability."""
    sure = p.max(axis=1)
    bins = np.minimum((10 * sure).astype(int), 9)
    return sum(abs(sure[bins == k].sum() - right[bins == k].sum()) for k in range(10)) / len(p)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("n_classes", [2, 10])
def test_probabilities_say_how_often_they_are_right(name, n_classes):
    X, y = DIGITS
    y = y if n_classes == 10 else (y >= 5).astype(int)
    n = 400 if name == "few rows" else 700
    model = clone(CLASSIFIERS[name]).fit(X[:n], y[:n])
    p = model.predict_proba(X[n:])
    assert p.shape == (len(X) - n, n_classes)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-8)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X[n:])), p, atol=1e-12)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X[n:]))
    assert calibration_error(p, model.classes_[p.argmax(axis=1)] == y[n:]) < 0.06


@pytest.mark.parametrize(
    "settings", [{}, {"selection": "gcv"}, {"features": PrincipalFeatures(40)}, {"n_components": 2048}]
)
def test_rows_are_left_out_as_by_fits_without_them(settings, monkeypatch):
    X, y = (a[:60] for a in load_digits(return_X_y=True))
    model = HistogramClassifier("gaussian", **(SMALL | settings), gamma=1e-3, alpha=1.0)
    if "selection" in settings:
        model.set_params(alpha=[1.0])
    seen = watched(monkeypatch)
    model.fit(X, y)
    held_out = seen[-1]
    np.testing.assert_array_equal(held_out.y, y)
    if "features" in settings:
        return  # whose components are of all rows
    for i in (0, 7, 31):
        rest = np.setdiff1d(np.arange(60), i)
        other = clone(model).set_params(alpha=1.0).fit(X[rest], y[rest])
        np.testing.assert_allclose(held_out.outputs[i], other.decision_function(X[[i]])[0], atol=1e-7)


def test_left_out_by_a_step_of_newton(monkeypatch):
    X, y = (a[:80] for a in load_digits(return_X_y=True))
    model = HistogramClassifier("exp-chi2", **SMALL, gamma=0.02, loss="squared_hinge", alpha=3.0)
    seen = watched(monkeypatch)
    model.fit(X, y)
    held_out = seen[-1]
    gaps, moves = [], []
    for i in range(0, 80, 8):
        rest = np.setdiff1d(np.arange(80), i)
        other = clone(model).fit(X[rest], y[rest]).decision_function(X[[i]])[0]
        gaps.append(np.abs(held_out.outputs[i] - other).mean())
        moves.append(np.abs(model.decision_function(X[[i]])[0] - other).mean())
    assert np.mean(gaps) < 0.5 * np.mean(moves)


def _exact(model: Calibration, outputs: np.ndarray) -> np.ndarray:
    """Probabilities without agreement with the largest output."""
    scores = model.scale * outputs + model.offsets
    scores = np.hstack([np.zeros_like(scores), scores]) if outputs.shape[1] == 1 else scores
    return softmax(scores, axis=1)


@pytest.mark.parametrize("t", [1, 4])
def test_calibration_finds_the_model_that_outputs_came_from(t):
    random = np.random.default_rng(0)
    outputs = random.standard_normal((20_000, t))
    truth = Calibration(2.5, np.linspace(-0.5, 0.5, t) if t > 1 else np.array([0.7]))
    place = (random.random((len(outputs), 1)) > _exact(truth, outputs).cumsum(axis=1)).sum(axis=1)
    found = Calibration.of(outputs, place)
    if t == 1:
        assert abs(found.scale - 2.5) < 0.1
        np.testing.assert_allclose(found.offsets, truth.offsets, atol=0.1)
    else:
        assert np.abs(found(outputs) - truth(outputs)).mean() < 0.005
    twice = Calibration.of(outputs[:500], place[:500], np.full(500, 2.0))
    repeated = Calibration.of(np.repeat(outputs[:500], 2, axis=0), np.repeat(place[:500], 2))
    np.testing.assert_allclose(twice(outputs), repeated(outputs), atol=1e-4)


def test_sigmoids_of_the_classes_mend_what_a_softmax_of_ridge_outputs_cannot_say():
    random = np.random.default_rng(0)
    P = random.dirichlet(np.full(20, 0.2), 4000)
    place = (random.random((4000, 1)) > P.cumsum(axis=1)).sum(axis=1)
    outputs = 2 * P - 1  # what ridge of one class against the rest comes to
    found = Calibration.of(outputs[:2000], place[:2000])
    assert found.power > 1

    def loss(scale: float) -> float:
        return log_loss(place[2000:], softmax(scale * outputs[2000:], axis=1))

    plain = minimize_scalar(loss, bounds=(0, 20), method="bounded").fun
    assert log_loss(place[2000:], found(outputs[2000:])) < plain - 0.05


def test_a_softmax_is_found_where_outputs_are_its_exponents():
    random = np.random.default_rng(0)
    outputs = 3 * random.standard_normal((20_000, 5))
    truth = softmax(outputs, axis=1)
    place = (random.random((len(outputs), 1)) > truth.cumsum(axis=1)).sum(axis=1)
    found = Calibration.of(outputs, place)
    assert abs(found.scale - 1) < 0.1
    assert found.power < 0.1


def test_classes_of_few_rows_have_the_sigmoid_of_all():
    random = np.random.default_rng(0)
    outputs = random.standard_normal((400, 6)) - 1
    place = random.permutation(np.repeat(np.arange(5), 80))  # the last class has none
    outputs[np.arange(400), place] += 1.5
    found = Calibration.of(outputs, place)
    assert found.sigmoids[0].min() > 0.5 * found.sigmoids[0].max()
    assert found(outputs)[:, 5].mean() < 0.03


def test_sigmoids_of_classes_are_the_most_probable_about_that_of_all():
    """The least of the loss and of the prior, as the formulas say: no other slope and offset is better."""
    random = np.random.default_rng(0)
    outputs, place = random.standard_normal((60, 3)), random.permutation(np.repeat([0, 1, 2], [40, 15, 5]))
    is_class = place[:, None] == np.arange(3)
    outputs += 1.5 * is_class - np.array([0.0, 0.5, 1.0])
    w = np.ones(60)
    (slope,), (offset,) = common = _sigmoids(outputs.reshape(-1, 1), is_class.reshape(-1, 1), np.ones(180))
    found = _sigmoids(outputs, is_class, w, common)
    for k in range(3):
        m = is_class[:, k].sum()
        target = np.where(is_class[:, k], (m + 1) / (m + 2), 1 / (60 - m + 2))

        def loss(x, f=outputs[:, k], target=target):
            scores = np.exp(x[0]) * f + x[1]
            fits = target * log_expit(scores) + (1 - target) * log_expit(-scores)
            return 1.5 * ((x[0] - np.log(slope)) ** 2 + (x[1] - offset) ** 2) - fits.sum()

        at = np.array([np.log(found[0, k]), found[1, k]])
        assert loss(at) <= minimize(loss, at, method="Nelder-Mead", options={"xatol": 1e-8}).fun + 1e-3


def test_calibration_of_rows_told_apart_without_error_and_of_none():
    outputs, place = np.array([[-1.0], [1.0]] * 50), np.array([0, 1] * 50)
    p = Calibration.of(outputs, place)(np.array([[1e9], [-1e9], [0.0]]))
    assert np.isfinite(p).all()
    assert p[0, 1] > 0.97
    np.testing.assert_allclose(Calibration.of(np.zeros((0, 3)), np.zeros(0, int))(np.zeros((1, 3))), 1 / 3)
    np.testing.assert_allclose(Calibration.of(np.zeros((9, 1)), np.arange(9) % 2)(np.zeros((1, 1))).sum(), 1)


def test_partial_fit_saved_and_compiled_models_have_them(tmp_path):
    X, y = DIGITS
    model = HistogramClassifier("chi2", alpha=1.0).partial_fit(X[:300], y[:300], classes=range(10))
    early = log_loss(y[900:], model.predict_proba(X[900:]))
    model.partial_fit(X[300:900], y[300:900])
    assert log_loss(y[900:], model.predict_proba(X[900:])) < early
    model.save(tmp_path / "a.model")
    expected = model.predict_proba(X[:9])
    np.testing.assert_allclose(chimap.load(tmp_path / "a.model").predict_proba(X[:9]), expected)
    np.testing.assert_allclose(model.compile().predict_proba(X[:9]), expected, atol=0.02)


@pytest.mark.parametrize(("n_second", "n_first"), [(3, 5), (1, 9), (20, 4)])
def test_without_a_difference_in_outputs_the_probability_is_the_mean_of_platts_targets(n_second, n_first):
    place = np.repeat([1, 1, 0, 0], [n_second, n_second, n_first, n_first])
    outputs = np.concatenate([np.repeat([-1.0, 1.0], n_second), np.repeat([-1.0, 1.0], n_first)])[:, None]
    n1, n0 = 2 * n_second, 2 * n_first
    expected = (n1 * (n1 + 1) / (n1 + 2) + n0 / (n0 + 2)) / place.size
    p = Calibration.of(outputs, place)(np.array([[np.sign(n_second - n_first)]]))
    assert p[0, 1] == pytest.approx(expected, abs=1e-3)


def test_the_sigmoid_and_its_logarithm():
    scores = np.array([-800.0, -30, -1e-9, 0, 1e-9, 0.3, 30, 800])
    found, logs = _sigmoid(scores)
    np.testing.assert_allclose(found, expit(scores), rtol=1e-15)
    np.testing.assert_allclose(logs, log_expit(scores), rtol=1e-15)


def test_classes_of_equal_outputs_and_offsets_keep_their_probabilities():
    """The first of equal outputs is predicted; another class that is as probable does not exceed it."""
    p = Calibration(1.0, np.array([0.0, 1.0, 1.0, -9.0]))(np.array([[0.0, 3.0, 3.0, 1.0], [0.0, 4.0, 3.0, 1.0]]))
    np.testing.assert_allclose(p[0], softmax([0, 4, 4, -8]), rtol=1e-8)
    tied = Calibration(1.0, np.array([1.0, 0.0, -9.0]))(np.array([[2.0, 3.0, 0.0]]))  # the first is as probable
    np.testing.assert_allclose(tied[0], softmax([3, 3, -9]), rtol=1e-8)
    assert tied[0, 1] > tied[0, 0]


def test_the_predicted_class_has_the_largest_probability_and_the_rest_is_kept():
    outputs = np.random.default_rng(1).standard_normal((2000, 6))
    model = Calibration(1.5, np.array([2.0, -1.0, 0.0, 1.0, 0.0, -2.0]))
    exact, p = _exact(model, outputs), model(outputs)
    k = outputs.argmax(axis=1)
    np.testing.assert_array_equal(p.argmax(axis=1), k)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-8)
    agrees = exact.argmax(axis=1) == k
    np.testing.assert_allclose(p[agrees], exact[agrees])
    below = exact < exact[np.arange(len(k)), k][:, None]  # the less probable keep what they have
    np.testing.assert_allclose(p[below], exact[below])
    two = Calibration(3.0, np.array([-1.0]))(np.linspace(-1, 1, 41)[:, None])[:, 1]
    assert (np.diff(two) > 0).all()
    np.testing.assert_array_equal(two > 0.5, np.linspace(-1, 1, 41) > 0)
