"""Close rows, tiny and huge bins: nothing cancels, overflows or vanishes on the way."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from chimap.kernels import CATALOGUE

from ..histograms import histograms
from .definitions import VARIANTS, decimal_distance, decimal_kernel, variant_name

PLAIN = [kernel for kernel in VARIANTS if not kernel.is_signed]
KINDS = {"dense": np.asarray, "sparse": sp.csr_matrix}
# Bins of float64 as people could have them, zeros among them; powers of their products stay within the range.
BINS = st.just(0.0) | st.floats(1e-100, 1e30)
LIMITS = {np.float64: (1e-300, 1e30), np.float32: (1e-37, 1e18)}

plain_variants = pytest.mark.parametrize("kernel", PLAIN, ids=variant_name)
dense_and_sparse = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@plain_variants
@dense_and_sparse
@pytest.mark.parametrize("gap", [1e-3, 1e-7])
def test_distance_of_close_rows(kernel, kind, gap):
    X = histograms(3, 8)
    Y = X * (1 + gap * np.random.default_rng(1).standard_normal(X.shape))
    X[2, 5], Y[2, 5] = 0, gap  # and a bin that one row alone holds
    found = np.diagonal(kernel.distance(kind(X), kind(Y)))
    expected = [float(decimal_distance(kernel, x, y)) for x, y in zip(X, Y, strict=True)]
    # roots and powers of the bins are rounded before they are subtracted: eps / gap is what is left
    np.testing.assert_allclose(found, expected, rtol=1e-14 / gap)


@plain_variants
@dense_and_sparse
@pytest.mark.parametrize("dtype", LIMITS)
def test_far_ends_of_the_range(kernel, kind, dtype):
    low, high = LIMITS[dtype]
    values = np.array([0, low, 3 * low, np.sqrt(low), 1e-3, 1.0, np.sqrt(high), high / 7, high], dtype)
    values = values[:, None]
    tolerance, limits = (1e-12 if dtype == np.float64 else 1e-5), np.finfo(dtype)
    for found, exact in ((kernel(kind(values)), decimal_kernel), (kernel.distance(kind(values)), decimal_distance)):
        expected = np.array([[float(exact(kernel, x, y)) for y in values] for x in values])
        # Below the smallest normal number digits are lost, whatever is done. Equal rows are no further from each
        # other than roundings squared.
        own = values.astype(float) ** kernel.gamma
        rounding = limits.tiny + 16 * limits.eps**2 * (own + own.T)
        with np.errstate(invalid="ignore"):
            close = np.abs(found - expected) <= tolerance * expected + rounding
        assert np.all(close | (expected >= limits.max))


@pytest.mark.parametrize("kernel", CATALOGUE.values(), ids=CATALOGUE)
@dense_and_sparse
@pytest.mark.parametrize("dtype", LIMITS)
def test_subnormal_bins(kernel, kind, dtype):
    smallest = np.finfo(dtype).smallest_subnormal
    x = kind(np.array([[smallest, 1000 * smallest, 0]], dtype))
    one = kind(np.ones((1, 3), dtype))
    for K in (kernel(x), kernel(x, one), kernel.distance(x, one)):
        assert np.isfinite(K).all()
        assert K.min() >= 0
    np.testing.assert_allclose(kernel.distance(x, one), 3.0, rtol=1e-6)


@dense_and_sparse
@pytest.mark.parametrize("kernel", VARIANTS, ids=variant_name)
def test_rows_of_zeros(kernel, kind):
    X = histograms(4)
    zeros = np.zeros_like(X)
    assert np.all(kernel(kind(zeros)) == 0)
    assert np.all(kernel.distance(kind(zeros)) == 0)
    assert np.all(kernel(kind(X), kind(zeros)) == 0)
    own = np.broadcast_to(kernel.diagonal(X)[:, None], (4, 4))
    np.testing.assert_allclose(kernel.distance(kind(X), kind(zeros)), own, rtol=1e-13)


@plain_variants
@given(rows=arrays(np.float64, (2, 6), elements=BINS), exponent=st.integers(-60, 60))
def test_scaling(kernel, rows, exponent):
    """k(cx, cy) = c^gamma k(x, y)."""
    c = 2.0**exponent
    expected = c**kernel.gamma * kernel(rows)
    np.testing.assert_allclose(kernel(c * rows), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel(sp.csr_matrix(c * rows)), expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", VARIANTS, ids=variant_name)
@given(rows=arrays(np.float64, (3, 5), elements=BINS), signs=arrays(np.bool_, (3, 5)))
def test_bounds(kernel, rows, signs):
    """Cauchy and Schwarz; distances that are no less than 0; dense as sparse."""
    X = np.where(signs, -rows, rows) if kernel.is_signed else rows
    K, own, D = kernel(X), kernel.diagonal(X), kernel.distance(X)
    roots = np.sqrt(own)
    assert np.all(np.abs(K) <= roots[:, None] * roots * (1 + 1e-12))
    assert np.all(D >= 0)
    assert np.all(np.sqrt(D) <= (roots[:, None] + roots) * (1 + 1e-12))
    np.testing.assert_allclose(kernel(sp.csr_matrix(X)), K, rtol=1e-12, atol=1e-12 * own.max())
    sparse = kernel.distance(sp.csr_matrix(X))
    np.testing.assert_allclose(sparse, D, rtol=1e-9, atol=1e-12 * own.max())
