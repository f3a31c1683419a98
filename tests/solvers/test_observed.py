"""Passes over rows with missing targets: as many as conjugate gradients with their preconditioner take."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from chimap.engines.rows import RowsInMemory
from chimap.losses import Observed, Square
from chimap.moments import FoldMoments
from chimap.solvers import observed
from chimap.solvers.base import Evidence
from chimap.solvers.observed import ObservedRidgeProblem


def problem(scale):
    """(problem, features, targets with missing entries)."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((300, 25)) * np.geomspace(1, 0.03, 25) + 3
    Y = scale * (Z[:, :2] + 0.3 * rng.standard_normal((300, 2)))
    Y[rng.random(Y.shape) < 0.2] = np.nan
    shift = Z[:8].mean(axis=0)
    moments = FoldMoments(1, 25, 2, shift, np.zeros(2), np.dtype(float))
    moments.add_shifted(0, np.ascontiguousarray(Z - shift), np.nan_to_num(Y))
    moments.release_buffers()
    rows = RowsInMemory(np.array([300]), 25, 2, np.dtype(float))
    rows.put(0, Z - shift, Y)
    return ObservedRidgeProblem(Observed(Square()), Evidence(moments, rows)), Z, Y


@pytest.mark.parametrize("scale", [1e-3, 1.0])
def test_ridge_of_each_target_in_few_passes(scale):
    machine, Z, Y = problem(scale)
    found = machine.solve(0.1)
    for t in range(2):
        seen = ~np.isnan(Y[:, t])
        peer = Ridge(alpha=0.1, solver="svd").fit(Z[seen], Y[seen, t])
        np.testing.assert_allclose(found.coef[:, t], peer.coef_, rtol=1e-6, atol=1e-9 * scale)
        assert found.intercept[t] == pytest.approx(peer.intercept_, rel=1e-6)
    assert machine.passes <= 20


def test_each_strength_has_the_factor_that_preconditions_it():
    machine, _, _ = problem(1.0)
    alone, _, _ = problem(1.0)
    machine.solve(1e4)
    before = machine.passes
    found, expected = machine.solve(1e-2), alone.solve(1e-2)
    np.testing.assert_array_equal(found.coef, expected.coef)
    assert machine.passes - before == alone.passes - 1  # the gradient at zero is no strength's own


@pytest.mark.parametrize("scale", [1e-3, 1.0])
def test_too_few_passes_are_warned_of(scale, monkeypatch):
    monkeypatch.setattr(observed, "_MOST_STEPS", 2)
    machine, _, _ = problem(scale)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 2 passes at 0\.00[1-9] of the residual of zero"):
        machine.solve(0.1)
