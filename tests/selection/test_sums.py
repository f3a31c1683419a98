"""Linear models from sums against scikit-learn's on the rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Lasso, Ridge
from sklearn.pipeline import make_pipeline

from chimap import Moments, group_lasso, lasso, ridge
from chimap._validation import DataError

from ..moments.cases import rows


def data(n_rows=300, mean=10.0):
    Z, Y = rows(n_rows, 12, 1, mean=mean)
    return Z, Y[:, 0]


def sums(Z, y, n_folds=1, sample_weight=None):
    """Moments of every n_folds-th row, each about a mean of its own."""
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    parts = [slice(k, None, n_folds) for k in range(n_folds)]
    return [Moments(Z.shape[1], 1).update(Z[part], y[part], weights[part]) for part in parts]


def outputs(model, Z):
    return (Z @ model.coef + model.intercept)[:, 0]


@pytest.mark.parametrize("n_folds", [1, 3])
@pytest.mark.parametrize("n_components", [None, 4])
def test_ridge(n_components, n_folds):
    Z, y = data()
    found = ridge(sums(Z, y, n_folds), 3.0, n_components)
    steps = [Ridge(3.0)] if n_components is None else [PCA(n_components), Ridge(3.0)]
    expected = make_pipeline(*steps).fit(Z, y)
    np.testing.assert_allclose(outputs(found, Z), expected.predict(Z), rtol=1e-7)
    assert found.alpha == 3.0
    assert found.n_rows == 300
    assert found.selection is None


def test_folds_choose_components_and_alpha():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((120, 40)) * np.geomspace(10, 0.1, 40)
    y = Z[:, 0] + 10 * rng.standard_normal(120)  # what lies beyond the first components is noise
    model = ridge(sums(Z, y, 5), [1e-3, 1e-2], n_components=[2, 40])
    assert model.pca.components.shape == (40, 2)
    assert model.alpha in (1e-3, 1e-2)
    assert model.selection.scores.shape == (4, 5)
    for strengths in ("auto", [1.0, 1e3]):  # a few strengths of all features
        alone = ridge(sums(Z, y, 5), strengths)
        assert alone.selection.rule == "folds"
        assert alone.alpha == alone.selection.best["alpha"]
        np.testing.assert_allclose(alone.coef[:, 0], Ridge(alone.alpha).fit(Z, y).coef_, rtol=1e-6, atol=1e-9)


def test_without_folds_ridge_is_chosen_by_gcv():
    Z, y = data()
    for strengths in ("auto", [1.0, 1e3]):
        model = ridge(sums(Z, y), strengths)
        assert model.selection.rule == "gcv"
        assert model.alpha == model.selection.best["alpha"]
        np.testing.assert_allclose(model.coef[:, 0], Ridge(model.alpha).fit(Z, y).coef_, rtol=1e-6)


@pytest.mark.parametrize(
    ("solve", "settings"),
    [
        (ridge, {}),
        (ridge, {"alpha": 2.0, "n_components": 4}),
        (lasso, {"l1_ratio": 0.5}),
        (group_lasso, {"groups": [range(4), range(4, 12)]}),
    ],
)
def test_moments_have_the_models_as_methods(solve, settings):
    Z, y = data()
    folds = sums(Z, y, 3)
    mine = getattr(folds[0], solve.__name__)(*folds[1:], **settings)
    np.testing.assert_array_equal(mine.coef, solve(folds, **settings).coef)
    assert np.abs(mine.coef).max() > 0


def test_lasso():
    Z, y = data()
    found = lasso(sums(Z, y), 0.5)
    expected = Lasso(0.5, tol=1e-10).fit(Z, y)
    np.testing.assert_allclose(found.coef[:, 0], expected.coef_, atol=2e-3 * np.abs(expected.coef_).max())
    assert found.path.residuals.max() < 1e-3
    chosen = lasso(sums(Z, y, 5), n_alphas=8)
    assert chosen.selection.scores.shape == (8, 5)
    assert chosen.path.n_used[0] == 0
    assert chosen.alpha == chosen.selection.best["alpha"]
    assert np.square(outputs(chosen, Z) - y).mean() < 0.9 * y.var()
    path = lasso(sums(Z, y), [0.1, 0.5, 0.2])  # nothing is compared: the middle is taken
    assert (path.alpha, path.selection) == (0.2, None)


def test_group_lasso():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 9))
    y = Z[:, 3:6] @ [1.0, -2.0, 1.5]
    model = group_lasso(sums(Z, y), [slice(0, 3), slice(3, 6), slice(6, 9)], alpha=0.2)
    assert np.flatnonzero(model.coef).tolist() == [3, 4, 5]
    assert model.path.residuals.max() < 1e-6


@pytest.mark.parametrize("weight", [None, 2.0])
def test_the_loss_of_sparse_models_is_a_mean(weight):
    """The strength beside the sum of the losses, as in ridge, is N alpha; N is the sum of the weights."""
    Z, y = data(80)
    of_rows = sums(Z, y, sample_weight=None if weight is None else np.full(80, weight))
    total = 80 * (weight or 1.0)
    sparse = lasso(of_rows, alpha=0.3, l1_ratio=1e-9)
    np.testing.assert_allclose(sparse.coef, ridge(of_rows, total * 0.3).coef, atol=1e-6)
    groups = group_lasso(of_rows, [[i] for i in range(12)], alpha=0.1)
    np.testing.assert_allclose(groups.coef, lasso(of_rows, alpha=0.1).coef, atol=1e-5)


@pytest.mark.parametrize("solve", [ridge, lasso])
def test_batches_are_as_good_as_the_whole(solve):
    """Whatever the shifts of their moments, which are those of the first rows."""
    Z, y = data(mean=1e3)
    whole = solve(sums(Z, y), 0.5)
    merged = Moments(12, 1)
    for part in (slice(0, 100), slice(100, 110), slice(110, 300)):
        merged.update(Z[part], y[part])
    for parts in ([merged], sums(Z, y, 5)):
        found = solve(parts, 0.5)
        np.testing.assert_allclose(found.coef, whole.coef, rtol=1e-5, atol=1e-6 * np.abs(whole.coef).max())
        np.testing.assert_allclose(outputs(found, Z), outputs(whole, Z), rtol=1e-5)


@pytest.mark.parametrize(
    ("solve", "message"),
    [
        (lambda folds: ridge(folds, -1.0), "alpha must be a positive number"),
        (lambda folds: ridge(folds, [1.0, -1.0]), "each of alpha must be a positive number"),
        (lambda folds: lasso(folds, []), "alpha must be 'auto', a number or several numbers"),
        (lambda folds: ridge(folds, "best"), "alpha must be one of 'auto'; got 'best'"),
        (lambda folds: ridge(folds, n_components=0), "n_components must be a positive whole number"),
        (lambda folds: ridge(folds, n_components=[3, 13]), "n_components=13, but there are 12 features"),
        (lambda folds: ridge(folds[:1], n_components=3), "one fold chooses no components or strength"),
        (lambda folds: ridge(folds[:1], 1.0, n_components=[2, 3]), "one fold chooses no components or strength"),
        (lambda folds: lasso(folds, l1_ratio=1.5), r"l1_ratio must be in \(0, 1\]; got 1.5"),
        (lambda folds: lasso(folds, n_alphas=0), "n_alphas must be a positive whole number"),
        (lambda folds: group_lasso(folds, [[0, 1]]), "column 2 is in no group"),
    ],
)
def test_bad_settings(solve, message):
    with pytest.raises(ValueError, match=message):
        solve(sums(*data(30), n_folds=2))


def test_folds_of_other_features_are_told():
    Z, y = data()
    with pytest.raises(DataError, match="moments of 5 features and 1 targets do not merge with 12 and 1"):
        sums(Z, y)[0].ridge(*sums(Z[:, :5], y))


def test_no_rows():
    for solve in (ridge, lasso):
        with pytest.raises(DataError, match="no rows"):
            solve([Moments(3, 1)])
