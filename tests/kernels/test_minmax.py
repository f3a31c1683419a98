"""The min-max kernel by its definition."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import MinMax, NystroemFeatures
from chimap.kernels import as_kernel

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
