"""Mixed steps end at the minimum, never above the step before, and are counted."""

from __future__ import annotations

import numpy as np
import pytest

from chimap.solvers.descent import ObjectiveValue, descend


class Powers:
    """sum |x|^p of each column, which gradient steps lower; mixed steps overshoot where p is small."""

    def __init__(self, power, together):
        self.power, self.together, self.points = power, together, []

    def evaluate(self, x):
        self.points.append(x.copy())
        values, slopes = np.abs(x) ** self.power, self.power * np.sign(x) * np.abs(x) ** (self.power - 1)
        total = values.sum(axis=0)
        residuals = np.abs(slopes).max(axis=0)
        if self.together:
            total, residuals = total.sum(keepdims=True), residuals.max(keepdims=True)
        return ObjectiveValue(total, residuals, slopes)

    def step(self, x, at):
        return x - 0.02 * at.more


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("power", [2.0, 4.0])
def test_minimum_and_evaluations(power, together):
    problem = Powers(power, together)
    start = np.array([[1.0, -0.5], [0.3, 2.0], [-1.5, 0.1]])
    found = descend(problem.evaluate, problem.step, start, 1e-6, 2000)
    assert found.at.residuals.max() <= 1e-6
    assert found.evaluations == len(problem.points) < 500
    np.testing.assert_array_equal(problem.points[-1], found.x)
    np.testing.assert_allclose(found.x, 0, atol=0.02)


def test_a_mixture_that_raises_the_value_is_taken_back():
    """And the plain step that stands in for it costs an evaluation of its own."""
    points = []

    def evaluate(x):
        points.append(float(x[0, 0]))
        value = abs(x[0, 0] - 1) + 10 * (x[0, 0] > 0.99)  # mixed steps go beyond the jump
        return ObjectiveValue(np.array([value]), np.array([float(abs(x[0, 0] - 1))]), None)

    def step(x, at):
        return x + (0.5 if x < 0.6 else 0.1) * (1 - x)

    found = descend(evaluate, step, np.zeros((1, 1)), 0.05, 200)
    assert max(points) > 0.99  # one was tried
    assert found.evaluations == len(points)
    assert 0.95 <= found.x[0, 0] <= 0.99


def test_the_most_evaluations_are_kept_to():
    problem = Powers(2.0, False)
    found = descend(problem.evaluate, problem.step, np.ones((3, 2)), 1e-300, 4)
    assert found.evaluations == len(problem.points) <= 5
