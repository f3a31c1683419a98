"""Linear support vector machines on explicit features, by LIBLINEAR."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

import chimap
from chimap import AutomaticFeatures, HistogramClassifier, HistogramRegressor, OptimalMap, PrincipalFeatures
from chimap._validation import MemoryBudgetError
from chimap.moments import DealtFolds, OneVersusAll, fold_of_rows
from chimap.moments.kept import KeptFeatures

from ..histograms import classes

SETTINGS = {
    "kernel": "chi2",
    "features": OptimalMap(n_terms=3),
    "loss": "hinge",
    "precision": "float64",
    "random_state": 0,
}


def sparse_rows(n_rows: int, n_bins: int, n_classes: int = 4, seed: int = 0):
    """CSR rows of few entries, of which each class has its own, and their classes."""
    y = np.random.default_rng(seed).integers(0, n_classes, n_rows)
    own = sp.random(n_classes, n_bins, 20 / n_bins, format="csr", random_state=seed + 1)
    return sp.csr_matrix(sp.random(n_rows, n_bins, 30 / n_bins, format="csr", random_state=seed) + own[y]), y


@pytest.mark.parametrize("n_classes", [2, 4])
def test_it_is_scikit_learns_on_the_features(n_classes):
    X, y = classes(300)
    y = y if n_classes > 2 else y == y[0]
    model = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS, alpha=0.5).fit(X, y)
    Z = OptimalMap("chi2", 3).fit(X).transform(X)
    peer = LinearSVC(loss="hinge", C=2.0, tol=1e-6, max_iter=100_000).fit(Z, y)
    expected = peer.decision_function(Z)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-2 * np.abs(expected).max())
    assert model.n_passes_ == 0
    assert model.loss_ is None


def test_sparse_rows_give_the_model_of_dense_ones():
    X, y = sparse_rows(400, 300)
    sparse = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit(X, y)
    dense = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit(X.toarray(), y)
    assert sparse.alpha_ == pytest.approx(dense.alpha_, rel=1e-12)
    np.testing.assert_allclose(sparse.feature_coef_, dense.feature_coef_, atol=1e-9)
    # and where few enough entries are zero, dense rows stay dense
    full = X.toarray() + 0.01
    np.testing.assert_allclose(
        HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS, alpha=1.0).fit(full, y).feature_coef_,
        HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS, alpha=1.0).fit(sp.csr_matrix(full), y).feature_coef_,
        atol=1e-9,
    )


def test_many_columns_fit_where_moments_do_not():
    X, y = sparse_rows(1500, 5000)
    settings = {"features": AutomaticFeatures(n_terms=3), "memory": "256MiB", "random_state": 0}
    model = HistogramClassifier("chi2", loss="hinge", **settings).fit(X[:1000], y[:1000])
    assert model.feature_coef_.shape == (4, 15_000)
    assert model.score(X[1000:], y[1000:]) > 0.95
    assert (model.compile().predict(X) == model.predict(X)).mean() > 0.99
    with pytest.raises(MemoryBudgetError, match=r"15000 features with 1 fold\(s\) need .* loss='hinge'"):
        HistogramClassifier("chi2", **settings).fit(X.toarray(), y)
    ridge = HistogramClassifier("chi2", **settings).fit(X[:1000], y[:1000])  # of sparse rows, without sums
    assert ridge.score(X[1000:], y[1000:]) > 0.95


def test_the_model_is_saved_and_comes_out_the_same_again(tmp_path):
    X, y = sparse_rows(300, 200)
    model = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit(X, y)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(chimap.load(tmp_path / "model").decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(
        HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit(X, y).feature_coef_, model.feature_coef_
    )


def test_chunks_make_no_difference():
    X, y = classes(5000, 20)
    settings = {**SETTINGS, "alpha": 10.0}
    whole = HistogramClassifier(**{"kernel": "exp-chi2"} | settings, memory="1GiB").fit(X, y)
    with pytest.raises(MemoryBudgetError, match=r"all 5,000 rows in memory; their 300,000 numbers") as error:
        HistogramClassifier(**{"kernel": "exp-chi2"} | settings, memory="1MiB").fit(X, y)
    least = str(error.value).split("memory='")[1].split("'")[0]
    assert least.endswith("MiB")
    np.testing.assert_allclose(
        HistogramClassifier(**{"kernel": "exp-chi2"} | settings, memory=least).fit(X, y).feature_coef_,
        whole.feature_coef_,
        atol=1e-9,
    )


def test_the_alpha_is_chosen_by_the_rows_held_out():
    X, y = sparse_rows(500, 200)
    model = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS, alpha=[1e-2, 1.0, 1e3]).fit(X, y)
    Z = OptimalMap("chi2", 3).fit(X).transform(X)
    is_held = fold_of_rows(0, 500, 5, model._seed) == 0
    for alpha, loss in zip(model.selection_.alphas, model.selection_.means, strict=True):
        peer = LinearSVC(loss="hinge", C=1 / alpha, tol=1e-6, max_iter=100_000).fit(Z[~is_held], y[~is_held])
        signs = np.where(y[is_held, None] == model.classes_, 1, -1)
        expected = np.maximum(1 - signs * peer.decision_function(Z[is_held]), 0).sum(axis=1).mean()
        assert loss == pytest.approx(expected, rel=0.02)
    assert model.alpha_ == model.selection_.best["alpha"]


def test_the_search_does_not_mind_the_scale_of_the_rows():
    X, y = sparse_rows(300, 200)
    small, large = (
        HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit(scale * X, y) for scale in (1.0, 1024.0)
    )
    np.testing.assert_allclose(large.selection_.alphas[-1] / small.selection_.alphas[-1], 1024, rtol=1e-6)


def test_a_class_that_only_held_out_rows_have_is_learned_in_the_end():
    X, y = sparse_rows(100, 50, n_classes=3)
    held = np.flatnonzero(
        fold_of_rows(0, 100, 5, HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit(X, y)._seed) == 0
    )
    y[held[:2]] = 7
    model = HistogramClassifier(**{"kernel": "exp-chi2"} | SETTINGS).fit(X, y)
    assert set(model.classes_) == {0, 1, 2, 7}
    assert np.abs(model.feature_coef_[3]).max() > 0


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "exp-chi2", "n_components": 64},
        {"kernel": "chi2", "blocks": {"a": slice(0, 32), "b": slice(32, 64)}},
        {"kernel": "chi2", "blocks": {"a": slice(0, 32), "b": slice(32, 64)}, "features": PrincipalFeatures(30)},
    ],
)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_features_of_every_kind(settings, is_sparse):
    X, y = sparse_rows(300, 64)
    model = HistogramClassifier(loss="hinge", random_state=0, **settings).fit(X if is_sparse else X.toarray(), y)
    assert model.score(X, y) > 0.95


def test_additive_blocks_of_sparse_rows_are_kept_sparse(monkeypatch):
    X, y = sparse_rows(2000, 64)
    kept = []
    stack = KeptFeatures.stack
    monkeypatch.setattr(
        KeptFeatures, "stack", lambda self: (stack(self), kept.append((self.Z, self.places[self.held_out])))
    )
    settings = {**SETTINGS, "kernel": ["chi2", "intersection"], "alpha": 0.1}
    blocks = {"a": slice(0, 32), "b": slice(32, 64)}
    models = [
        HistogramClassifier(**{"kernel": "exp-chi2"} | settings, blocks=blocks).fit(rows, y)
        for rows in (X, X.toarray() + 1e-3)
    ]
    (Z, held), (dense, _) = kept
    assert sp.issparse(Z)
    assert not sp.issparse(dense)
    order = np.concatenate([np.setdiff1d(np.arange(2000), held), held])  # a fold is behind the others
    np.testing.assert_allclose(Z.toarray(), models[0].features_.transform(X.toarray())[order], rtol=1e-9)
    np.testing.assert_allclose(models[0].decision_function(X), models[0].decision_function(X.toarray()))


def test_kept_rows_are_those_of_the_folds():
    Z = np.arange(40.0).reshape(20, 2)
    signs = OneVersusAll(np.arange(20) % 3, 3)
    kept = KeptFeatures(DealtFolds(4, 0))
    for part in (slice(0, 7), slice(7, 8), slice(8, 20)):
        kept.put(sp.csr_matrix(Z[part]), signs[part], part.start)
    kept.stack()
    folds = fold_of_rows(0, 20, 4, 0)
    for part, members in ((kept.learning, folds != 0), (kept.held_out, folds == 0)):
        found, found_signs = kept.of(part)
        np.testing.assert_array_equal(found.toarray(), Z[members])
        np.testing.assert_array_equal(found_signs, np.asarray(signs[members]))


def test_regression_has_no_hinge():
    with pytest.raises(
        ValueError, match="loss must be one of 'square', 'epsilon_insensitive', 'poisson', 'quantile'; got 'hinge'"
    ):
        HistogramRegressor("exp-chi2", loss="hinge").fit(np.ones((4, 2)), np.arange(4.0))
