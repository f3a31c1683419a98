"""Outputs for rows left out, against machines that are fitted without them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from chimap.losses import Logistic, Square
from chimap.moments import Moments
from chimap.solvers.held_out import ValidationRows, curvatures, left_out, leverages, noise_of
from chimap.solvers.passes import step_outputs
from chimap.solvers.ridge import LinearSolution

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


def test_a_row_that_alone_holds_its_output_stays_finite():
    Y, outputs = np.array([[1.0]]), np.array([[1.5]])
    found = left_out(Square(), Y, outputs, np.array([1.0]))
    np.testing.assert_allclose(found, 0.5 * (1 - 1e-6) / 1e-6 + 1.5, rtol=1e-6)


@pytest.mark.parametrize(("noise", "ridge"), [(0.3, 1.0), (1.0, 0.3), (3.0, 3.0)])
def test_logistic_regression_without_a_row(noise, ridge):
    """Sure machines too, whose curvature is small: leverages divided by it are far above 1."""
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((80, 12))
    y = np.where(Z[:, 0] + Z[:, 1] + noise * rng.standard_normal(80) > 0, 1.0, -1.0)[:, None]

    def fit(kept):
        def objective(w):
            scores = Z[kept] @ w[:-1] + w[-1]
            slopes = Logistic().gradient(y[kept, 0], scores)
            value = Logistic().value(y[kept, 0], scores).sum() + ridge * w[:-1] @ w[:-1] / 2
            return value, np.append(slopes @ Z[kept] + ridge * w[:-1], slopes.sum())

        found = minimize(objective, np.zeros(13), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9})
        return LinearSolution(found.x[:-1, None], found.x[-1:], ridge)

    everything = np.arange(80)
    of_all = fit(everything)
    outputs = Z @ of_all.coef + of_all.intercept
    without = [fit(np.delete(everything, i)) for i in everything]
    expected = np.array([Z[i] @ found.coef + found.intercept for i, found in enumerate(without)])
    p = 1 / (1 + np.exp(-outputs))
    np.testing.assert_allclose(curvatures(Logistic(), y, outputs), p * (1 - p), rtol=1e-5)
    moments = Moments(12, 1, np.zeros(12), np.zeros(1)).update(Z, y)
    rows = ValidationRows(everything, Z, y, np.zeros(80, int))
    found = step_outputs(Logistic(), of_all, ridge, moments, rows).outputs
    np.testing.assert_allclose(np.linalg.norm(found - expected) / np.linalg.norm(expected - outputs), 0, atol=0.2)
    assert abs(Logistic().value(y, found).mean() / Logistic().value(y, expected).mean() - 1) < 0.1


def test_noise_is_the_weighted_mean_of_the_products_of_residuals():
    residuals, without, weights = np.array([[1.0], [2.0]]), np.array([[3.0], [5.0]]), np.array([3.0, 1.0])
    np.testing.assert_allclose(noise_of(without, without / residuals), [6.5])
    np.testing.assert_allclose(noise_of(without, (without / residuals)[:, 0], weights), [19 / 4])
