"""Iterated weights on a kernel matrix: against scikit-learn and L-BFGS on features of the kernel, and refits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor

from chimap.kernels import chi2
from chimap.losses import Poisson, Quantile
from chimap.solvers.exact_iterated import DualIterated
from chimap.solvers.lbfgs import lbfgs, over, zero_solution

N = 90
RNG = np.random.default_rng(0)
X = RNG.dirichlet(np.ones(6), N)
K = np.exp(-chi2.distance(X))
VALUES, VECTORS = np.linalg.eigh(K)
Z = VECTORS * np.sqrt(np.maximum(VALUES, 0))  # Z Z' = K
COUNTS = RNG.poisson(np.exp(1 + 3 * X[:, 0] - 2 * X[:, 1])).astype(float)
REAL = X[:, 0] + (0.05 + X[:, 2]) * RNG.normal(size=N)
WEIGHTS = RNG.uniform(0.5, 2, N)
LOSSES = {"poisson": (Poisson(), COUNTS), "quantile": (Quantile(0.8, 0.02), REAL)}
every_loss = pytest.mark.parametrize(("loss", "y"), LOSSES.values(), ids=LOSSES)


def machine(loss, Y, weights=None, rows=slice(None)):
    square = np.array(K[rows][:, rows], order="C")  # it is overwritten
    return DualIterated(square, square.diagonal().copy(), Y, weights, loss=loss)


def outputs(solution, rows=slice(None), cross=K):
    return cross[:, rows] @ solution.weights + solution.intercept


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("alpha", [0.1, 3.0])
def test_counts_are_those_of_scikit_learn(weights, alpha):
    solution = machine(Poisson(), COUNTS[:, None], weights).solve(alpha)
    total = N if weights is None else weights.sum()
    other = PoissonRegressor(alpha=alpha / total, tol=1e-10, solver="newton-cholesky").fit(Z, COUNTS, weights)
    np.testing.assert_allclose(outputs(solution)[:, 0], Z @ other.coef_ + other.intercept_, atol=2e-3)
    np.testing.assert_allclose(solution.weights.sum(), 0, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.02, 0.3])
def test_quantiles_are_those_of_passes(alpha):
    loss = Quantile((0.1, 0.5, 0.9), 0.05)
    Y = np.tile(REAL[:, None], (1, 3))
    solution = machine(loss, Y, WEIGHTS).solve(alpha)
    other = lbfgs(loss, over(lambda: [(Z, Y, WEIGHTS)]), alpha, zero_solution(N, 3), tolerance=1e-7, max_passes=5000)

    def objective(f, norm):
        return float((WEIGHTS[:, None] * loss.value(Y, f)).sum() + alpha / 2 * norm)

    f = outputs(solution)
    mine = objective(f, (solution.weights * (f - solution.intercept)).sum())
    best = objective(Z @ other.coef + other.intercept, np.square(other.coef).sum())
    assert best * (1 - 1e-6) <= mine <= best * (1 + 1e-4)
    np.testing.assert_allclose(f, Z @ other.coef + other.intercept, atol=0.03)


@every_loss
def test_rows_and_groups_are_left_out_by_a_step(loss, y):
    alpha = 0.5 if loss.name == "poisson" else 0.1
    whole = machine(loss, y[:, None])
    solution = whole.solve(alpha)
    left_out = y - whole.leave_one_out(solution)[:, 0]
    groups = [np.arange(first, first + 3) for first in range(0, N, 3)]
    by_groups = np.concatenate([y[g] - r[:, 0] for g, r in zip(groups, whole.leave_out(solution, groups), strict=True)])
    moved = np.abs(left_out - outputs(solution)[:, 0])
    for i in range(0, N, 9):
        rest = np.delete(np.arange(N), i)
        refit = machine(whole.loss, y[rest, None], rows=rest).solve(alpha)
        exact = outputs(refit, rest, K[[i]])[0, 0]
        assert abs(left_out[i] - exact) < max(0.35 * moved[i], 0.02 * np.std(y))
        rest = np.delete(np.arange(N), groups[i // 3])
        refit = machine(whole.loss, y[rest, None], rows=rest).solve(alpha)
        exact = outputs(refit, rest, K[[i]])[0, 0]
        assert abs(by_groups[i] - exact) < max(0.6 * abs(by_groups[i] - outputs(solution)[i, 0]), 0.05 * np.std(y))
    np.testing.assert_allclose(whole.leave_one_out(solution, 80), whole.leave_one_out(solution)[80:])


@every_loss
def test_missing_entries_pull_nowhere(loss, y):
    Y = np.column_stack([y, y])
    Y[::4, 1] = np.nan
    seen = ~np.isnan(Y[:, 1])
    both = machine(loss, Y)
    solution = both.solve(0.3)
    alone = machine(both.loss, Y[seen, 1:], rows=seen).solve(0.3)
    np.testing.assert_allclose(solution.weights[~seen, 1], 0, atol=1e-2 * np.abs(solution.weights[:, 1]).max())
    np.testing.assert_allclose(outputs(solution)[:, 1], outputs(alone, seen)[:, 0], atol=0.03 * np.std(y))
    assert np.isnan(both.leave_one_out(solution)[~seen, 1]).all()


def test_a_matrix_that_is_singular_has_no_solution():
    square = np.ones((N, N), np.float32)
    assert DualIterated(square, -2 * np.ones(N), COUNTS[:, None], loss=Poisson()).solve(1e-9) is None
