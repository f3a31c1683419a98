"""Support vector machines on a kernel matrix in memory, by Newton steps that are ridge on the rows within the margin.

The problem of each target, with labels y_i of -1 and 1, is

    min_{a, b}  sum_i w_i max(0, 1 - y_i f(x_i))^2 + alpha/2 |f|^2,   f = sum_j K(., x_j) a_j + b.

With s rows within the margin, a step costs s^3/3 operations for a factor and n s for the outputs; leaving rows out
costs about s^3 more. Memory holds the kernel matrix (n, n) and systems of s rows in float64: one, or one per thread if
s is at most n/2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpotri

from chimap import _threads
from chimap.moments import of_entries
from chimap.solvers.exact import (
    STEPS,
    DualPoint,
    DualRidge,
    DualSolution,
    ExactSolver,
    check_latest,
    is_shared,
    with_intercept,
)

Result = TypeVar("Result")

_MARGIN_AT_START = 0.9  # y f(x) from which on rows count as beyond the margin at the start
_MOST_STEPS = 50
_MOST_HALVINGS = 20
_LEAST_GAIN = 1e-7  # least relative gain of a step: less is the rounding of kernel values in float32
_OPERATIONS_OF_A_COPY = 20  # operations that take as long as copying a kernel value
_GATHERED_SHARE, _SHARE_FOR_THREADS = 1 / 4, 1 / 2
# Bytes per entry of a system: the kernel value as gathered, the same in float64, and a share of the gathered rows.
_SYSTEM_BYTES = 16


def margin_bytes(n_rows: int) -> int:
    """Return the bytes that ``DualMargins`` takes besides the matrix.

    They hold a system of all rows, or of half of them per thread.
    """
    return int(_SYSTEM_BYTES * n_rows**2 * max(1.0, _SHARE_FOR_THREADS**2 * _threads.count()))


@dataclass(frozen=True)
class _Target(DualPoint):
    """The model of a target, and which rows were within the margin (n,)."""

    within: np.ndarray


class DualMargins(ExactSolver):
    """Minimise sum_i w_i max(0, 1 - y_i f(x_i))^2 + alpha/2 |f|^2 with f = sum_j K(., x_j) a_j + b, b not penalised.

    Rows beyond the margin, y f(x) >= 1, add nothing, and the rows within it, S, are a ridge problem:

        (K_SS + alpha/2 diag(1/w_S)) a_S + 1 b = y_S,  1'a_S = 0.

    A Newton step solves that problem for the rows that the last step left within the margin; a step that does not lower
    the objective is halved. The first step takes the rows that were within the margin at the last strength or, at the
    first strength, the rows that ridge on all other rows leaves within or near the margin; its one factor serves all
    targets.

    Leaving out a row that is not in S changes nothing. For the others, the solution is that of the rest of S, as if no
    row entered or left S in consequence.

    Parameters
    ----------
    square, diagonal : ndarray
        As in ``DualRidge``.
    Y : ndarray of shape (n, t), float64
        Targets -1 and 1, and NaN where an entry is missing.
    row_weights : ndarray of shape (n,) or (n, t), default=None
        Positive weights. None is 1 for all.
    steps : int, default=3
        Refinement steps of the first ridge solution, as in ``DualRidge``.
    most_operations : float, default=inf
        Limit of the operations of a step over all targets. Beyond it, ``solve`` returns None.

    References
    ----------
    Chapelle, Training a support vector machine in the primal (2007); Chapelle, Vapnik, Bousquet and Mukherjee, Choosing
    multiple parameters for support vector machines (2002), for the rows left out.
    """

    def __init__(
        self,
        square: np.ndarray,
        diagonal: np.ndarray,
        Y: np.ndarray,
        row_weights: np.ndarray | None = None,
        steps: int = STEPS,
        most_operations: float = np.inf,
    ):
        self.square, self.Y, self._most = square, Y, most_operations
        weights = np.ones(Y.shape[0]) if row_weights is None else row_weights
        self._weights = np.broadcast_to(of_entries(weights), Y.shape)
        self._ridge = DualRidge(square, diagonal, Y, self._weights.mean(axis=1), steps)
        self._starts_by_ridge = is_shared(Y, row_weights)
        self._within: np.ndarray | None = None
        self._last: tuple[float | None, list[_Target]] = None, []

    @property
    def operations(self) -> float:
        return self._ridge.operations + self._operations

    def scale(self) -> float:
        return self._ridge.scale()

    def solve(self, alpha: float) -> DualSolution | None:
        if self._within is None:
            self._within = self._first(alpha / 2)
        within = self._within
        if _step_operations(within.sum(axis=0), self.Y.shape[0]).sum() > self._most:
            self._within = None
            return None
        self._ridge.fill(0.0)
        try:
            targets = self._each(lambda t: self._target(t, alpha / 2, within[:, t]))
        except LinAlgError:  # the matrix is singular to rounding
            return None
        self._within = np.column_stack([target.within for target in targets])
        self._last = alpha, targets
        return DualSolution(
            np.column_stack([target.weights for target in targets]),
            np.array([target.intercept for target in targets]),
            alpha,
        )

    def leave_one_out(self, solution: DualSolution, first: int = 0) -> np.ndarray:

        def residuals(t: int, target: _Target) -> np.ndarray:
            out = self.Y[:, t] - target.outputs
            rows = np.flatnonzero(target.within)
            if rows.size > 1:
                inverse, ones = self._inverse(t, rows, solution.alpha / 2)
                out[rows] = target.weights[rows] / (np.diag(inverse) - ones**2 / ones.sum())
            return out[first:]

        return np.column_stack(self._of_targets(solution, residuals))

    def leave_out(self, solution: DualSolution, groups: Sequence[np.ndarray]) -> list[np.ndarray]:

        def residuals(t: int, target: _Target) -> list[np.ndarray]:
            rows = np.flatnonzero(target.within)
            if not rows.size:
                return [self.Y[group, t] - target.outputs[group] for group in groups]
            place = np.full(self.Y.shape[0], -1)
            place[rows] = np.arange(rows.size)
            inverse, ones = self._inverse(t, rows, solution.alpha / 2)
            out = []
            for group in groups:
                inside, outputs = place[group][place[group] >= 0], target.outputs[group]
                if 0 < inside.size < rows.size:
                    columns = inverse[:, inside] - np.outer(ones, ones[inside] / ones.sum())
                    change = np.linalg.solve(columns[inside], target.weights[rows[inside]])
                    weights = target.weights[rows] - columns @ change
                    intercept = target.intercept - ones[inside] @ change / ones.sum()
                    outputs = self.square[np.ix_(group, rows)] @ weights + intercept
                out.append(self.Y[group, t] - outputs)
            return out

        of_targets = self._of_targets(solution, residuals)
        return [np.column_stack(residuals_of_group) for residuals_of_group in zip(*of_targets, strict=True)]

    def _of_targets(self, solution: DualSolution, call: Callable[[int, _Target], Result]) -> list[Result]:
        solved, targets = self._last
        check_latest(solved, solution)
        return self._each(lambda t: call(t, targets[t]))

    def _each(self, call: Callable[[int], Result]) -> list[Result]:
        """Call for every target on all threads, or on one if the systems are large, as each then takes much memory."""
        assert self._within is not None
        with nullcontext() if self._within.mean(axis=0).max() <= _SHARE_FOR_THREADS else _threads.one_thread():
            return _threads.tasks(range(self.Y.shape[1]), call)

    def _first(self, penalty: float) -> np.ndarray:
        """Return the rows that ridge on the other rows does not keep clearly beyond the margin.

        If the targets cannot share a factor, return all rows with a target. The fit of ridge itself would not do: half
        of the rows are within its margin, most of them only just.
        """
        solution = self._ridge.solve(penalty) if self._starts_by_ridge else None
        if solution is None:
            return ~np.isnan(self.Y)
        return np.asarray(self.Y * (self.Y - self._ridge.leave_one_out(solution)) < _MARGIN_AT_START)

    def _target(self, t: int, penalty: float, within: np.ndarray) -> _Target:
        y, seen = self.Y[:, t], ~np.isnan(self.Y[:, t])
        n = y.size
        if not seen.any() or np.ptp(y[seen]) == 0:  # with one class alone, its sign minimises the loss
            sign = float(y[seen][0]) if seen.any() else 0.0
            return _Target(np.zeros(n), sign, np.full(n, sign), np.zeros(n, dtype=bool))
        if not (within & seen).any():
            within = seen
        best = self._step(t, penalty, within)
        cost = self._cost(t, penalty, best)
        for _ in range(_MOST_STEPS):
            beyond = y * best.outputs < 1
            if (beyond == best.within).all():
                break
            new = self._step(t, penalty, beyond)
            worth = self._cost(t, penalty, new)
            for _ in range(_MOST_HALVINGS):
                if worth <= cost:
                    break
                new = best.towards(new, 0.5)
                worth = self._cost(t, penalty, new)
            if worth >= cost * (1 - _LEAST_GAIN):
                return new if worth <= cost else best
            best, cost = new, worth
        return best

    def _step(self, t: int, penalty: float, within: np.ndarray) -> _Target:
        """Return the ridge solution on the rows within the margin."""
        rows, y = np.flatnonzero(within), self.Y[:, t]
        system, noise = self._system(t, rows, penalty)
        factor = cho_factor(system, lower=False, overwrite_a=True, check_finite=False)
        right = np.column_stack([y[rows], np.ones(rows.size)])
        solved, intercept = with_intercept(cho_solve(factor, right, check_finite=False), right[:, :1])
        weights = np.zeros(y.size)
        weights[rows] = solved[:, 0]
        is_few = rows.size < _GATHERED_SHARE * y.size  # copying these rows of the matrix is faster than reading all
        chosen = rows if is_few else slice(None)
        outputs = weights[chosen].astype(self.square.dtype) @ self.square[chosen] + intercept[0]
        outputs[rows] = y[rows] - penalty * noise * weights[rows]
        self._operations += float(_step_operations(np.array(rows.size), y.size))
        return _Target(weights, float(intercept[0]), outputs, within)

    def _system(self, t: int, rows: np.ndarray, penalty: float) -> tuple[np.ndarray, np.ndarray]:
        """Return (K_SS + penalty diag(1/w), 1/w)."""
        system = self.square[np.ix_(rows, rows)].astype(np.float64, order="F")
        noise = 1 / self._weights[rows, t]
        system[np.diag_indices(rows.size)] += penalty * noise
        return system, noise

    def _inverse(self, t: int, rows: np.ndarray, penalty: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the inverse of the system of the rows within the margin, and its solution for ones."""
        system, _ = self._system(t, rows, penalty)
        factor = cho_factor(system, overwrite_a=True, check_finite=False)
        ones = cho_solve(factor, np.ones(rows.size), check_finite=False)
        inverse, _ = dpotri(factor[0], overwrite_c=True)
        for i in range(rows.size):
            inverse[i + 1 :, i] = inverse[i, i + 1 :]
        return inverse, ones

    def _cost(self, t: int, penalty: float, target: _Target) -> float:
        """Return the objective of a target."""
        short = np.maximum(1 - self.Y[:, t] * target.outputs, 0)
        return float(np.nansum(self._weights[:, t] * short**2) + penalty * target.norm)


def _step_operations(n_within: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the cost of a step with so many rows within the margin, in operations of a large factor.

    Small factors in float64 take three times as long an operation, and gathering rows is slower than multiplying them.
    """
    n = n_within.astype(np.float64)
    return n**3 + _OPERATIONS_OF_A_COPY * n_rows * n
