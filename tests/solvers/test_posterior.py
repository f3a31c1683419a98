"""Variances of outputs against their definition, with the inverse written out."""

from __future__ import annotations

import numpy as np
import pytest

from chimap.moments import Moments
from chimap.solvers import posterior
from chimap.solvers.exact import DualRidge
from chimap.solvers.posterior import DualPosterior, InverseFactor, Posterior
from chimap.solvers.ridge import Factor

ALPHA = 0.4


@pytest.fixture(autouse=True)
def few_columns(monkeypatch):
    """Several blocks of columns in small matrices."""
    monkeypatch.setattr(posterior, "_COLUMNS", 3)


def rows(n=30, d=7, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)) + 0.5


def by_definition(Z, new, alpha):
    """x'(X'X + alpha diag(1 .. 1, 0))^-1 x, X being the rows and a column of ones, whose weight has no prior."""
    ahead, behind = np.column_stack([Z, np.ones(len(Z))]), np.column_stack([new, np.ones(len(new))])
    precision = ahead.T @ ahead + np.diag([alpha] * Z.shape[1] + [0.0])
    return np.einsum("ij,ij->i", behind, np.linalg.solve(precision, behind.T).T)


@pytest.mark.parametrize("n", [1, 3, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverse_factor(n, dtype):
    A = rows(20, n)
    square = A.T @ A
    inverse = np.linalg.inv(np.linalg.cholesky(square))
    packed = np.concatenate([inverse[i:, i] for i in range(n)]).astype(dtype)
    factor = InverseFactor(packed)
    assert factor.size == n
    np.testing.assert_allclose(factor.transposed, inverse.T, rtol=1e-6, atol=1e-7)
    made = InverseFactor.of_columns(n, lambda start, stop: inverse[start:, start:stop].T, np.dtype(dtype))
    np.testing.assert_array_equal(made.packed, packed)
    X = rows(5, n, 1)
    found = factor.squared_norms(X)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, np.einsum("ij,ij->i", X @ np.linalg.inv(square), X), rtol=1e-5)


@pytest.mark.parametrize("packed", [np.ones(4), np.ones((3, 1)), np.ones(8)])
def test_numbers_that_are_no_triangle(packed):
    with pytest.raises(ValueError, match="do not make a triangle"):
        InverseFactor(packed)


def test_variances_of_features():
    Z, new = rows(), rows(6, seed=1)
    moments = Moments(7, 1).update(Z, Z[:, :1])
    factor = Factor(7)
    factor.of(moments, ALPHA)
    found = Posterior.of(factor, moments.mean, moments.count, ALPHA, np.dtype(np.float64))
    np.testing.assert_allclose(found.variances(new), by_definition(Z, new, ALPHA), rtol=1e-10)


def test_variances_where_the_rows_span_few_coordinates():
    Z, new = rows(5, 40), rows(6, 40, seed=1)
    basis = np.linalg.qr(Z.T)[0]
    inside = Moments(5, 1).update(Z @ basis, Z[:, :1])
    factor = Factor(5)
    factor.of(inside, ALPHA)
    found = Posterior.of(factor, Z.mean(axis=0), 5.0, ALPHA, np.dtype(np.float64), basis)
    np.testing.assert_allclose(found.variances(new), by_definition(Z, new, ALPHA), rtol=1e-10)


def test_variances_of_kernel_values():
    Z, new = rows(), rows(6, seed=1)
    machine = DualRidge(np.ascontiguousarray(Z @ Z.T), np.square(Z).sum(axis=1), Z[:, :1].copy())
    machine.solve(ALPHA)
    found = DualPosterior.of(machine, np.dtype(np.float64))
    K, diagonal = new @ Z.T, np.square(new).sum(axis=1)
    np.testing.assert_allclose(found.variances(K, diagonal), by_definition(Z, new, ALPHA), rtol=1e-8)
