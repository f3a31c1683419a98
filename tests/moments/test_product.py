"""Products of batches begin anew, whatever is in the memory that they are given."""

from __future__ import annotations

import numpy as np
import pytest

from chimap.moments import Symmetric
from chimap.moments.product import BatchProduct, BFloat16Product


@pytest.mark.parametrize("make", [BatchProduct, BFloat16Product])
def test_what_was_in_memory_is_not_added(make):
    if make is BFloat16Product:
        pytest.importorskip("torch", reason="torch multiplies bfloat16")
    Z = np.arange(-6, 6, dtype=np.float32).reshape(4, 3)  # whole numbers, which bfloat16 holds
    product, sums = make(3, Z.dtype), Symmetric(3)
    assert product.rows == 0
    product._square[:] = np.nan
    for _ in range(2):
        product.add(Z[:1])
        product.add(Z[1:])
        assert product.rows == 4
        product.move_to(sums)
        product._square[:] = np.nan
    product.move_to(sums)  # of no rows
    np.testing.assert_allclose(sums.to_square(), 2 * Z.T @ Z)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_memory_that_it_says_is_what_it_takes(dtype):
    product = BatchProduct(70, np.dtype(dtype))
    assert BatchProduct.nbytes(70, np.dtype(dtype).itemsize) == product._square.base.nbytes
