from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import DirectMap, Exponential, chi2, jensen_shannon
from chimap._validation import DataError
from chimap.features.exact import ExactFeatures, KeptRows
from chimap.moments import kept_rows as module

from ...histograms import DTYPES, histograms

KERNELS = ("exp-chi2", "exp-jensen_shannon", "gaussian", "chi2", "linear", "jensen_shannon+pq")


def wide(n: int = 60, n_bins: int = 80) -> np.ndarray:
    """Rows some of whose bins most of them have, and most of whose bins hardly any has."""
    X = histograms(n, n_bins, empty=0.97)
    X[:, :4] += 0.3 * histograms(n, 4)
    return X


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_values_are_those_of_the_kernel(kernel, dtype, kind):
    X, T = wide().astype(dtype), wide(25).astype(dtype)
    features = ExactFeatures(kernel, map=None, n_terms=10, gamma=0.8).fit(kind(X))
    exact = features.kernel_
    values, expected = features.transform(kind(T)), exact(T, X)
    square = np.empty((60, 60), dtype)
    diagonal = features.gram_into(square)
    gram, expected_gram = np.tril(square, -1), exact(X)
    gram = gram + gram.T + np.diag(diagonal)
    if kernel in ("chi2", "linear"):  # less the means of what is dense: the same products between differences of rows
        values, expected = np.diff(values, axis=0), np.diff(expected, axis=0)
        values, expected = np.diff(values, axis=1), np.diff(expected, axis=1)
        gram, expected_gram = (np.diff(np.diff(G, axis=0), axis=1) for G in (gram, expected_gram))
    np.testing.assert_allclose(values, expected, atol=2e-4)
    np.testing.assert_allclose(gram, expected_gram, atol=2e-4)
    assert values.dtype == dtype


@pytest.mark.parametrize("share", [0.0, 0.3, 1.1])
def test_dense_and_rare_columns_give_the_same(share, monkeypatch):
    monkeypatch.setattr(module, "_DENSE_FROM", share)
    monkeypatch.setattr(module, "_ROWS", 16)
    X, T = wide(), wide(25)
    kept = KeptRows(sp.csr_matrix(X))
    out, square = np.empty((25, 60)), np.empty((60, 60))
    kept.values_into(sp.csr_matrix(T), 2.0, out)
    kept.gram_into(square, 2.0)
    distances = np.square(T[:, None] - X).sum(axis=2)
    np.testing.assert_allclose(out, np.exp(-2 * distances), atol=1e-12)
    below = np.tril_indices(60, -1)
    np.testing.assert_allclose(square[below], np.exp(-2 * np.square(X[:, None] - X).sum(axis=2))[below], atol=1e-12)
    np.testing.assert_allclose(kept.spread().mean_distance, np.square(X[:, None] - X).sum() / (60 * 59))
    both, others = np.vstack([X, T]), kept.others(sp.csr_matrix(T))
    mean = np.square(both[:, None] - both).sum() / (85 * 84)
    np.testing.assert_allclose((kept.spread() + kept.spread_of(others)).mean_distance, mean)
    some, few = np.array([3, 4, 50]), np.empty((25, 3))
    kept.take(some).values_into(sp.csr_matrix(T), 2.0, few)
    np.testing.assert_array_equal(few, out[:, some])


@pytest.mark.parametrize(("kept", "asked"), [(sp.csr_matrix, np.asarray), (np.asarray, sp.csr_matrix)])
def test_rows_of_the_other_layout_have_the_same_values(kept, asked):
    X, T = wide(), wide(25)
    features = ExactFeatures("exp-chi2", gamma=0.8).fit(kept(X))
    np.testing.assert_allclose(features.transform(asked(T)), features.transform(kept(T)), atol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_weights_of_products_fold_into_weights_of_columns(kind):
    X, T = wide(), wide(25)
    kept, a = KeptRows(kind(X.copy())), np.random.default_rng(0).standard_normal((60, 2))
    out = np.empty((25, 60))
    kept.values_into(kind(T), None, out)
    coef, offset = kept.combine(a)
    np.testing.assert_allclose(out @ a, T @ coef - offset, atol=1e-12)


def test_gamma_is_one_over_the_mean_distance_of_mapped_rows():
    X = histograms(80, 10)
    features = ExactFeatures("exp-chi2", n_terms=8).fit(X)
    exact = Exponential(chi2).fitted(X)
    np.testing.assert_allclose(features.kernel_.gamma, exact.gamma, rtol=1e-3)
    features.set_octaves(-1)
    np.testing.assert_allclose(features.transform(X), Exponential(chi2, exact.gamma / 2)(X), atol=1e-3)


def test_a_mean_that_dominates_costs_no_digits():
    X = (1e4 + np.random.default_rng(0).standard_normal((50, 6))).astype(np.float32)
    features = ExactFeatures("gaussian", gamma=0.1).fit(X)
    expected = np.exp(-0.1 * np.square(X[:, None].astype(float) - X).sum(axis=2))
    np.testing.assert_allclose(features.transform(X), expected, atol=1e-5)


def test_other_maps():
    X = histograms(30, 6)
    features = ExactFeatures("exp-chi2", map=DirectMap(n_terms=3)).fit(X)
    assert features.map_.kernel_ == chi2
    assert features.map_.n_terms == 3
    with pytest.raises(ValueError, match="DirectMap approximates chi2"):
        ExactFeatures(Exponential(jensen_shannon), map=DirectMap()).fit(X)


def test_bad_rows():
    with pytest.raises(DataError, match="all rows are equal"):
        ExactFeatures().fit(np.full((5, 3), 0.2))
    assert ExactFeatures(gamma=2.0).fit(np.full((5, 3), 0.2)).transform(np.full((1, 3), 0.2)).tolist() == [[1.0] * 5]
    assert ExactFeatures().fit(np.full((1, 3), 0.2)).kernel_.gamma == 1.0
    with pytest.raises(DataError, match="Negative values"):
        ExactFeatures().fit(-np.eye(3))


@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_matrix])
def test_products_of_weights_with_kept_rows_are_those_with_rows_about_their_mean(as_rows):
    rng = np.random.default_rng(0)
    rows = rng.random((50, 12)) * (rng.random((50, 12)) < np.r_[np.full(6, 0.9), np.full(6, 0.02)])
    kept, weights = KeptRows(as_rows(rows)), rng.normal(size=(3, 20))
    some = kept.take(np.arange(10, 30))
    np.testing.assert_allclose(weights @ some, weights @ some.centred())
    assert some.shape == (20, 12)
    assert 0 < kept.columns.size <= 12


def test_rows_without_rare_columns_take_no_part_in_sparse_matrices(monkeypatch):
    """Making one takes longer than the products of 100 rows."""
    rows = np.random.default_rng(0).random((40, 5))
    kept = KeptRows(rows.copy())
    expected = kept.centred() @ kept.centred().T
    monkeypatch.setattr(KeptRows, "_rare", property(lambda self: pytest.fail("a sparse matrix of nothing")))
    monkeypatch.setattr(module, "_without", lambda *given: pytest.fail("a sparse matrix of nothing"))
    out, square = np.empty((7, 40)), np.empty((40, 40))
    kept.values_into(rows[:7], None, out)
    kept.gram_into(square, None)
    np.testing.assert_allclose(out, expected[:7], atol=1e-12)
    np.testing.assert_allclose(np.tril(square, -1), np.tril(expected, -1), atol=1e-12)


@pytest.mark.parametrize("kernel", ["exp-chi2", "gaussian", "minmax", "exp-jensen_shannon"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("way", ["keeper", "extend"])
def test_rows_to_come_may_fill_columns_that_the_first_rows_lack(kernel, kind, way):
    X = wide(40)
    X[:10, :2] = 0
    X[:10, 40:] = 0
    features = ExactFeatures(kernel, n_terms=10, gamma=0.8, random_state=0).fit(kind(X[:10]))
    if way == "keeper":
        keeper = features.keeper(40)
        for part in (np.arange(20, 40), np.arange(20)):
            keeper.put(part, kind(X[part]))
        keeper.close()
    else:
        for part in (slice(10, 25), slice(25, 40)):
            features.extend(kind(X[part]))
    square = np.empty((40, 40))
    diagonal = features.gram_into(square)
    below = np.tril(square, -1)
    np.testing.assert_allclose(below + below.T + np.diag(diagonal), features.kernel_(X), atol=0.01)
    np.testing.assert_allclose(features.transform(kind(X[5:30])), features.kernel_(X[5:30], X), atol=0.01)
