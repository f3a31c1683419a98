"""Outputs for rows left out, against machines that are fitted without them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from chimap.losses import Logistic, Square
from chimap.moments import Moments
from chimap.solvers.held_out import curvatures, kernel_left_out, left_out, leverages, noise_of

ALPHA = 0.6


def rows(n=25, d=4, t=2):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n, d)) + 1
    return Z, Z[:, :1] + 0.5 * rng.standard_normal((n, t)) - 2, rng.uniform(0.4, 2, n)


def ridge_outputs(Z, Y, weights, kept):
    """Outputs for all rows of weighted ridge with a free intercept, of some of them."""
    A = np.column_stack([Z, np.ones(len(Z))])
    H = (A[kept] * weights[kept, None]).T @ A[kept] + np.diag([ALPHA] * Z.shape[1] + [0.0])
    return A @ np.linalg.solve(H, (A[kept] * weights[kept, None]).T @ Y[kept])


def refitted(Z, Y, weights):
    """Outputs for each row of ridge without it."""
    everything = np.arange(len(Z))
    return np.array([ridge_outputs(Z, Y, weights, np.delete(everything, i))[i] for i in everything])


@pytest.mark.parametrize("is_weighted", [False, True])
def test_ridge_without_a_row(is_weighted):
    Z, Y, weights = rows()
    weights = weights if is_weighted else np.ones(len(Z))
    moments = Moments(4, 2, Z[0], Y[0]).update(Z, Y, weights)
    h = leverages(moments, ALPHA, Z - Z[0])
    outputs = ridge_outputs(Z, Y, weights, np.arange(len(Z)))
    expected = refitted(Z, Y, weights)
    np.testing.assert_allclose(left_out(Square(), Y, outputs, h * weights), expected, rtol=1e-10)
    # what the matrix was divided by divides the leverages
    halved = left_out(Square(), Y, outputs, 2 * h * weights, curvature=2.0)
    np.testing.assert_allclose(halved, expected, rtol=1e-10)


def test_a_row_that_alone_holds_its_output_stays_finite():
    Y, outputs = np.array([[1.0]]), np.array([[1.5]])
    found = left_out(Square(), Y, outputs, np.array([1.0]))
    np.testing.assert_allclose(found, 0.5 * (1 - 1e-6) / 1e-6 + 1.5, rtol=1e-6)


def test_logistic_regression_without_a_row():
    """A Newton step from the minimum of all rows is near the minimum without one of them."""
    rng = np.random.default_rng(1)
    Z = np.column_stack([rng.uniform(-1.5, 1.5, (60, 2)), np.ones(60)])
    y = np.where(Z[:, 0] + 3 * rng.standard_normal(60) > 0, 1.0, -1.0)
    ridge = np.diag([ALPHA, ALPHA, 0.0])

    def fit(kept):
        def objective(w):
            margins = y[kept] * (Z[kept] @ w)
            slopes = -y[kept] / (1 + np.exp(margins))
            return np.logaddexp(0, -margins).sum() + w @ ridge @ w / 2, Z[kept].T @ slopes + ridge @ w

        return minimize(objective, np.zeros(3), jac=True, tol=1e-12).x

    everything = np.arange(60)
    outputs = (Z @ fit(everything))[:, None]
    expected = np.array([Z[i] @ fit(np.delete(everything, i)) for i in everything])[:, None]
    p = 1 / (1 + np.exp(-outputs[:, 0]))
    second = p * (1 - p)
    h = np.einsum("ij,ij->i", Z, np.linalg.solve((Z * second[:, None]).T @ Z + ridge, Z.T).T)
    np.testing.assert_allclose(curvatures(Logistic(), y[:, None], outputs)[:, 0], second, rtol=1e-5)
    found = left_out(Logistic(), y[:, None], outputs, h)
    step, moved = expected - outputs, found - outputs
    np.testing.assert_allclose(moved, step, rtol=0.1, atol=0.02 * np.abs(step).max())
    # l'(f) h / (1 - l''(f) h), with leverages by a matrix that was divided by 0.2
    slope = -y * (1 - 1 / (1 + np.exp(-y * outputs[:, 0])))
    again = left_out(Logistic(), y[:, None], outputs, 0.2 * h, curvature=0.2)
    np.testing.assert_allclose(again[:, 0], outputs[:, 0] + slope * h / (1 - second * h), rtol=1e-6)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_kernel_ridge_without_a_row(is_weighted):
    Z, Y, weights = rows()
    w = weights if is_weighted else np.ones(len(Z))
    centred = Z - w @ Z / w.sum()
    inverse = np.linalg.inv(centred @ centred.T + ALPHA * np.diag(1 / w))
    duals = inverse @ (Y - w @ Y / w.sum())
    found = kernel_left_out(np.diag(inverse), duals, Y, ALPHA, weights if is_weighted else None)
    np.testing.assert_allclose(found, refitted(Z, Y, w), rtol=1e-9)


def test_kernel_ridge_of_a_row_that_alone_holds_its_output_stays_finite():
    found = kernel_left_out(np.array([0.5]), np.array([[2.0]]), np.array([[1.0]]), 2.0)
    np.testing.assert_allclose(found, 1 - 2.0 * 2.0 / 1e-6, rtol=1e-6)


def test_noise_is_the_weighted_mean_of_the_products_of_residuals():
    residuals, without, weights = np.array([[1.0], [2.0]]), np.array([[3.0], [5.0]]), np.array([3.0, 1.0])
    np.testing.assert_allclose(noise_of(residuals, without), [6.5])
    np.testing.assert_allclose(noise_of(residuals, without, weights), [19 / 4])
