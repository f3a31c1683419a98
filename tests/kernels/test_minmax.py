"""The min-max kernel by its definition."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import MinMax, NystroemFeatures, _loops
from chimap._validation import DataError
from chimap.kernels import as_kernel, minmax

from ..histograms import DTYPES, histograms


def by_definition(X, Y):
    top = np.maximum(X[:, None], Y).sum(axis=2)
    return np.where(top > 0, np.minimum(X[:, None], Y).sum(axis=2) / np.where(top > 0, top, 1), 1.0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_definition(dtype, kind):
    X = np.random.default_rng(0).poisson(0.7, (40, 15)).astype(dtype)
    X[[3, 8]] = 0
    expected = by_definition(X, X[:9])
    K = as_kernel("minmax")(kind(X), kind(X[:9]))
    assert K.dtype == dtype
    np.testing.assert_allclose(K, expected, rtol=1e-6 if dtype == np.float32 else 1e-14)
    assert K[3, 8] == K[3, 3] == 1
    np.testing.assert_allclose(MinMax().distance(kind(X), kind(X[:9])), 2 - 2 * expected, atol=1e-6)
    np.testing.assert_array_equal(MinMax().diagonal(kind(X)), 1)


def test_sparse_rows_are_compared_by_the_bins_that_they_share():
    X = np.random.default_rng(1).gamma(1.0, 1.0, (30, 40)) * (np.random.default_rng(2).random((30, 40)) < 0.2)
    X[4], X[7] = 0, X[6]
    rows = sp.csr_matrix(X)
    K = MinMax()(rows)
    np.testing.assert_allclose(K, by_definition(X, X), rtol=1e-13)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diagonal(K), 1)
    assert K[6, 7] == 1
    np.testing.assert_array_equal(MinMax()(X[:5], rows), K[:5])  # dense rows, such as a mean row, with sparse ones
    with pytest.raises(DataError, match="negative"):
        MinMax()(-X, rows)


def test_whole_numbers_are_compared_as_bits_with_the_same_result(monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.poisson(rng.gamma(0.3, 2.0, 90), (300, 90))  # bins that few rows fill, and bins of many levels
    X[:, 0], X[:, 1], X[7], X[20] = 5 + rng.poisson(20, 300), rng.integers(0, 17, 300), 0, X[19]
    words, minmax_sparse = [], _loops.minmax_sparse
    monkeypatch.setattr(minmax, "_FEWEST_PAIRS", 10_000)
    monkeypatch.setattr(
        _loops, "minmax_sparse", lambda *given: words.append(given[0].shape[1]) or minmax_sparse(*given)
    )
    for dtype in DTYPES:
        rows = sp.csr_matrix(X.astype(dtype))
        K = MinMax()(rows, rows[:100])
        np.testing.assert_array_equal(K, by_definition(X, X[:100]).astype(dtype))
        assert K[19, 20] == K[7, 7] == 1
        assert set(words) == {3}
        np.testing.assert_array_equal(MinMax()(rows[:9], rows[:100]), K[:9])  # few rows, by the bins that they share
        np.testing.assert_allclose(MinMax()(0.3 * rows, 0.3 * rows[:100]), K, rtol=1e-6)
        assert set(words) == {0, 3}
        words.clear()


def test_scale_free_and_binary():
    X = histograms(20)
    np.testing.assert_allclose(MinMax()(1e-30 * X), MinMax()(X), rtol=1e-12)
    bits = (X > 0).astype(float)
    shared = bits @ bits.T
    tanimoto = shared / (bits.sum(axis=1)[:, None] + bits.sum(axis=1) - shared)
    np.testing.assert_allclose(MinMax()(bits), tanimoto, rtol=1e-14)


def test_close_rows_keep_their_distance():
    X = histograms(2)
    near = X * (1 + 1e-13 * np.arange(12) / 12)
    expected = 2 * np.abs(X - near).sum(axis=1) / X.sum(axis=1)
    np.testing.assert_allclose(np.diagonal(MinMax().distance(X, near)), expected, rtol=1e-2)


def test_landmarks():
    X = np.random.default_rng(0).poisson(0.7, (60, 15)).astype(float)
    Z = NystroemFeatures("minmax", 60, landmarks="uniform", random_state=0).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, by_definition(X, X), atol=1e-6)
