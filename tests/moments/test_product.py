"""Products of batches begin anew, whatever is in the memory that they are given."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import _loops, _onednn
from chimap.moments import Symmetric
from chimap.moments.product import BatchProduct, BFloat16Product

needs_onednn = pytest.mark.skipif(not _onednn.multiplies(), reason="oneDNN multiplies bfloat16")


@pytest.mark.parametrize("make", [BatchProduct, pytest.param(BFloat16Product, marks=needs_onednn)])
def test_what_was_in_memory_is_not_added(make):
    Z = np.arange(-6, 6, dtype=np.float32).reshape(4, 3)  # whole numbers, which bfloat16 holds
    product, sums = make(3, Z.dtype), Symmetric(3)
    assert product.rows == 0
    product._square[:] = np.nan
    for _ in range(2):
        product.add(Z[:1].copy())  # a product may overwrite its rows
        product.add(Z[1:].copy())
        assert product.rows == 4
        product.move_to(sums)
        product._square[:] = np.nan
    product.move_to(sums)  # of no rows
    np.testing.assert_allclose(sums.to_square(), 2 * Z.T @ Z)


@needs_onednn
@pytest.mark.parametrize("n", [1, 767, 769, 1700])
def test_tiles_make_the_whole_triangle(n):
    Z = np.random.default_rng(0).standard_normal((300, n)).astype(np.float32)
    _loops.round_to_bfloat16(Z)
    expected = Z.T.astype(float) @ Z
    product, sums = BFloat16Product(n, Z.dtype), Symmetric(n)
    product.add(Z[:100].copy())
    product.add(Z[100:].copy())
    product.move_to(sums)
    np.testing.assert_allclose(sums.to_square(), expected, rtol=0, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_memory_that_it_says_is_what_it_takes(dtype):
    product = BatchProduct(70, np.dtype(dtype))
    assert BatchProduct.nbytes(70, np.dtype(dtype).itemsize) == product._square.base.nbytes
