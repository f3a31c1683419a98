"""Losses by passes: widths in units of the targets, and each row left out by a step of Newton."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from chimap.losses import EpsilonInsensitive, Logistic
from chimap.moments import Moments
from chimap.solvers.held_out import ValidationRows
from chimap.solvers.passes import loss_of, step_outputs
from chimap.solvers.ridge import LinearSolution


def test_widths_are_in_units_of_the_standard_deviation():
    y = 30 * np.random.default_rng(0).standard_normal((50, 1)) + 7
    moments, usual = Moments(1, 1).update(y, y), EpsilonInsensitive()
    loss = loss_of("epsilon_insensitive", moments)
    assert loss.epsilon == pytest.approx(usual.epsilon * y.std(), rel=1e-9)
    assert loss.sharpness == pytest.approx(usual.sharpness / y.std(), rel=1e-9)
    assert loss_of(loss, moments) is loss


@pytest.mark.parametrize("is_weighted", [False, True])
def test_each_row_left_out_of_logistic_regression(is_weighted):
    """The step goes where the minimum without the row lies, to a fifth of the way from that of all rows."""
    rng = np.random.default_rng(0)
    Z = rng.uniform(-1.5, 1.5, (80, 3))
    y = np.where(Z[:, 0] + 2 * rng.standard_normal(80) > 0, 1.0, -1.0)[:, None]
    w = rng.integers(1, 4, 80).astype(float) if is_weighted else np.ones(80)

    def fit(kept):
        return LogisticRegression(C=1 / 0.5, tol=1e-10, max_iter=2000).fit(Z[kept], y[kept, 0], w[kept])

    everything, shift = np.arange(80), Z[0]
    peer = fit(everything)
    expected = np.array([fit(np.delete(everything, i)).decision_function(Z[[i]])[0] for i in everything])
    coef, intercept = peer.coef_.T, peer.intercept_ + shift @ peer.coef_.T
    moments = Moments(3, 1, shift, np.zeros(1)).update(Z, y, w)
    weights = w if is_weighted else None
    validation = ValidationRows(everything, Z - shift, y, np.ones(80, int), weights)
    held = step_outputs(Logistic(), LinearSolution(coef, intercept, 0.5), 0.5, moments, validation)
    of_all = peer.decision_function(Z)
    step = expected - of_all
    np.testing.assert_array_equal(held.rows, everything)
    found = held.outputs[:, 0] - of_all
    np.testing.assert_allclose(found, step, rtol=0.2, atol=0.2 * np.abs(step).max())
    assert (found @ step) / (step @ step) == pytest.approx(1, abs=0.1)
