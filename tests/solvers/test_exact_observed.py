"""Targets with missing entries against a machine of each target, on the rows that it is seen in."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from chimap import Exponential, chi2
from chimap.solvers import exact_observed
from chimap.solvers.exact import DualRidge, is_shared
from chimap.solvers.exact_observed import ObservedDualRidge
from chimap.solvers.kernel_matrix import exact_ridge

from ..histograms import histograms

ALPHA = 0.3


def problem(weighted=None):
    """(K, targets, weights): the first two of a pattern, one of all rows, one of two, one of one and one of none.

    weighted: None, "rows" or "entries".
    """
    rng = np.random.default_rng(0)
    K = Exponential(chi2, 3.0)(histograms(40, 9)).astype(np.float64)
    Y = rng.standard_normal((40, 6)) + 2
    Y[::3, :2] = np.nan
    Y[2:, 3] = np.nan
    Y[1:, 4] = np.nan
    Y[:, 5] = np.nan
    shape = {None: None, "rows": 40, "entries": (40, 6)}[weighted]
    return K, Y, None if shape is None else rng.uniform(0.3, 3, shape)


def alone(K, Y, weights, t):
    """(rows, machine) of one target."""
    seen = np.flatnonzero(~np.isnan(Y[:, t]))
    square = np.ascontiguousarray(K[np.ix_(seen, seen)])
    own = None if weights is None else weights[seen] if weights.ndim == 1 else weights[seen, t]
    return seen, DualRidge(square, np.diag(K)[seen].copy(), Y[np.ix_(seen, [t])], own)


def test_one_solution_serves_complete_targets_of_equal_weights():
    _, Y, weights = problem("rows")
    assert is_shared(Y[:, 2:3], weights)
    assert not is_shared(Y, None)
    assert not is_shared(Y[:, 2:3], weights[:, None])


@pytest.mark.parametrize("weighted", [None, "rows", "entries"])
def test_each_target_is_a_machine_of_its_rows(weighted):
    K, Y, weights = problem(weighted)
    machine = exact_ridge(K.copy(), np.diag(K).copy(), Y, weights)
    assert isinstance(machine, ObservedDualRidge)
    of_rows = weights if weighted != "entries" else weights.mean(axis=1)
    assert machine.scale() == pytest.approx(DualRidge(K.copy(), np.diag(K).copy(), Y, of_rows).scale())
    rough = machine.solve(ALPHA)
    found = machine.finished(rough)
    assert found.alpha == ALPHA
    left_out = machine.leave_one_out(found)
    groups = [np.array([0, 1, 2, 5]), np.arange(20, 30), np.array([1, 8])]
    by_group = machine.leave_out(found, groups)
    for t in range(4):
        seen, one = alone(K, Y, weights, t)
        expected = one.solve(ALPHA)
        np.testing.assert_allclose(found.weights[seen, t], expected.weights[:, 0], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(rough.weights[seen, t], expected.weights[:, 0], atol=0.2)
        assert found.intercept[t] == pytest.approx(expected.intercept[0])
        np.testing.assert_allclose(left_out[seen, t], one.leave_one_out(expected)[:, 0], atol=1e-7)
        np.testing.assert_allclose(machine.leave_one_out(found, 30)[:, t], left_out[30:, t], atol=1e-7)
        for group, residuals in zip(groups, by_group, strict=True):
            members = np.isin(group, seen)
            assert np.isnan(residuals[~members, t]).all()
            if 0 < members.sum() < seen.size:
                places = np.searchsorted(seen, group[members])
                own = one.leave_out(expected, [places])[0]
                np.testing.assert_allclose(residuals[members, t], own[:, 0], atol=1e-7)
    unseen = np.isnan(Y)
    assert not found.weights[unseen].any()
    assert np.isnan(left_out[unseen]).all()
    # one entry is its own mean, and none says nothing
    assert found.intercept[4] == pytest.approx(Y[0, 4])
    assert found.intercept[5] == 0
    np.testing.assert_allclose(found.weights[:, 4:], 0, atol=1e-12)


def test_in_float32_solutions_have_its_digits_and_left_out_rows_a_hundredth():
    K, Y, weights = problem("entries")
    machine = exact_ridge(K.astype(np.float32), np.diag(K).astype(np.float32), Y, weights)
    found = machine.finished(machine.solve(ALPHA))
    left_out = machine.leave_out(found, [np.arange(10)])[0]
    for t in range(3):
        seen, one = alone(K, Y, weights, t)
        expected = one.solve(ALPHA)
        np.testing.assert_allclose(found.weights[seen, t], expected.weights[:, 0], atol=2e-3)
        outputs = K @ found.weights[:, t] + found.intercept[t]
        np.testing.assert_allclose(outputs, K[:, seen] @ expected.weights[:, 0] + expected.intercept[0], atol=1e-4)
        first = np.flatnonzero(seen < 10)
        own = one.leave_out(expected, [first])[0][:, 0]
        assert np.linalg.norm(left_out[seen[first], t] - own) < 0.03 * np.linalg.norm(Y[seen[first], t])


def test_a_small_strength_does_not_know_rows_that_are_left_out():
    """Pairs of equal rows with labels that are noise and weights that tell them: their residuals are large beside those
    of rows that no other is like, which a search that ends early leaves as they began."""
    rng = np.random.default_rng(0)
    rows = np.repeat(histograms(100, 12), 2, axis=0)[rng.permutation(200)]
    K = Exponential(chi2, 1.0)(rows).astype(np.float64)
    Y = np.where(rng.random((200, 3)) < 0.15, 1.0, -1.0)
    weights = np.where(Y > 0, 5.0, 0.55)
    Y[rng.random(Y.shape) < 0.2] = np.nan
    machine = exact_ridge(K.astype(np.float32), np.diag(K).astype(np.float32), Y, weights)
    solution = machine.finished(machine.solve(1e-3))
    groups = [np.arange(40), np.arange(40, 80)]
    left_out = machine.leave_out(solution, groups)
    for t in range(3):
        seen, one = alone(K, Y, weights, t)
        expected = one.solve(1e-3)
        said = K @ solution.weights[:, t] + solution.intercept[t]
        wanted = K[:, seen] @ expected.weights[:, 0] + expected.intercept[0]
        assert np.linalg.norm(said - wanted) < 0.02 * np.linalg.norm(wanted)
        for residuals, group in zip(left_out, groups, strict=True):
            places = np.flatnonzero(np.isin(seen, group))
            own = Y[seen[places], t] - one.leave_out(expected, [places])[0][:, 0]
            outputs = (Y[group] - residuals)[np.isin(group, seen), t]
            assert np.linalg.norm(outputs - own) < 0.02 * np.linalg.norm(own)


def test_rows_whose_search_does_not_end_are_not_known(monkeypatch):
    monkeypatch.setattr(exact_observed, "_MOST_STEPS", 1)
    K, Y, _ = problem()
    machine = exact_ridge(K, np.diag(K).copy(), Y)
    (residuals,) = machine.leave_out(machine.solve(1e-3), [np.arange(10)])
    assert np.isnan(residuals[1:, 0]).all()


def test_digits_that_rounding_takes_are_told_of(monkeypatch):
    K, Y, _ = problem()
    machine = exact_ridge(K, np.diag(K).copy(), Y)
    rough = machine.solve(ALPHA)
    monkeypatch.setattr(machine, "_solved", lambda *_: None)
    with pytest.warns(ConvergenceWarning, match=r"two digits at alpha=0\.3\. Give a larger alpha"):
        assert machine.finished(rough) is rough


def test_another_strength_is_solved_again_to_be_finished():
    K, Y, _ = problem()
    machine = exact_ridge(K, np.diag(K).copy(), Y)
    first = machine.solve(ALPHA)
    straight = machine.finished(first)
    machine.solve(2 * ALPHA)
    np.testing.assert_allclose(machine.finished(first).weights, straight.weights, atol=1e-10)


def test_a_target_whose_entries_are_all_left_out_is_its_mean():
    K, Y, _ = problem()
    machine = exact_ridge(K, np.diag(K).copy(), Y)
    found = machine.solve(ALPHA)
    (residuals,) = machine.leave_out(found, [np.arange(2)])
    assert np.isfinite(residuals[:, 3]).all()


def test_residuals_are_of_the_strength_that_was_solved():
    K, Y, _ = problem()
    machine = exact_ridge(K, np.diag(K).copy(), Y)
    first = machine.solve(ALPHA)
    machine.solve(2 * ALPHA)
    with pytest.raises(ValueError, match=r"latest solution is of alpha=0.6, not 0.3: call solve"):
        machine.leave_one_out(first)
    with pytest.raises(ValueError, match="latest solution is of alpha=None"):
        exact_ridge(K, np.diag(K).copy(), Y).leave_one_out(first)


def test_complete_targets_have_one_factor():
    K, Y, _ = problem()
    assert isinstance(exact_ridge(K, np.diag(K).copy(), Y[:, 2:3]), DualRidge)
