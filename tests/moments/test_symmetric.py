"""Half a symmetric matrix, in row panels of 256."""

from __future__ import annotations

import numpy as np
import pytest

from chimap._threads import threads
from chimap.moments import BatchProduct, Symmetric

SIZES = (1, 2, 255, 256, 257, 600)

every_size = pytest.mark.parametrize("n", SIZES)


def add_product(S, Z):
    product = BatchProduct(S.n, Z.dtype)
    product.add(Z[:20])
    product.add(Z[20:])
    assert product.rows == Z.shape[0]
    product.move_to(S)
    product.move_to(S)  # nothing is left to move
    assert product.rows == 0


def product(n, dtype=np.float64, n_rows=50):
    Z = np.random.default_rng(n).standard_normal((n_rows, n)).astype(dtype)
    S = Symmetric(n)
    add_product(S, Z)
    return Z.astype(np.float64), S


@every_size
def test_values_are_added_at_entries(n):
    _, S = product(n)
    rng, before = np.random.default_rng(1), S.to_square()
    rows, columns = np.triu_indices(n)
    some = rng.permutation(rows.size)[:400]
    values = rng.standard_normal(some.size)
    S.add_at(rows[some], columns[some], values)
    added = np.zeros((n, n))
    added[rows[some], columns[some]] = added[columns[some], rows[some]] = values
    np.testing.assert_allclose(S.to_square(), before + added, rtol=1e-12)


@every_size
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_product(n, dtype):
    Z, S = product(n, dtype)
    expected, atol = Z.T @ Z, 2e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(S.to_square(), expected, rtol=1e-5, atol=atol)
    np.testing.assert_array_equal(S.to_square(), S.to_square().T)
    np.testing.assert_allclose(S.diagonal(), np.diagonal(expected), rtol=1e-5, atol=atol)
    add_product(S, Z.astype(dtype))
    np.testing.assert_allclose(S.to_square(), 2 * expected, rtol=1e-5, atol=2 * atol)


@every_size
@pytest.mark.parametrize("columns", [1, 3, 8, 40])
def test_times_a_matrix(n, columns):
    Z, S = product(n)
    B = np.random.default_rng(0).standard_normal((n, columns))
    for right in (B, np.asfortranarray(B)):
        np.testing.assert_allclose(S @ right, Z.T @ (Z @ B), rtol=1e-10, atol=1e-9)
    with threads(1):
        np.testing.assert_allclose(S @ B, Z.T @ (Z @ B), rtol=1e-10, atol=1e-9)


@every_size
def test_outer(n):
    S = Symmetric(n)
    a, b = np.random.default_rng(0).standard_normal((2, n))
    S.add_outer(a, b, 3.0)
    expected = 1.5 * (np.outer(a, b) + np.outer(b, a))
    np.testing.assert_allclose(S.to_square(), expected, atol=1e-14)
    np.testing.assert_allclose(S @ np.c_[a, b], expected @ np.c_[a, b], atol=1e-11)


@every_size
def test_memory_and_views(n):
    _, S = product(n)
    assert S.flat.nbytes <= Symmetric.nbytes(n) <= 8 * n * n
    square = np.full((n, n), np.nan)
    S.upper_into(square)
    np.testing.assert_array_equal(np.triu(S.to_square()), np.triu(np.nan_to_num(square)))
    twin = S.copy()
    twin.flat += 1
    assert not np.array_equal(twin.flat, S.flat)
    again = Symmetric(n, S.flat)
    np.testing.assert_array_equal(again.to_square(), S.to_square())


def test_what_does_not_fit():
    with pytest.raises(ValueError, match="order 3 multiplies 3 rows"):
        Symmetric(3) @ np.zeros((2, 3))
    with pytest.raises(ValueError, match="order 3 keeps 9 numbers"):
        Symmetric(3, np.zeros(8))


def test_of_order_zero():
    assert Symmetric(0).diagonal().shape == (0,)
    assert Symmetric(0).flat.size == 0


def test_the_last_panel_holds_its_own_rows_alone():
    """Panels of 256, 256 and 88 rows, from their diagonals on."""
    assert Symmetric(600).flat.size == 256 * 600 + 256 * 344 + 88 * 88


@every_size
@pytest.mark.parametrize("columns", [1, 5])
def test_quadratic_form(n, columns):
    Z, S = product(n)
    B = np.random.default_rng(0).standard_normal((n, columns))
    assert S.quadratic(B) == pytest.approx(np.square(Z @ B).sum(), rel=1e-10)


@pytest.mark.parametrize("n", [1, 255, 600])
@pytest.mark.parametrize("step", [1, 2, 7])
def test_some_rows_and_columns(n, step):
    S = product(n)[1]
    chosen = np.arange(0, n, step)
    np.testing.assert_array_equal(S.taken(chosen).to_square(), S.to_square()[np.ix_(chosen, chosen)])


def test_what_was_in_memory_is_not_added():
    Z = np.arange(-6, 6, dtype=np.float32).reshape(4, 3)
    product, sums = BatchProduct(3, Z.dtype), Symmetric(3)
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_memory_that_it_says_is_what_it_takes(dtype):
    product = BatchProduct(70, np.dtype(dtype))
    assert BatchProduct.nbytes(70, np.dtype(dtype).itemsize) == product._square.base.nbytes
