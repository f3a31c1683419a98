"""Skewed, Gaussian and linear kernels against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from chimap import Exponential, Gaussian, Linear, SkewedChi2, SkewedIntersection, chi2
from chimap._validation import DataError
from chimap.kernels import as_kernel

from ..golden import RELATIVE, golden
from ..histograms import histograms, signed_histograms

KINDS = {"skewed_chi2": SkewedChi2, "skewed_intersection": SkewedIntersection}
skewed = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("dtype", RELATIVE)
def test_golden(name, dtype):
    for row in golden("skewed")["kernels"]:
        kernel = KINDS[name](row["c"], row["sigma"])
        x, y = (np.array([[row[v]]], dtype) for v in "xy")
        found = kernel(x, y)
        assert found.dtype == dtype
        np.testing.assert_allclose(found[0, 0], row[name], rtol=RELATIVE[dtype])
        np.testing.assert_allclose(kernel.distance(x, y)[0, 0], 2 - 2 * row[name], rtol=RELATIVE[dtype], atol=1e-15)


@skewed
def test_is_the_product_over_bins(make):
    X, Y = histograms(9, 7), histograms(5, 7, seed=1)
    kernel = make(0.1, 0.8)
    expected = np.prod([kernel(X[:, [i]], Y[:, [i]]) for i in range(7)], axis=0)
    for kind in (np.asarray, sp.csr_matrix):
        np.testing.assert_allclose(kernel(kind(X), kind(Y)), expected, rtol=1e-12)
    np.testing.assert_array_equal(kernel.diagonal(X), np.ones(9))
    np.testing.assert_allclose(np.diagonal(kernel(X)), 1, rtol=1e-13)
    assert np.linalg.eigvalsh(kernel(X)).min() > -1e-12
    assert kernel(X.astype(np.float32)).dtype == np.float32


@skewed
def test_thousands_of_bins_do_not_leave_the_floats(make):
    X = np.random.default_rng(0).random((4, 20_000))
    with np.errstate(over="raise", invalid="raise"):
        found = make(1e-3)(X)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.diagonal(found), 1, rtol=1e-9)


@skewed
def test_close_rows_keep_their_distance(make):
    x = np.full((1, 3), 0.5)
    y = x * (1 + 1e-9)
    assert 0 < make(0.1).distance(x, y)[0, 0] < 1e-6


@skewed
@pytest.mark.parametrize("n_bins", [12, 600])
def test_automatic_c_keeps_the_kernel_away_from_zero(make, n_bins):
    X = histograms(60, n_bins)
    K = make().fitted(X)(X)
    assert -np.log(K).sum() / (60 * 59) < 1.01
    assert -np.log(K).sum() / (60 * 59) > 0.9


@skewed
def test_automatic_c_goes_with_the_scale(make):
    X = histograms()
    c = make().fitted(X).c
    assert c >= np.median(X[X > 0])
    assert make().fitted(1000 * X).c == pytest.approx(1000 * c)
    np.testing.assert_allclose(make()(1000 * X), make()(X), rtol=1e-9)
    assert make().fitted(np.zeros((2, 2))).c == 1
    close = X[:1] * np.array([[1.0], [1.01]])  # K is near 1 already
    assert make().fitted(close).c == np.median(close[close > 0])
    assert make().fitted(sp.csr_matrix(X)).c == c


@skewed
def test_bad_input(make):
    for wrong in ({"c": 0}, {"c": -1.0}, {"c": "median"}, {"sigma": 0}, {"sigma": np.inf}):
        with pytest.raises(ValueError, match=r"must be a positive number"):
            make(**wrong)
    X = histograms()
    X[4, 3] = -0.5
    with pytest.raises(DataError, match=r"X, row 4, column 3: -0.5 is not above -c = -0.25"):
        make(0.25)(X)
    assert np.isfinite(make(0.75)(X)).all()


def test_gaussian():
    X, Y = signed_histograms(), signed_histograms(9, seed=1)
    np.testing.assert_allclose(Gaussian(0.7)(X, Y), rbf_kernel(X, Y, 0.7), rtol=1e-10)
    np.testing.assert_allclose(Gaussian(0.7)(sp.csr_matrix(X)), rbf_kernel(X, gamma=0.7), rtol=1e-10)
    found = Gaussian().fitted(X)
    distances = Linear().distance(X)
    assert found.gamma == pytest.approx(30 * 29 / distances.sum())
    assert isinstance(found, Gaussian)
    assert (as_kernel("gaussian", 2.0), found.name) == (Gaussian(2.0), "gaussian")


def test_linear():
    X, Y = signed_histograms(), signed_histograms(9, seed=1)
    for kind in (np.asarray, sp.csr_matrix):
        np.testing.assert_allclose(Linear()(kind(X), kind(Y)), X @ Y.T, atol=1e-15)
        np.testing.assert_allclose(Linear().diagonal(kind(X)), (X * X).sum(axis=1))
    expected = ((X[:, None] - Y) ** 2).sum(axis=2)
    np.testing.assert_allclose(Linear().distance(X, Y), expected, atol=1e-14)
    assert as_kernel("linear") == Linear()


def test_exponential_takes_additive_and_linear_kernels():
    assert Exponential(chi2, 1.0).is_signed is False
    assert Exponential(chi2.signed(), 1.0).is_signed
    assert Gaussian(1.0).is_signed
    with pytest.raises(ValueError, match="Exponential takes an additive kernel"):
        Exponential(SkewedChi2())


def test_automatic_c_is_raised_however_little_the_median_falls_short():
    X = histograms(60, 6)
    median = np.median(X[X > 0])
    below, chosen = (-np.log(k(X)).sum() / (60 * 59) for k in (SkewedIntersection(median), SkewedIntersection()))
    assert 1.5 < below < 2
    assert chosen == pytest.approx(1, rel=0.01)
