"""Steps of the search by a part held out, on losses that are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from chimap.selection.base import OpenSettings
from chimap.selection.holdout import HoldOut

FIRST = 1e-3


class Drawn:
    """A problem whose loss on the held-out rows is a given curve of log10(alpha)."""

    moments = None
    loss = None

    def __init__(self, curve):
        self.curve = curve
        self.tried: list[float] = []

    def usual_alpha(self):
        return FIRST

    def trial(self, alpha):
        self.tried.append(alpha)
        return self.curve(np.log10(alpha))


def halves_from_first(problem):
    return [round(2 * float(np.log10(alpha / FIRST))) for alpha in problem.tried]


@pytest.mark.parametrize(
    ("least", "steps"), [(-3, [-1, 0, 1]), (-4, [-1, 0, -2, -3]), (-2, [-1, 0, 1, 2, 3]), (-3.4, [-1, 0, -2])]
)
def test_it_goes_past_the_least_loss(least, steps):
    problem = Drawn(lambda decade: 1 + (decade - least) ** 2)
    compared = HoldOut().choose(problem, OpenSettings(None))
    choice = compared.result
    assert compared.solution is None
    assert halves_from_first(problem) == steps
    half = round(2 * (least + 3)) / 2
    assert choice.best["alpha"] == pytest.approx(FIRST * 10**half)
    assert choice.measure == "loss"


def test_no_strength_is_tried_twice():
    problem = Drawn(lambda decade: 2 + np.tanh(decade))
    HoldOut().choose(problem, OpenSettings(None))
    steps = halves_from_first(problem)
    assert len(set(steps)) == len(steps)


def test_a_step_that_gains_little_is_the_last():
    problem = Drawn(lambda decade: 1 + 1e-3 * decade)  # a step gains half a thousandth
    HoldOut().choose(problem, OpenSettings(None))
    assert halves_from_first(problem) == [-1, 0]


def test_what_is_given_is_tried_and_of_equals_the_largest_is_chosen():
    problem = Drawn(lambda decade: 0.5)
    choice = HoldOut().choose(problem, OpenSettings((1.0, 100.0, 10.0))).result
    assert problem.tried == [100.0, 10.0, 1.0]
    assert choice.best["alpha"] == 100.0
