"""Anderson-mixed descent: repeat a step that never raises the objective, and mix the last steps to converge sooner.

The problem is min_x f(x), given a map x <- T(x) with f(T(x)) <= f(x). Mixing costs O(MEMORY^2) products of the size of
x and a linear system of MEMORY equations per step, and keeps 2 MEMORY arrays of that size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

MEMORY = 10  # number of steps that are mixed
_RIDGE = 1e-10  # share of the trace added to the mixing systems, because steps become parallel near the end
_SLACK = 1e-12  # relative increase of a value that is put down to rounding


class ObjectiveValue(NamedTuple):
    """The objective at a point x (D, t).

    Attributes
    ----------
    values : ndarray of shape (p,)
        Objective of each problem: the t columns of x are separate problems, or all of them are one (p = 1).
    residuals : ndarray of shape (p,)
        Violation of the optimality condition of each problem.
    more : object
        What the step from this point needs.
    """

    values: np.ndarray
    residuals: np.ndarray
    more: Any


@dataclass(frozen=True)
class Descent:
    """The end of a descent.

    Attributes
    ----------
    x : ndarray of shape (D, t)
        The last point.
    at : Evaluation
        The objective at the last point.
    evaluations : int
        Number of evaluations.
    """

    x: np.ndarray
    at: ObjectiveValue
    evaluations: int


def descend(
    evaluate: Callable[[np.ndarray], ObjectiveValue],
    step: Callable[[np.ndarray, ObjectiveValue], np.ndarray],
    x: np.ndarray,
    tolerance: float,
    max_evaluations: int,
) -> Descent:
    """Repeat x <- step(x), Anderson-mixed, until no residual is above the tolerance.

    The step must lower the value of every problem that is not at its minimum. From the last points x_i and steps
    T(x_i), the mixture sum c_i T(x_i) is tried, with sum c_i = 1 and the least |sum c_i (T(x_i) - x_i)|: a quasi-Newton
    method that satisfies the secant conditions of all of them. Where the mixture raises a value, the plain step
    replaces it, at the cost of another evaluation.

    Parameters
    ----------
    evaluate : callable
        Returns the ``ObjectiveValue`` of a point.
    step : callable
        Returns the next point from a point and its evaluation.
    x : ndarray of shape (D, t)
        The first point.
    tolerance : float
        Largest residual at which the descent stops.
    max_evaluations : int
        Number of evaluations after which it stops.

    References
    ----------
    Anderson, Iterative procedures for nonlinear integral equations (1965); Bertrand and Massias, Anderson acceleration
    of coordinate descent (2021), for the safeguard.
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
    """The last points and steps of problems that are the columns of a point, or of one problem of all columns."""

    def __init__(self, together: bool):
        self._together = together
        self._ends: list[np.ndarray] = []
        self._steps: list[np.ndarray] = []

    def mixed(self, x: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Record that the step leads from x to ``end``, and return the mixture of the recorded ends."""
        self._ends = [*self._ends[1 - MEMORY :], end.copy()]
        self._steps = [*self._steps[1 - MEMORY :], end - x]
        if len(self._ends) == 1:
            return end
        by_problem = [step.reshape(1, -1) if self._together else step.T for step in self._steps]
        steps = np.stack(by_problem, axis=1)  # (p, memory, numbers)
        products = steps @ steps.transpose(0, 2, 1)
        traces = np.trace(products, axis1=1, axis2=2)
        # A solved problem has zero steps; the tiny term then makes its shares equal.
        products += (_RIDGE * traces + np.finfo(float).tiny)[:, None, None] * np.eye(len(self._ends))
        scale = np.where(traces > 0, traces, np.finfo(float).tiny)[:, None, None]
        shares = np.linalg.solve(products / scale, np.ones((products.shape[0], len(self._ends), 1)))[..., 0]
        shares /= shares.sum(axis=1, keepdims=True)
        return sum(share * end for share, end in zip(shares.T, self._ends, strict=True))

    def forget(self, problems: np.ndarray) -> None:
        """Restart these problems (p,): replace their recorded steps by the last one."""
        for i in range(len(self._ends)):
            self._ends[i] = np.where(problems, self._ends[-1], self._ends[i])
            self._steps[i] = np.where(problems, self._steps[-1], self._steps[i])
