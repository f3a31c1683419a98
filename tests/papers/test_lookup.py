"""The classifier on codes: the optimum, its tables, and codes in place of rows."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from chimap import AnchorMap, LookupClassifier, OptimalMap, chi2
from chimap._validation import DataError
from chimap.papers.lookup import LOSSES

from ..histograms import SPARSE_KINDS, classes, signed_histograms

SETTINGS = {"alpha": 0.05, "tol": 1e-9}
MAPS = {
    "uniform": AnchorMap(n_anchors=20),
    "intersection, many terms": AnchorMap("intersection", n_anchors=20),
    "kmeans, two averaged": AnchorMap("chi2", anchors="kmeans", n_anchors=12, n_neighbors=2, weights="uniform"),
    "given terms": AnchorMap("jensen_shannon", 2, n_anchors=300),
}
every_map = pytest.mark.parametrize("psi", MAPS.values(), ids=MAPS)
every_loss = pytest.mark.parametrize("loss", LOSSES)


def objective_of(model, Z, y, column):
    sign = np.where(y == model.classes_[column if model.classes_.size > 2 else 1], 1.0, -1.0)
    slope = {
        "squared_hinge": lambda m: (np.maximum(1 - m, 0) ** 2, -2 * np.maximum(1 - m, 0)),
        "logistic": lambda m: (np.log1p(np.exp(-m)), -1 / (1 + np.exp(m))),
    }[model.loss]

    def value(flat):
        w, b = flat[:-1], flat[-1]
        losses, d = slope(sign * (Z @ w + b))
        gradient = np.append(Z.T @ (d * sign) + model.alpha * w, (d * sign).sum())
        return losses.sum() + 0.5 * model.alpha * w @ w, gradient

    return value


@every_loss
@every_map
def test_optimum_on_the_expanded_features(psi, loss):
    X, y = classes(200, 8)
    model = LookupClassifier(psi, loss=loss, **SETTINGS).fit(X, y)
    Z = model.map_.transform(X)
    assert model.feature_coef_.shape == (3, Z.shape[1])
    for column in range(3):
        value = objective_of(model, Z, y, column)
        best = minimize(value, np.zeros(Z.shape[1] + 1), jac=True, method="BFGS", options={"gtol": 1e-7})
        found = np.append(model.feature_coef_[column], model.intercept_[column])
        assert value(found)[0] <= best.fun * (1 + 1e-7)
        np.testing.assert_allclose(found, best.x, atol=1e-3 * np.abs(best.x).max())


def test_agrees_with_liblinear_and_logistic_regression():
    X, y = classes(300, 8, 2)
    svm = LookupClassifier(fit_intercept=False, **SETTINGS).fit(X, y)
    Z = svm.map_.transform(X)
    peer = LinearSVC(C=20, fit_intercept=False, tol=1e-10, max_iter=100000, dual=False).fit(Z, y)
    np.testing.assert_allclose(svm.feature_coef_, peer.coef_, rtol=0, atol=2e-4 * np.abs(peer.coef_).max())
    logistic = LookupClassifier(loss="logistic", **SETTINGS).fit(X, y)
    peer = LogisticRegression(C=20, tol=1e-9, max_iter=10000).fit(Z, y)
    np.testing.assert_allclose(logistic.feature_coef_, peer.coef_, rtol=0, atol=2e-4 * np.abs(peer.coef_).max())
    np.testing.assert_allclose(logistic.intercept_, peer.intercept_, rtol=1e-3)


@every_map
@pytest.mark.parametrize("n_classes", [2, 3])
def test_decision_is_that_of_the_weights_on_the_features(psi, n_classes):
    X, y = classes(150, 10, n_classes)
    model = LookupClassifier(psi).fit(X, y)
    expected = model.map_.transform(X) @ model.feature_coef_.T + model.intercept_
    expected = expected[:, 0] if n_classes == 2 else expected
    for rows in (X, sp.csr_matrix(X)):
        np.testing.assert_allclose(model.decision_function(rows), expected, rtol=1e-12, atol=1e-13)
    codes = model.map_.encode(X)
    by_hand = sum(model.tables_[:, i, codes[:, i]] for i in range(10)).T + model.intercept_
    np.testing.assert_allclose(by_hand.reshape(expected.shape), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", ["csr", "csc", "explicit zeros"])
def test_sparse_as_dense(kind):
    X, y = classes(200, 12)
    dense, sparse = (LookupClassifier(**SETTINGS).fit(rows, y) for rows in (X, SPARSE_KINDS[kind](X)))
    scale = np.abs(dense.feature_coef_).max()
    np.testing.assert_allclose(sparse.feature_coef_, dense.feature_coef_, rtol=0, atol=1e-5 * scale)


def test_signed_rows():
    X = signed_histograms(200, 8)
    y = np.sqrt(np.abs(X[:, 0])) * np.sign(X[:, 0]) - X[:, 1] > 0
    model = LookupClassifier(AnchorMap(chi2.signed()), alpha=0.01).fit(X, y)
    assert model.score(X, y) > 0.95
    expected = model.map_.transform(X) @ model.feature_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-12, atol=1e-13)


def test_codes_are_enough():
    X, y = classes(200, 12)
    labels = np.array(["a", "b", "c"])[y]
    psi = AnchorMap(output="codes").fit(X)
    codes = psi.transform(X)
    model = LookupClassifier().fit_codes(codes, labels, psi)
    whole = LookupClassifier(AnchorMap()).fit(X, labels)
    np.testing.assert_allclose(model.feature_coef_, whole.feature_coef_, rtol=1e-12)
    assert set(model.predict(X)) == {"a", "b", "c"}
    assert model.score(X, labels) > 0.9
    assert model.codes_bytes_ == codes.nbytes == 200 * 12


def test_threads_and_copies_change_nothing():
    X, y = classes(3000, 30)
    one, two = (LookupClassifier(n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.feature_coef_, two.feature_coef_)
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.decision_function(X), one.decision_function(X))
    assert clone(one).get_params()["alpha"] == 1.0


def test_a_class_of_few_rows_is_learned():
    X = np.random.default_rng(0).poisson(3, (5000, 4)).astype(float)
    y = np.zeros(5000, int)
    y[np.argsort(X[:, 1] - X[:, 0], kind="stable")[:10]] = 1
    usual, exact = (LookupClassifier(tol=tol).fit(X, y).decision_function(X) for tol in (1e-3, 1e-7))
    assert np.abs(usual - exact).max() < 0.05 * np.ptp(exact)


def test_too_few_iterations_are_said():
    X, y = classes(100)
    with pytest.warns(ConvergenceWarning, match=r"2 iterations before reaching tol=1e-08 \(the limit of iterations"):
        LookupClassifier(max_iter=2, tol=1e-8).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        LookupClassifier().fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "hinge"}, "loss must be one of 'squared_hinge', 'logistic'"),
        ({"alpha": 0}, "alpha must be a positive number"),
        ({"tol": -1}, "tol must be a positive number"),
        ({"max_iter": 1.5}, "max_iter must be a positive whole number"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"map": OptimalMap()}, "map must be an AnchorMap"),
        ({"map": AnchorMap(n_neighbors=2)}, "Use n_neighbors=1 or weights='uniform'"),
    ],
    ids=str,
)
def test_bad_settings(settings, message):
    X, y = classes(60)
    with pytest.raises(ValueError, match=message):
        LookupClassifier(**settings).fit(X, y)


def test_bad_data():
    X, y = classes(60)
    psi = AnchorMap(n_anchors=10).fit(X)
    codes = psi.encode(X)
    with pytest.raises(DataError, match="one class only"):
        LookupClassifier().fit(X, np.zeros(60))
    with pytest.raises(DataError, match="label for each of the 60 rows of codes; got 59"):
        LookupClassifier().fit_codes(codes, y[:59], psi)
    codes[7, 2] = 200
    with pytest.raises(DataError, match="row 7, column 2: 200, but this map has 10 codes"):
        LookupClassifier().fit_codes(codes, y, psi)
    X[5, 1] = np.nan
    with pytest.raises(DataError, match="row 5, column 1: NaN"):
        LookupClassifier().fit(X, y)
