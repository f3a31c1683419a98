"""Linear models from moments against scikit-learn's on the rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import Lasso, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline

from chimap import MomentsGroupLasso, MomentsLasso, MomentsRidge, MomentsRidgeClassifier
from chimap._validation import DataError

from ..moments.cases import rows
from .checks import every_check, meets


def fails_by_the_folds(estimator):
    """Repeated rows are dealt to other folds than the row of a weight, and left out one by one where it is whole.

    Folds choose alpha, and the probabilities of classifiers are of rows left out.
    """
    names = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    return dict.fromkeys(names, AssertionError) if estimator.alpha == "auto" or is_classifier(estimator) else {}


@every_check(
    [
        MomentsRidge(),
        MomentsRidge(1.0),
        MomentsRidgeClassifier(),
        MomentsRidgeClassifier(1.0),
        MomentsLasso(n_alphas=5),
        MomentsLasso(0.1),
        MomentsGroupLasso(alpha=0.1),
    ]
)
def test_checks(estimator, check):
    meets(estimator, check, fails_by_the_folds(estimator))


def data(n_rows=300, mean=10.0):
    Z, Y = rows(n_rows, 12, 1, mean=mean)
    return Z, Y[:, 0]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n_components", [None, 4])
def test_ridge(kind, n_components):
    Z, y = data()
    found = MomentsRidge(3.0, n_components).fit(kind(Z), y)
    steps = [Ridge(3.0)] if n_components is None else [PCA(n_components), Ridge(3.0)]
    expected = make_pipeline(*steps).fit(Z, y)
    np.testing.assert_allclose(found.predict(kind(Z)), expected.predict(Z), rtol=1e-7)
    assert found.alpha_ == 3.0
    assert found.selection_ is None


def test_folds_choose_components_and_alpha():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((120, 40)) * np.geomspace(10, 0.1, 40)
    y = Z[:, 0] + 10 * rng.standard_normal(120)  # what lies beyond the first components is noise
    model = MomentsRidge([1e-3, 1e-2], n_components=[2, 40], random_state=0).fit(Z, y)
    assert model.n_components_ == 2
    assert model.alpha_ in (1e-3, 1e-2)
    assert model.selection_.scores.shape == (4, 5)
    assert model.pca_.components.shape == (40, 2)


def test_curves_are_those_of_each_pair_fitted_by_itself():
    X, y = load_digits(return_X_y=True)
    settings = {"alpha": [1.0, 1e4], "n_components": [5, 20, 60], "random_state": 0}
    model = MomentsRidgeClassifier(**settings).fit(X[:900], y[:900])
    curves = model.curves(sp.csr_matrix(X[900:]), y[900:])
    assert curves.n_rows == len(X) - 900
    signs = np.where(y[900:, None] == model.classes_, 1.0, -1.0)
    for p, n_components in enumerate(curves.n_components):
        for s, alpha in enumerate(curves.alphas):
            alone = MomentsRidgeClassifier(float(alpha), int(n_components)).fit(X[:900], y[:900])
            assert curves.accuracy[p, s] == alone.score(X[900:], y[900:])
            errors = np.square(alone.decision_function(X[900:]) - signs).sum()
            expected = 1 - errors / np.square(signs - signs.mean(axis=0)).sum()
            assert curves.r2[p, s] == pytest.approx(expected, abs=1e-9)
    assert MomentsRidge(1.0, 5).fit(X, y).curves(X, y).accuracy is None
    with pytest.raises(ValueError, match="give n_components"):
        MomentsRidge(1.0).fit(X, y).curves(X, y)


def test_classifier():
    X, y = load_digits(return_X_y=True)
    found = MomentsRidgeClassifier(10.0).fit(X[:1000], y[:1000])
    expected = RidgeClassifier(10.0).fit(X[:1000], y[:1000])
    np.testing.assert_array_equal(found.predict(X[1000:]), expected.predict(X[1000:]))
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), rtol=1e-6, atol=1e-8)
    two = MomentsRidgeClassifier(10.0).fit(X[y < 2], y[y < 2])
    assert two.decision_function(X[:5]).shape == (5,)


def test_lasso():
    Z, y = data()
    found = MomentsLasso(0.5).fit(Z, y)
    expected = Lasso(0.5, tol=1e-10).fit(Z, y)
    np.testing.assert_allclose(found.coef_[0], expected.coef_, atol=2e-3 * np.abs(expected.coef_).max())
    assert found.kkt_residual_ < 1e-3
    chosen = MomentsLasso(n_alphas=8, random_state=0).fit(Z, y)
    assert chosen.selection_.scores.shape == (8, 5)
    assert chosen.path_.n_used[0] == 0
    assert 0.1 < chosen.score(Z, y) <= expected.score(Z, y) + 0.1


def test_group_lasso():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 9))
    y = Z[:, 3:6] @ [1.0, -2.0, 1.5]
    model = MomentsGroupLasso([slice(0, 3), slice(3, 6), slice(6, 9)], alpha=0.2).fit(Z, y)
    used = np.flatnonzero(model.coef_[0])
    assert used.tolist() == [3, 4, 5]
    assert model.kkt_residual_ < 1e-6


@pytest.mark.parametrize("weight", [None, 2.0])
def test_the_loss_of_sparse_models_is_a_mean(weight):
    """The strength beside the sum of the losses, as in ridge, is N alpha; N is the sum of the weights."""
    Z, y = data(80)
    weights = None if weight is None else np.full(80, weight)
    total = 80 * (weight or 1.0)
    sparse = MomentsLasso(alpha=0.3, l1_ratio=1e-9).fit(Z, y, sample_weight=weights)
    ridge = MomentsRidge(alpha=total * 0.3).fit(Z, y, sample_weight=weights)
    np.testing.assert_allclose(sparse.coef_, ridge.coef_, atol=1e-6)
    lasso = MomentsLasso(alpha=0.1).fit(Z, y, sample_weight=weights)
    groups = MomentsGroupLasso(alpha=0.1).fit(Z, y, sample_weight=weights)  # a column each
    np.testing.assert_allclose(groups.coef_, lasso.coef_, atol=1e-5)


@pytest.mark.parametrize("model", [MomentsRidge(random_state=0), MomentsLasso(n_alphas=4, random_state=0)])
def test_batches_are_as_good_as_the_whole(model):
    Z, y = data(mean=1e3)
    whole = model.fit(Z, y).coef_.copy()
    batches = type(model)(**model.get_params())
    for part in (slice(0, 100), slice(100, 110), slice(110, 300)):
        batches.partial_fit(Z[part], y[part])
    predicted = batches.predict(Z)
    assert batches.n_rows_ == 300
    np.testing.assert_allclose(batches.coef_, whole, rtol=1e-5, atol=1e-6 * np.abs(whole).max())
    np.testing.assert_allclose(predicted, Z @ whole[0] + batches.intercept_, rtol=1e-5)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MomentsRidge(-1.0), "alpha must be a positive number"),
        (MomentsRidge([1.0, -1.0]), "each of alpha must be a positive number"),
        (MomentsLasso([]), "alpha must be 'auto', a number or several numbers"),
        (MomentsRidge("best"), "alpha must be one of 'auto'; got 'best'"),
        (MomentsRidge(n_components=0), "n_components must be a positive whole number"),
        (MomentsRidge(n_components=[3, 13]), "n_components=13, but there are 12 features"),
        (MomentsRidge(selection=1), r"selection must be 'auto' or at least 2 folds; got 1"),
        (MomentsRidge([1.0, 10.0], selection=1), r"selection must be 'auto' or at least 2 folds; got 1"),
        (MomentsRidge(1.0, [2, 3], selection=1), r"selection must be 'auto' or at least 2 folds; got 1"),
        (MomentsLasso(selection="gcv"), r"selection must be 'auto' or at least 2 folds; got 'gcv'"),
        (MomentsRidge(selection=0), r"selection \(folds\) must be a positive whole number"),
        (MomentsLasso(l1_ratio=1.5), r"l1_ratio must be in \(0, 1\]; got 1.5"),
        (MomentsLasso(n_alphas=0), "n_alphas must be a positive whole number"),
        (MomentsGroupLasso([[0, 1]]), "column 2 is in no group"),
    ],
    ids=str,
)
def test_bad_settings(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*data(30))


def test_bad_labels():
    Z, _ = data(30)
    with pytest.raises(DataError, match="one class only"):
        MomentsRidgeClassifier().fit(Z, np.zeros(30))
    with pytest.raises(ValueError, match="classes must be given"):
        MomentsRidgeClassifier().partial_fit(Z, np.arange(30) % 2)
    model = MomentsRidgeClassifier(1.0).partial_fit(Z, np.arange(30) % 2, classes=[0, 1])
    with pytest.raises(DataError, match="unknown label 7"):
        model.partial_fit(Z, np.full(30, 7))
