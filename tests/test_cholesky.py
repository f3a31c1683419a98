from __future__ import annotations

import numpy as np
import pytest

from chimap import _cholesky as cholesky
from chimap import _threads

from .histograms import DTYPES


def matrix(n: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """(positive definite matrix, float64; the same with marks below the diagonal)."""
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, n + 5)).astype(dtype)
    square = (A @ A.T / n + np.eye(n)).astype(dtype)
    square = np.triu(square) + np.triu(square, 1).T
    marked = square.copy()
    marked[np.tril_indices(n, -1)] = 7
    return square.astype(np.float64), marked


@pytest.mark.parametrize("n", [1, 5, 64, 130, 257])
@pytest.mark.parametrize("dtype", DTYPES)
def test_factor_solution_and_inverse(n, dtype, monkeypatch):
    monkeypatch.setattr(cholesky, "TILE", 48)
    monkeypatch.setattr(cholesky, "_STEP", 32)
    monkeypatch.setattr(cholesky, "_STRIP", 48)
    square, R = matrix(n, dtype)
    assert cholesky.factorise(R)
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    assert (R[np.tril_indices(n, -1)] == 7).all()
    np.testing.assert_allclose(np.triu(R).T @ np.triu(R), square, atol=tolerance)
    inverse, B = np.linalg.inv(square), np.random.default_rng(0).standard_normal((n, 3))
    np.testing.assert_allclose(cholesky.solve(R, B), inverse @ B, atol=tolerance)
    assert cholesky.solve(R, B[:, :0]).shape == (n, 0)
    np.testing.assert_allclose(cholesky.inverse_diagonal(R), np.diag(inverse), rtol=tolerance)
    np.testing.assert_allclose(cholesky.inverse_diagonal(R, n // 2), np.diag(inverse)[n // 2 :], rtol=tolerance)
    blocks = [np.array([n - 1, 0]) if n > 1 else np.array([0]), np.arange(n // 2, n)]
    seen: dict[int, np.ndarray] = {}
    cholesky.inverse_blocks(R, blocks, seen.__setitem__)
    for k, rows in enumerate(blocks):
        np.testing.assert_allclose(seen[k], inverse[np.ix_(rows, rows)], atol=tolerance)


@pytest.mark.parametrize("place", [0, 60, 99])
def test_not_positive_definite(place, monkeypatch):
    monkeypatch.setattr(cholesky, "TILE", 32)
    _, R = matrix(100, np.float64)
    R[place, place] = -1
    assert not cholesky.factorise(R)


def test_one_thread_gives_the_same():
    _, R = matrix(900, np.float32)
    other = R.copy()
    cholesky.factorise(R)
    with _threads.threads(1):
        cholesky.factorise(other)
    np.testing.assert_array_equal(R, other)
    B = np.random.default_rng(0).standard_normal((900, 3))
    with _threads.threads(1):
        alone = cholesky.solve(R, B)
    np.testing.assert_array_equal(cholesky.solve(R, B), alone)


@pytest.mark.parametrize("n", [1, 5, cholesky.TILE, cholesky.TILE + 1, 1000])
def test_a_triangle_is_inverted_in_place(n):
    rng = np.random.default_rng(n)
    R = rng.normal(size=(n, n))
    R[np.diag_indices(n)] = n + rng.random(n)
    triangle, below = np.triu(R), np.tril(R, -1)
    cholesky.invert(R)
    assert np.abs(np.triu(R) @ triangle - np.eye(n)).max() < 1e-12
    assert np.array_equal(np.tril(R, -1), below)
