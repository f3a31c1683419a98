"""Targets with missing entries against a machine of each target, on the rows that it is seen in."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import Exponential, chi2
from chimap.solvers.exact import DualRidge
from chimap.solvers.observed_exact import ObservedDualRidge, exact_ridge, factors_of, patterns

from ..histograms import histograms

ALPHA = 0.3


def problem(weighted=False):
    """(K, targets, weights): the first two of a pattern, one of all rows, one of two, one of one and one of none."""
    rng = np.random.default_rng(0)
    K = Exponential(chi2, 3.0)(histograms(40, 9)).astype(np.float64)
    Y = rng.standard_normal((40, 6)) + 2
    Y[::3, :2] = np.nan
    Y[2:, 3] = np.nan
    Y[1:, 4] = np.nan
    Y[:, 5] = np.nan
    return K, Y, rng.uniform(0.3, 3, 40) if weighted else None


def alone(K, Y, weights, t):
    """(rows, machine) of one target."""
    seen = np.flatnonzero(~np.isnan(Y[:, t]))
    square = np.ascontiguousarray(K[np.ix_(seen, seen)])
    own = None if weights is None else weights[seen]
    return seen, DualRidge(square, np.diag(K)[seen].copy(), Y[np.ix_(seen, [t])], own)


def test_patterns_and_their_work():
    _, Y, _ = problem()
    seen = {tuple(targets): rows.size for rows, targets in patterns(Y)}
    assert seen == {(0, 1): 26, (2,): 40, (3,): 2, (4,): 1, (5,): 0}
    assert factors_of(Y) == pytest.approx((26**3 + 40**3 + 2**3 + 1) / 40**3)
    assert factors_of(Y[:, 2:3]) == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_each_target_is_a_machine_of_its_rows(weighted):
    K, Y, weights = problem(weighted)
    machine = exact_ridge(K.copy(), np.diag(K).copy(), Y, weights)
    assert isinstance(machine, ObservedDualRidge)
    assert machine.scale() == pytest.approx(DualRidge(K.copy(), np.diag(K).copy(), Y, weights).scale())
    found = machine.solve(ALPHA)
    assert found.alpha == ALPHA
    left_out = machine.leave_one_out(found)
    groups = [np.array([0, 1, 2, 5]), np.arange(20, 30), np.array([1, 8])]
    by_group = machine.leave_out(found, groups)
    for t in range(4):
        seen, one = alone(K, Y, weights, t)
        expected = one.solve(ALPHA)
        np.testing.assert_allclose(found.weights[seen, t], expected.weights[:, 0], rtol=1e-9, atol=1e-12)
        assert found.intercept[t] == pytest.approx(expected.intercept[0])
        np.testing.assert_allclose(left_out[seen, t], one.leave_one_out(expected)[:, 0], rtol=1e-9)
        np.testing.assert_array_equal(machine.leave_one_out(found, 30), left_out[30:])
        for group, residuals in zip(groups, by_group, strict=True):
            members = np.isin(group, seen)
            assert np.isnan(residuals[~members, t]).all()
            if 0 < members.sum() < seen.size:
                places = np.searchsorted(seen, group[members])
                own = one.leave_out(expected, [places])[0]
                np.testing.assert_allclose(residuals[members, t], own[:, 0], rtol=1e-9)
    unseen = np.isnan(Y)
    assert not found.weights[unseen].any()
    assert np.isnan(left_out[unseen]).all()
    # one entry is its own mean, and none says nothing
    assert found.intercept[4] == Y[0, 4]
    assert found.intercept[5] == 0
    assert not found.weights[:, 4:].any()


def test_residuals_are_of_the_strength_that_was_solved():
    K, Y, _ = problem()
    machine = exact_ridge(K, np.diag(K).copy(), Y)
    first = machine.solve(ALPHA)
    machine.solve(2 * ALPHA)
    with pytest.raises(ValueError, match=r"the residuals are of alpha=0.6, not 0.3: solve first"):
        machine.leave_one_out(first)
    without = exact_ridge(K, np.diag(K).copy(), Y, leaves_out=False)
    with pytest.raises(ValueError, match="the residuals are of alpha=None"):
        without.leave_one_out(without.solve(ALPHA))


def test_complete_targets_have_one_factor():
    K, Y, _ = problem()
    assert isinstance(exact_ridge(K, np.diag(K).copy(), Y[:, 2:3]), DualRidge)
