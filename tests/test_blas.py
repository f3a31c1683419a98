"""Products on views, against numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import _blas


def numbers(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("add", [False, True])
def test_multiply_on_views(dtype, add):
    A, B = numbers(9, 20, dtype=dtype), numbers(7, 30, dtype=dtype, seed=1)
    square = numbers(9, 40, dtype=dtype, seed=2)
    views = [
        (A[:, 3:10], B[:, :5], square[:, 4:9]),  # rows apart
        (A[::2, :7], B[:, ::3], square[:5, :10]),  # scattered rows are copied
        (np.asfortranarray(A[:, :7]), np.asfortranarray(B), square[:, :30]),
        (A[::-1, :7], B[:, :1], square[:, 8:9]),
        (A[:1, :7], B[:, :4], square[:1, :4]),
        (A[:0, :7], B[:, :4], square[:0, :4]),
    ]
    for a, b, out in views:
        before, outside = out.copy(), square.sum(dtype=float) - out.sum(dtype=float)
        _blas.multiply(a, b, out, add=add)
        np.testing.assert_allclose(out, a @ b + add * before, rtol=1e-4, atol=1e-5)
        assert square.sum(dtype=float) - out.sum(dtype=float) == pytest.approx(outside, abs=1e-4)
        before = out.copy()
        _blas.multiply(a, np.ascontiguousarray(b.T), out, transpose=True, add=add)
        np.testing.assert_allclose(out, a @ b + add * before, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squares_add_up_in_the_upper_triangle(dtype):
    Z = numbers(50, 12, dtype=dtype)
    out = np.full((10, 16), np.nan, dtype)
    _blas.add_square(Z[:30, 1:11], out[:, 2:12], add=False)
    _blas.add_square(Z[30:, 1:11], out[:, 2:12], add=True)
    expected = Z[:, 1:11].T @ Z[:, 1:11]
    upper = np.triu_indices(10)
    np.testing.assert_allclose(out[:, 2:12][upper], expected[upper], rtol=1e-4, atol=1e-5)
    assert np.isnan(out[:, :2]).all()
    assert np.isnan(out[:, 12:]).all()


def test_what_does_not_fit():
    A, B = numbers(3, 4), numbers(4, 5)
    for out in (np.empty((3, 4)), np.empty((3, 5), np.float32), np.empty((5, 3)).T):
        with pytest.raises(ValueError, match="the product is"):
            _blas.multiply(A, B, out)
    with pytest.raises(ValueError, match="does not multiply one of 5 rows"):
        _blas.multiply(A, numbers(5, 5), np.empty((3, 5)))
    with pytest.raises(ValueError, match="the product is"):
        _blas.add_square(A.astype(int), np.empty((4, 4), int), add=False)
