"""Consistent weighted sampling: how often samples agree is the kernel."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from chimap import MinMax, MinMaxFeatures

from ..histograms import classes


def counts(n=40, bins=30, seed=0):
    return np.random.default_rng(seed).poisson(0.8, (n, bins)) * np.random.default_rng(1).integers(1, 5, bins)


@pytest.mark.parametrize("n_bits", [2, 8])
def test_agreement_is_the_kernel(n_bits):
    X = counts()
    k = 4096
    Z = MinMaxFeatures(k, n_bits, n_level_bits=8, random_state=0).fit(X).transform(X)
    K, chance = MinMax()(X), 2.0**-n_bits
    error = (Z @ Z.T).toarray() - (K + (1 - K) * chance)
    assert np.abs(error.mean()) < 3e-3
    assert np.abs(error).max() < 5 / (2 * np.sqrt(k))
    np.testing.assert_allclose(np.diagonal((Z @ Z.T).toarray()), 1)


def test_the_bin_alone_agrees_little_more_often():
    X = counts(20, 400)
    Z = MinMaxFeatures(2048, 12, random_state=0).fit_transform(X)
    above = (Z @ Z.T).toarray() - MinMax()(X)
    assert -3e-3 < above.mean() < 1e-2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shape_and_determinism(dtype):
    X = counts().astype(dtype)
    X[4] = 0
    features = MinMaxFeatures(64, 4, random_state=3).fit(X)
    Z = features.transform(X)
    assert Z.shape == (40, 64 * 16)
    assert Z.dtype == dtype
    np.testing.assert_array_equal(np.diff(Z.indptr), np.where(np.arange(40) == 4, 0, 64))
    assert (Z.indices // 16 == np.tile(np.arange(64), 39)).all()
    again = MinMaxFeatures(64, 4, random_state=3).fit(sp.csr_matrix(X)).transform(sp.csr_matrix(X))
    assert abs(Z - again).max() == 0
    out = np.empty((40, 1024), dtype)
    features.features_into(X, out, np.full(1024, 0.5))
    np.testing.assert_allclose(out, Z.toarray() - 0.5)


def test_a_linear_machine_on_them():
    X, y = classes(400)
    Z = MinMaxFeatures(256, random_state=0).fit_transform(X)
    assert LinearSVC(C=0.1).fit(Z[:300], y[:300]).score(Z[300:], y[300:]) > 0.75


def test_bad_input():
    with pytest.raises(ValueError, match="n_bits must be at most 16; got 17"):
        MinMaxFeatures(8, 17).fit(counts())
    with pytest.raises(ValueError, match="n_components must be a positive whole number"):
        MinMaxFeatures(0).fit(counts())
    with pytest.raises(ValueError, match=r"Negative values .* row 0, column 0"):
        MinMaxFeatures(8).fit(counts()).transform(-1.0 - counts())
