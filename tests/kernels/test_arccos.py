"""The arc-cosine kernel against its definition."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from chimap import ArccosKernel, Exponential, chi2
from chimap._validation import DataError
from chimap.kernels import CATALOGUE

from ..histograms import DTYPES, SPARSE_KINDS, histograms, signed_histograms

every_kernel = pytest.mark.parametrize("kernel", CATALOGUE.values(), ids=CATALOGUE)


@every_kernel
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_definition(kernel, gamma):
    X, Y = histograms(), histograms(9, seed=1)
    k = kernel.with_gamma(gamma)

    def unit(A):
        return A / k.diagonal(A)[:, None] ** (1 / gamma)

    expected = 1 - 2 / np.pi * np.arccos(np.clip(k(unit(X), unit(Y)), -1, 1))
    arccos = ArccosKernel(k)
    np.testing.assert_allclose(arccos(X, Y), expected, atol=1e-12)
    np.testing.assert_allclose(arccos.distance(X, Y), 2 - 2 * expected, atol=1e-12)
    np.testing.assert_allclose(np.diagonal(arccos(X)), 1, rtol=1e-15)
    np.testing.assert_array_equal(arccos.diagonal(X), 1)
    assert np.linalg.eigvalsh(arccos(X)).min() > -1e-12
    scales = np.random.default_rng(0).lognormal(0, 5, size=(30, 1))
    np.testing.assert_allclose(arccos(scales * X, Y), arccos(X, Y), atol=1e-12)


def test_signed():
    X = signed_histograms()
    K = ArccosKernel(chi2.signed())(np.vstack([X, -X]))
    np.testing.assert_allclose(K[:30, 30:].diagonal(), -1, rtol=1e-7)
    np.testing.assert_allclose(K[:30, :30], -K[:30, 30:], atol=1e-7)
    assert ArccosKernel(chi2.signed()).is_signed


@pytest.mark.parametrize("kind", SPARSE_KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sparse(kind, dtype):
    X = histograms().astype(dtype)
    K = ArccosKernel(chi2)(SPARSE_KINDS[kind](X))
    assert K.dtype == dtype
    np.testing.assert_allclose(K, ArccosKernel(chi2)(X), atol=1e-6 if dtype == np.float32 else 1e-13)


def test_close_rows_keep_their_digits():
    """arccos(1 - e) = sqrt(2e): rounding of k would show at half of the digits."""
    x = np.array([[0.5, 0.5]])
    y = np.array([[0.5 + 1e-10, 0.5 - 1e-10]])
    angle = np.sqrt(chi2.distance(x, y))  # of sine and arc alike
    np.testing.assert_allclose(ArccosKernel(chi2).distance(x, y), 4 / np.pi * angle, rtol=1e-9)
    single = histograms().astype(np.float32)
    np.testing.assert_array_equal(np.diagonal(ArccosKernel(chi2)(single, 3 * single)) > 1 - 1e-6, True)


def test_empty_rows_are_like_nothing():
    X = np.array([[0.0, 0.0], [0.3, 0.7]])
    for kind in (np.asarray, sp.csr_matrix):
        kernel = ArccosKernel(chi2)
        np.testing.assert_array_equal(kernel(kind(X)), [[0, 0], [0, 1]])
        np.testing.assert_array_equal(kernel.distance(kind(X)), [[0, 1], [1, 0]])
        np.testing.assert_array_equal(kernel.diagonal(kind(X)), [0, 1])


@given(arrays(np.float64, (3, 4), elements=st.just(0.0) | st.floats(1e-300, 1e300)))
def test_any_histogram(x):
    for kernel in CATALOGUE.values():
        K = ArccosKernel(kernel)(x)
        assert np.all(np.abs(K) <= 1)
        np.testing.assert_array_equal(np.diagonal(K), x.any(axis=1))


def test_bad_input():
    for wrong in ("chi2", Exponential(chi2, 1.0), None):
        with pytest.raises(ValueError, match="ArccosKernel takes an additive kernel such as chi2"):
            ArccosKernel(wrong)
    X = histograms()
    X[3, 4] = -1
    with pytest.raises(DataError, match="row 3, column 4"):
        ArccosKernel(chi2)(X)
    X[3] = 1e308
    with pytest.raises(DataError, match="Y, row 3: its bins sum to more than"):
        ArccosKernel(chi2)(X[:3], X)
    assert ArccosKernel(chi2).name == "arccos-chi2"
