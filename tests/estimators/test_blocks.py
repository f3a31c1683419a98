"""Several descriptors, and principal components in a first pass, against the same done by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from chimap import (
    Exponential,
    FourierFeatures,
    HistogramClassifier,
    HistogramRegressor,
    OptimalMap,
    PrincipalFeatures,
    chi2,
    hellinger,
    load,
)
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.features.blocks import BlockFeatures
from chimap.kernels import OnColumns
from chimap.moments import fold_of_rows
from chimap.reports import SelectionPage

from ..histograms import histograms

X, y = load_digits(return_X_y=True)
X = X[:600] + 0.5
y = y[:600]
BLOCKS = {"top": slice(0, 32), "bottom": list(range(32, 64))}
SETTINGS = {"n_components": 128, "precision": "float64", "alpha": 0.1, "random_state": 0}


def test_kernels_of_columns():
    rows = histograms(9)
    both = OnColumns(chi2, range(5)) + OnColumns(Exponential(hellinger), [5, 7, 6])
    expected = chi2(rows[:, :5]) + Exponential(hellinger)(rows[:, [5, 7, 6]])
    for X in (rows, sp.csr_matrix(rows)):
        np.testing.assert_allclose(both(X), expected, rtol=1e-12)
        np.testing.assert_allclose(both.diagonal(X), np.diagonal(expected), rtol=1e-12)


def test_features_side_by_side():
    rows = histograms(30)
    both = BlockFeatures([OptimalMap(n_terms=4), OptimalMap("hellinger", 1)], [slice(0, 5), [7, 6]]).fit(rows)
    Z = both.transform(rows)
    assert Z.shape == (30, 22)
    np.testing.assert_allclose(Z @ Z.T, both.kernel_(rows), atol=5e-3)
    S = both.transform(sp.csr_matrix(rows))
    assert sp.issparse(S)  # as of the maps alone
    np.testing.assert_allclose(S.toarray(), Z, rtol=1e-12)
    mixed = BlockFeatures([OptimalMap(), FourierFeatures(n_components=8)], [slice(0, 5), [7, 6]]).fit(rows)
    np.testing.assert_allclose(mixed.transform(sp.csr_matrix(rows)), mixed.transform(rows), atol=1e-12)
    out = np.empty_like(Z)
    both.features_into(rows, out, shift=Z.mean(axis=0))
    np.testing.assert_allclose(out, Z - Z.mean(axis=0), atol=1e-14)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_a_kernel_for_each_block(kind, tmp_path):
    model = HistogramClassifier(["exp-chi2", "intersection"], blocks=BLOCKS, **SETTINGS).fit(kind(X), y)
    assert model.kernel_.name == "exp-chi2[32 bins]+intersection[32 bins]"
    Z = model.features_.transform(X)
    assert Z.shape == (600, 128 + 64)
    Y = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    ridge = Ridge(alpha=0.1).fit(Z, Y)
    np.testing.assert_allclose(model.decision_function(kind(X)), ridge.predict(Z), atol=1e-6)
    model.save(tmp_path / "m.model")
    again = load(tmp_path / "m.model")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.get_params()["blocks"] == BLOCKS
    clone(again).fit(X, y)


@pytest.mark.parametrize("blocks", [None, BLOCKS])
def test_principal_components_are_those_of_scikit_learn(blocks):
    more = X[::-1] * np.linspace(0.5, 2, 600)[:, None]
    for unlabelled in (None, ArraySource(more)):
        model = HistogramClassifier("exp-chi2", blocks=blocks, features=PrincipalFeatures(20), **SETTINGS)
        model.fit_source(ArraySource(X, y), unlabelled=unlabelled)
        Z = model.features_.transform(X)
        rows = Z if unlabelled is None else np.vstack([Z, model.features_.transform(more)])
        parts = [PCA(20, svd_solver="full").fit(own) for own in np.split(rows, 1 if blocks is None else 2, axis=1)]
        coordinates = np.hstack(
            [pca.transform(own) for pca, own in zip(parts, np.split(Z, len(parts), axis=1), strict=True)]
        )
        Y = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
        expected = Ridge(alpha=0.1).fit(coordinates, Y).predict(coordinates)
        np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-7)
        assert model.feature_coef_.shape == (10, Z.shape[1])  # no projection at prediction


@pytest.mark.parametrize("blocks", [None, BLOCKS])
def test_components_and_alpha_are_chosen_together_by_exact_folds(blocks, tmp_path):
    given = {**SETTINGS, "blocks": blocks, "selection": 3}
    model = HistogramClassifier(
        **{"kernel": "exp-chi2", **given, "alpha": [0.1, 3.0]}, features=PrincipalFeatures([30, 5, 12])
    ).fit(X, y)
    scores, r = model.selection_, 1 if blocks is None else 2
    np.testing.assert_array_equal(scores.settings["n_components"], [5, 5, 12, 12, 30, 30])
    assert scores.scores.shape == (6, 3)
    # by hand: components of all rows, weights of those outside a fold
    parts = np.split(model.features_.transform(X), r, axis=1)
    Y = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    folds = fold_of_rows(0, 600, 3, model._seed)
    numbers, alphas, places = scores.grid("n_components", "alpha")
    for p, errors in zip(numbers, scores.scores[places], strict=True):
        Z = np.hstack([PCA(p, svd_solver="full").fit_transform(own) for own in parts])
        for s, alpha in enumerate(alphas):
            for k in range(3):
                refit = Ridge(alpha=alpha).fit(Z[folds != k], Y[folds != k])
                wrong = np.square(refit.predict(Z[folds == k]) - Y[folds == k]).sum(axis=1).mean()
                assert errors[s, k] == pytest.approx(wrong, rel=1e-4)
    assert scores.best == {"n_components": model.n_principal_, "alpha": model.alpha_}
    alone = HistogramClassifier(
        **{"kernel": "exp-chi2", **given, "alpha": model.alpha_}, features=PrincipalFeatures(model.n_principal_)
    )
    np.testing.assert_allclose(model.decision_function(X), alone.fit(X, y).decision_function(X), atol=1e-8)
    model.save(tmp_path / "m.model")
    again = load(tmp_path / "m.model")
    np.testing.assert_array_equal(again.selection_.scores, scores.scores)
    assert "Cross-validated R²" in SelectionPage.of(again).save(tmp_path / "m.html").read_text()


def test_a_alpha_that_is_given_leaves_components_to_choose():
    model = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS, features=PrincipalFeatures([2, 40])).fit(X, y)
    assert (model.n_principal_, model.alpha_) == (40, 0.1)
    assert model.selection_.scores.shape == (2, 5)
    assert (
        HistogramClassifier(**{"kernel": "exp-chi2", **SETTINGS, "alpha": "auto"}, features=PrincipalFeatures([2, 40]))
        .fit(X, y)
        .n_principal_
        == 40
    )


def test_blocks_are_normalised_by_themselves():
    for rows in (X, sp.csr_matrix(X)):
        model = HistogramClassifier("exp-chi2", blocks=BLOCKS, normalize="l1", **SETTINGS).fit(rows, y)
        prepared = model.fitted.preparation(rows, 0, "X")
        prepared = prepared.toarray() if sp.issparse(prepared) else prepared
        np.testing.assert_allclose(prepared[:, :32].sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_allclose(prepared[:, 32:].sum(axis=1), 1, rtol=1e-12)


def test_other_losses_and_regression_on_components():
    model = HistogramClassifier(
        "exp-chi2", blocks=BLOCKS, features=PrincipalFeatures(30), loss="logistic", **SETTINGS
    ).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.75
    target = X[:, :10].sum(axis=1)
    fitted = HistogramRegressor("exp-chi2", features=PrincipalFeatures(50), **SETTINGS).fit(X[:400], target[:400])
    assert fitted.score(X[400:], target[400:]) > 0.7


def test_signs_are_those_of_the_blocks():
    rows = X.copy()
    rows[:, 40] -= 1
    HistogramClassifier(["chi2", "gaussian"], blocks=BLOCKS, **SETTINGS).fit(rows, y)
    rows[0, 3] = -1
    with pytest.raises(DataError, match="block 'top', row 0, column 3: -1"):
        HistogramClassifier(["chi2", "gaussian"], blocks=BLOCKS, **SETTINGS).fit(rows, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"blocks": [slice(0, 70)]}, "block 'block0' names columns that are not there: the rows have columns 0 to 63"),
        ({"blocks": {"a": []}}, "block 'a' has no columns"),
        ({"blocks": {"a": [1, 1]}}, "block 'a' names a column twice"),
        ({"blocks": []}, "blocks must hold at least one"),
        ({"blocks": BLOCKS, "kernel": ["chi2"]}, "kernel must be one, or one for each of 2 blocks; got 1"),
        ({"features": PrincipalFeatures(0)}, "n_principal must be a positive whole number"),
        ({"features": PrincipalFeatures([5, 0])}, "each of n_principal must be a positive whole number"),
        ({"features": PrincipalFeatures([])}, "several n_principal are compared by the folds"),
        ({"features": PrincipalFeatures([5, 9]), "loss": "logistic"}, "compared by the folds of loss='square'"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        HistogramClassifier(**{"kernel": "exp-chi2", **SETTINGS, **settings}).fit(X, y)


def test_what_two_passes_cannot_do():
    with pytest.raises(ValueError, match="use fit or fit_source"):
        HistogramClassifier("exp-chi2", features=PrincipalFeatures(5)).partial_fit(X, y, classes=np.unique(y))
    with pytest.raises(ValueError, match="give n_principal"):
        HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit_source(
            ArraySource(X, y), unlabelled=ArraySource(X)
        )
    with pytest.raises(ValueError, match="5 bins per row, but HistogramClassifier was fitted on 64"):
        HistogramClassifier("exp-chi2", features=PrincipalFeatures(5), **SETTINGS).fit_source(
            ArraySource(X, y), unlabelled=ArraySource(X[:, :5])
        )
