"""Descent by a map that never goes up, mixed from step to step so that it goes down sooner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

MEMORY = 10  # steps that are mixed
_RIDGE = 1e-10  # of the trace, in the systems of the mixing: steps become parallel near the end
_SLACK = 1e-12  # of the values: what rounding may raise them by


class Evaluation(NamedTuple):
    """What is known of a point x (D, t).

    values (p,) and residuals (p,): of its problems, which are its t columns, or all of them together (p = 1). more:
    what the step from here needs.
    """

    values: np.ndarray
    residuals: np.ndarray
    more: Any


@dataclass(frozen=True)
class Descent:
    """Where a descent ended: the point, what is known of it, and how many evaluations it took."""

    x: np.ndarray
    at: Evaluation
    evaluations: int


def descend(
    evaluate: Callable[[np.ndarray], Evaluation],
    step: Callable[[np.ndarray, Evaluation], np.ndarray],
    x: np.ndarray,
    tolerance: float,
    max_evaluations: int,
) -> Descent:
    """Repeat x <- step(x), Anderson-mixed, until no residual is above the tolerance.

    The step must lower the value of every problem that is not at its minimum. From the last points x_i and steps
    T(x_i) a mixture sum c_i T(x_i) is tried, with sum c_i = 1 and |sum c_i (T(x_i) - x_i)| least: a quasi-Newton method
    with the secant conditions of all of them. Where that raises a value the plain step stands in for it, at the cost of
    another evaluation.

    Source: Anderson, Iterative procedures for nonlinear integral equations (1965); Bertrand and Massias, Anderson
    acceleration of coordinate descent (2021), for the safeguard.
    """
    at = evaluate(x)
    evaluations, mixing = 1, _Mixing(at.values.size == 1)
    while at.residuals.max() > tolerance and evaluations < max_evaluations:
        plain = step(x, at)
        x, before = mixing.mixed(x, plain), at
        at = evaluate(x)
        evaluations += 1
        worse = ~(at.values <= before.values + _SLACK * np.abs(before.values))
        if worse.any():
            x = np.where(worse, plain, x)
            mixing.forget(worse)
            at = evaluate(x)
            evaluations += 1
    return Descent(x, at, evaluations)


class _Mixing:
    """The last points and steps of problems that are the columns of a point, or one problem of all columns."""

    def __init__(self, together: bool):
        self._together = together
        self._ends: list[np.ndarray] = []
        self._steps: list[np.ndarray] = []

    def mixed(self, x: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Remember that x goes to end, and mix the ends."""
        self._ends = [*self._ends[1 - MEMORY :], end.copy()]
        self._steps = [*self._steps[1 - MEMORY :], end - x]
        if len(self._ends) == 1:
            return end
        steps = np.stack([self._by_problem(s) for s in self._steps], axis=1)  # (p, memory, numbers)
        products = steps @ steps.transpose(0, 2, 1)
        traces = np.trace(products, axis1=1, axis2=2)
        # a problem that is solved has steps of zero: equal shares then
        products += (_RIDGE * traces + np.finfo(float).tiny)[:, None, None] * np.eye(len(self._ends))
        scale = np.where(traces > 0, traces, np.finfo(float).tiny)[:, None, None]
        shares = np.linalg.solve(products / scale, np.ones((products.shape[0], len(self._ends), 1)))[..., 0]
        shares /= shares.sum(axis=1, keepdims=True)
        return sum(share * end for share, end in zip(shares.T, self._ends, strict=True))

    def forget(self, problems: np.ndarray) -> None:
        """Let these problems (p,) begin anew: as if they had always made their last step."""
        for i in range(len(self._ends)):
            self._ends[i] = np.where(problems, self._ends[-1], self._ends[i])
            self._steps[i] = np.where(problems, self._steps[-1], self._steps[i])

    def _by_problem(self, step: np.ndarray) -> np.ndarray:
        return step.reshape(1, -1) if self._together else step.T
