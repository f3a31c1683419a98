from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from chimap import Exponential, chi2
from chimap.solvers import exact_margins
from chimap.solvers.exact_margins import DualMargins
from chimap.solvers.kernel_matrix import exact_machine, has_exact_machine

from ..histograms import DTYPES, histograms

N = 120
ALPHAS = (1e-2, 1.0, 30.0)


def problem(dtype=np.float64, weighted=False):
    """(kernel, targets, row weights, machine)."""
    rng = np.random.default_rng(3)
    X = histograms(N, 9)
    K = Exponential(chi2, 3.0)(X).astype(np.float64)
    noisy = X[:, :3] + 0.02 * rng.standard_normal((N, 3))
    Y = np.where(noisy > np.median(noisy, axis=0), 1.0, -1.0)
    weights = rng.uniform(0.3, 3, N) if weighted else np.ones(N)
    return K, Y, weights, machine_of(K, Y, weights if weighted else None, dtype)


def machine_of(K, Y, weights=None, dtype=np.float64, **more):
    square = np.full(K.shape, np.nan, dtype=dtype)
    square[np.tril_indices(len(K), -1)] = K[np.tril_indices(len(K), -1)]
    return DualMargins(square, np.diag(K).copy(), Y, weights, **more)


def gradient(K, Y, weights, solution):
    """Of the objective in the weights, over K, and in the intercepts; entries that are missing count for nothing."""
    outputs = K @ solution.weights + solution.intercept
    short = np.where(np.isnan(Y), 0, Y * np.maximum(1 - Y * outputs, 0))
    pulls = 2 * (weights[:, None] if weights.ndim == 1 else weights) * short
    return solution.alpha * solution.weights - pulls, pulls.sum(axis=0)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_solution_is_the_minimum(alpha, dtype, weighted):
    K, Y, weights, machine = problem(dtype, weighted)
    solution = machine.solve(alpha)
    of_weights, of_intercept = gradient(K, Y, weights, solution)
    size = np.abs(alpha * solution.weights).max()
    tolerance = (1e-3 if dtype == np.float32 else 1e-9) * size
    np.testing.assert_allclose(of_weights, 0, atol=tolerance)
    np.testing.assert_allclose(of_intercept, 0, atol=N * tolerance)
    assert 0 < machine.operations < np.inf


def test_strength_is_that_of_liblinear():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((80, 5))
    y = np.where(Z[:, 0] + rng.standard_normal(80) > 0, 1.0, -1.0)
    solution = machine_of(Z @ Z.T, y[:, None]).solve(0.5)
    # an intercept of a constant as large as this is not penalised, nearly
    svm = LinearSVC(C=1 / 0.5, tol=1e-10, intercept_scaling=1e3, max_iter=10**6).fit(Z, y)
    np.testing.assert_allclose(solution.weights[:, 0] @ Z, svm.coef_[0], atol=2e-4)


def test_a_strength_after_another_is_what_it_is_alone():
    K, Y, _, machine = problem()
    machine.solve(1e-2)
    after, alone = machine.solve(10.0), machine_of(K, Y).solve(10.0)
    np.testing.assert_allclose(after.weights, alone.weights, atol=1e-10)


def test_a_row_left_out_that_moves_no_other_across_the_margin():
    K, Y, _, machine = problem()
    solution = machine.solve(1.0)
    left_out, within = machine.leave_one_out(solution), machine._within
    outputs = K @ solution.weights + solution.intercept
    np.testing.assert_allclose(left_out[~within], (Y - outputs)[~within])
    seen = 0
    for i in range(0, N, 3):
        others = np.delete(np.arange(N), i)
        smaller = machine_of(K[np.ix_(others, others)], Y[others])
        less = smaller.solve(1.0)
        same = (smaller._within == within[others]).all(axis=0)
        expected = Y[i] - K[i, others] @ less.weights - less.intercept
        np.testing.assert_allclose(left_out[i][same], expected[same], atol=1e-9)
        seen += int((same & within[i]).sum())
    assert seen > 10
    np.testing.assert_array_equal(machine.leave_one_out(solution, 50), left_out[50:])
    groups = [np.array([i]) for i in range(N)]
    np.testing.assert_allclose(np.concatenate(machine.leave_out(solution, groups)), left_out, atol=1e-9)


def test_a_group_left_out_that_moves_no_other_across_the_margin():
    K, Y, weights, machine = problem(weighted=True)
    alpha, seen = 1e-2, 0
    solution = machine.solve(alpha)
    groups = [np.arange(i, i + 2) for i in range(0, N, 2)]
    for group, residuals in zip(groups, machine.leave_out(solution, groups), strict=True):
        others = np.setdiff1d(np.arange(N), group)
        smaller = machine_of(K[np.ix_(others, others)], Y[others], weights[others])
        less = smaller.solve(alpha)
        same = (smaller._within == machine._within[others]).all(axis=0)
        expected = Y[group] - K[np.ix_(group, others)] @ less.weights - less.intercept
        np.testing.assert_allclose(residuals[:, same], expected[:, same], atol=1e-8)
        seen += int(same.sum())
    assert seen > 10


def test_missing_entries_and_weights_of_targets():
    K, Y, _, _ = problem()
    weights = np.random.default_rng(1).uniform(0.5, 2, Y.shape)
    Y[::4, 1] = np.nan
    machine = machine_of(K, Y, weights)
    solution = machine.solve(0.3)
    np.testing.assert_allclose(gradient(K, Y, weights, solution)[0], 0, atol=1e-10)
    seen = ~np.isnan(Y[:, 1])
    alone = machine_of(K[np.ix_(seen, seen)], Y[seen, 1:2], weights[seen, 1]).solve(0.3)
    np.testing.assert_allclose(solution.weights[seen, 1], alone.weights[:, 0], atol=1e-10)
    assert np.isnan(machine.leave_one_out(solution)[::4, 1]).all()


def test_targets_of_one_side_and_of_none():
    K, Y, _, _ = problem()
    Y[:, 0], Y[:, 1] = 1.0, np.nan
    machine = machine_of(K, Y)
    solution = machine.solve(1.0)
    assert not solution.weights[:, :2].any()
    np.testing.assert_array_equal(solution.intercept[:2], [1, 0])
    np.testing.assert_array_equal(machine.leave_one_out(solution)[:, 0], 0)
    np.testing.assert_array_equal(machine.leave_out(solution, [np.arange(3)])[0][:, 0], 0)


def test_steps_that_lose_are_halved():
    """From a bad start the first steps go too far."""
    K, Y, weights, machine = problem()
    machine._within = np.zeros(Y.shape, dtype=bool)
    machine._within[:4] = True
    solution = machine.solve(1e-3)
    size = np.abs(solution.alpha * solution.weights).max()
    np.testing.assert_allclose(gradient(K, Y, weights, solution)[0], 0, atol=1e-6 * size)


def test_what_would_take_long_and_what_is_singular_has_no_solution():
    K, Y, *_ = problem()
    assert machine_of(K, Y, most_operations=10.0).solve(1.0) is None
    singular = machine_of(-K, Y)
    assert singular.solve(1e-3) is None
    machine = machine_of(K, Y)
    solution = machine.solve(1.0)
    machine.solve(2.0)
    with pytest.raises(ValueError, match=r"is of alpha=2.0, not 1.0"):
        machine.leave_one_out(solution)


def test_memory_holds_systems_of_half_of_the_rows_on_every_thread(monkeypatch):
    monkeypatch.setattr("chimap._threads.count", lambda: 16)
    assert exact_margins.margin_bytes(1000) == 4 * exact_margins._SYSTEM_BYTES * 1000**2
    monkeypatch.setattr("chimap._threads.count", lambda: 2)
    assert exact_margins.margin_bytes(1000) == exact_margins._SYSTEM_BYTES * 1000**2


def test_catalogue():
    assert exact_machine("squared_hinge").make is DualMargins
    assert has_exact_machine("square")
    assert not has_exact_machine("hinge")
    K, Y, *_ = problem()
    quick = exact_machine("squared_hinge").tried(K.copy(), np.diag(K).copy(), Y)
    np.testing.assert_allclose(quick.solve(1.0).weights, machine_of(K, Y).solve(1.0).weights, atol=1e-8)
