from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from chimap import Exponential, chi2
from chimap.solvers.exact import DualRidge

from ..histograms import DTYPES, histograms

ALPHAS = (1e-3, 0.3, 100.0)


def problem(n: int, dtype: type, weighted: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray, DualRidge]:
    """(kernel, targets, row weights, machine)."""
    rng = np.random.default_rng(n)
    K = Exponential(chi2, 3.0)(histograms(n, 9)).astype(np.float64)
    Y = rng.standard_normal((n, 3)) + 5
    weights = rng.uniform(0.3, 3, n) if weighted else np.ones(n)
    square = np.full((n, n), np.nan, dtype=dtype)
    square[np.tril_indices(n, -1)] = K[np.tril_indices(n, -1)]
    return K, Y, weights, DualRidge(square, np.diag(K).copy(), Y, weights if weighted else None)


def directly(K: np.ndarray, Y: np.ndarray, weights: np.ndarray, alpha: float, kept: np.ndarray) -> np.ndarray:
    """Outputs for all rows of the machine that learns from some of them, by the equations with the intercept."""
    m = kept.size
    system = np.block(
        [[K[np.ix_(kept, kept)] + alpha * np.diag(1 / weights[kept]), np.ones((m, 1))], [np.ones((1, m)), 0]]
    )
    found = np.linalg.solve(system, np.vstack([Y[kept], np.zeros((1, Y.shape[1]))]))
    return K[:, kept] @ found[:-1] + found[-1]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_solution_and_rows_left_out(alpha, dtype, weighted):
    K, Y, weights, machine = problem(70, dtype, weighted)
    tolerance = 2e-4 if dtype == np.float32 else 1e-8
    solution = machine.solve(alpha)
    fitted = K @ solution.weights + solution.intercept
    np.testing.assert_allclose(fitted, directly(K, Y, weights, alpha, np.arange(70)), atol=tolerance)
    left_out = machine.leave_one_out(solution)
    for i in (0, 33, 69):
        expected = Y[i] - directly(K, Y, weights, alpha, np.delete(np.arange(70), i))[i]
        np.testing.assert_allclose(left_out[i], expected, atol=tolerance)
    np.testing.assert_allclose(machine.leave_one_out(solution, 50), left_out[50:], rtol=1e-5)
    groups = [np.array([4, 60, 61]), np.arange(20, 45)]
    for group, residuals in zip(groups, machine.leave_out(solution, groups), strict=True):
        expected = Y[group] - directly(K, Y, weights, alpha, np.delete(np.arange(70), group))[group]
        np.testing.assert_allclose(residuals, expected, atol=tolerance)


def test_is_kernel_ridge_on_centred_values():
    K, Y, _, machine = problem(60, np.float64)
    H = np.eye(60) - 1 / 60
    expected = KernelRidge(alpha=0.2, kernel="precomputed").fit(H @ K @ H, Y - Y.mean(axis=0))
    solution = machine.solve(0.2)
    np.testing.assert_allclose(
        K @ solution.weights + solution.intercept, H @ K @ H @ expected.dual_coef_ + Y.mean(axis=0), atol=1e-9
    )
    np.testing.assert_allclose(machine.scale(), np.trace(H @ K @ H) / 60)


def test_a_strength_that_float32_does_not_bear():
    *_, machine = problem(70, np.float32)
    machine.square[1, 0] = 1.0  # two rows are equal, nearly
    machine.square[2:, 1] = machine.square[2:, 0]
    assert machine.solve(1e-12) is None
    assert machine.factor_of is None
    solution = machine.solve(1e-2)
    assert np.isfinite(solution.weights).all()
    machine.solve(1.0)
    with pytest.raises(ValueError, match=r"latest solution is of alpha=1.0, not 0.01"):
        machine.leave_one_out(solution)


def test_constant_targets():
    *_, machine = problem(40, np.float64)
    machine.Y[:] = 3.0
    solution = machine.solve(0.1)
    np.testing.assert_allclose(solution.weights, 0, atol=1e-12)
    np.testing.assert_allclose(solution.intercept, 3)


def test_variances_of_groups_that_are_left_out():
    """Those of a Gaussian process with a free intercept on the other rows, in units of the noise over the strength."""
    rng = np.random.default_rng(3)
    Z, w, alpha = rng.standard_normal((30, 4)), rng.uniform(0.5, 2, 30), 0.7
    K = Z @ Z.T + np.eye(30)
    machine = DualRidge(K.copy(), np.diag(K).copy(), rng.standard_normal((30, 1)), w)
    machine.solve(alpha)
    groups = [np.arange(5), np.arange(5, 6), np.arange(6, 30)]
    wide = K + 1e8 + np.diag(alpha / w)  # an intercept of a wide prior
    for group, found in zip(groups, machine.variances(groups), strict=True):
        rest = np.setdiff1d(np.arange(30), group)
        if rest.size < 10:
            continue
        between = wide[np.ix_(group, rest)]
        left = wide[np.ix_(group, group)] - between @ np.linalg.solve(wide[np.ix_(rest, rest)], between.T)
        np.testing.assert_allclose(found, left.diagonal(), rtol=1e-4)
