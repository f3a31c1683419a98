"""Exact ridge of several targets some entries of which are missing: a factor for each set of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from chimap.moments import of_rows
from chimap.solvers.exact import STEPS, DualRidge, DualSolution


class ExactRidge(Protocol):
    """What ``selection.leave_one_out`` asks of a machine on a kernel matrix: see ``DualRidge``."""

    square: np.ndarray

    def scale(self) -> float:
        """Mean scatter of a row."""
        ...

    def solve(self, alpha: float) -> DualSolution | None:
        """The solution; None where the matrix is not positive definite to rounding."""
        ...

    def leave_one_out(self, solution: DualSolution, first: int = 0) -> np.ndarray:
        """Residuals (n - first, t) of rows that are left out one by one."""
        ...

    def leave_out(self, solution: DualSolution, groups: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Residuals (n_g, t) of groups that are left out."""
        ...

    def of_leading(self, n_rows: int, first: int) -> np.ndarray | None:
        """Residuals (n - first, t) by the machine of the first ``n_rows`` alone; None where no factor has them."""
        ...


def patterns(Y: np.ndarray, row_weights: np.ndarray | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
    """(rows, targets) of the targets (n, t) whose entries are there in the same rows, with the same weights."""
    seen = ~np.isnan(Y)
    keys = seen if row_weights is None or row_weights.ndim == 1 else np.where(seen, row_weights, 0.0)
    each, place = np.unique(keys, axis=1, return_inverse=True)
    place = np.ravel(place)
    return [(np.flatnonzero(each[:, k]), np.flatnonzero(place == k)) for k in range(each.shape[1])]


def is_shared(Y: np.ndarray, row_weights: np.ndarray | None) -> bool:
    """Whether all targets (n, t) are of the same rows, with the same weights, so that one factor serves them."""
    return not np.isnan(Y).any() and (row_weights is None or row_weights.ndim == 1)


def factors_of(Y: np.ndarray, row_weights: np.ndarray | None = None) -> float:
    """The work of the factors that targets take, in those of a matrix of all rows: sum of (n_o / n)^3 over patterns.

    >>> factors_of(np.array([[1.0, np.nan], [0.0, 1.0]]))
    1.125
    """
    if is_shared(Y, row_weights):
        return 1.0
    return float(sum((rows.size / Y.shape[0]) ** 3 for rows, _ in patterns(Y, row_weights)))


def exact_ridge(
    square: np.ndarray,
    diagonal: np.ndarray,
    Y: np.ndarray,
    row_weights: np.ndarray | None = None,
    leaves_out: bool = True,
    steps: int = STEPS,
) -> ExactRidge:
    """The machine for targets (n, t), NaN where an entry is missing; see ``DualRidge`` for the others.

    row_weights: (n,), or (n, t) of the targets, or None.
    leaves_out: whether rows will be left out one by one; with missing entries their residuals come with each solution.
    """
    if not is_shared(Y, row_weights):
        return ObservedDualRidge(square, diagonal, Y, row_weights, leaves_out, steps)
    return DualRidge(square, diagonal, Y, row_weights, steps)


class ObservedDualRidge:
    """``DualRidge`` of targets with missing entries, NaN in Y, or with weights of their own: each target is of the rows
    that it is seen in, with its weights.

    The kernel matrix is there once; every pattern of missing entries takes a copy of its rows and columns, one after
    the other, with a factor of its own. Weights and residuals of missing entries are 0 and NaN.
    """

    def __init__(
        self,
        square: np.ndarray,
        diagonal: np.ndarray,
        Y: np.ndarray,
        row_weights: np.ndarray | None = None,
        leaves_out: bool = True,
        steps: int = STEPS,
    ):
        self.square, self.diagonal, self.Y, self.row_weights = square, diagonal, Y, row_weights
        self._leaves_out, self._steps = leaves_out, steps
        self._patterns = patterns(Y, row_weights)
        self._residuals: np.ndarray = np.empty((0, 0))  # of the solution that was made last
        self._alpha: float | None = None

    def scale(self) -> float:
        """See ``DualRidge``; of all rows."""
        weights = None if self.row_weights is None else of_rows(self.row_weights)
        return DualRidge(self.square, self.diagonal, self.Y, weights).scale()

    def solve(self, alpha: float) -> DualSolution | None:
        """See ``DualRidge``; with the residuals of rows that are left out, whose factor is at hand."""
        n, t = self.Y.shape
        weights, residuals, intercept = np.zeros((n, t)), np.full((n, t), np.nan), np.zeros(t)
        for rows, targets in self._patterns:
            if rows.size < 2:  # of a sample: their mean is all that they say
                intercept[targets] = self.Y[np.ix_(rows, targets)].sum(axis=0)
                continue
            machine = self._machine(rows, targets)
            solution = machine.solve(alpha)
            if solution is None:
                return None
            weights[np.ix_(rows, targets)], intercept[targets] = solution.weights, solution.intercept
            if self._leaves_out:
                residuals[np.ix_(rows, targets)] = machine.leave_one_out(solution)
        self._residuals, self._alpha = residuals, alpha if self._leaves_out else None
        return DualSolution(weights, intercept, alpha)

    def leave_one_out(self, solution: DualSolution, first: int = 0) -> np.ndarray:
        """See ``DualRidge``."""
        if self._alpha != solution.alpha:
            raise ValueError(f"the residuals are of alpha={self._alpha}, not {solution.alpha}: solve first.")
        return self._residuals[first:]

    def leave_out(self, solution: DualSolution, groups: Sequence[np.ndarray]) -> list[np.ndarray]:
        """See ``DualRidge``; factors are made again."""
        left_out = [np.full((group.size, self.Y.shape[1]), np.nan) for group in groups]
        for rows, targets in self._patterns:
            if rows.size < 2:
                continue
            machine = self._machine(rows, targets)
            own = machine.solve(solution.alpha)
            assert own is not None  # it was solved before
            members = [np.flatnonzero(np.isin(group, rows)) for group in groups]
            seen = [k for k, member in enumerate(members) if member.size]
            places = [np.searchsorted(rows, groups[k][members[k]]) for k in seen]
            for k, residuals in zip(seen, machine.leave_out(own, places), strict=True):
                left_out[k][np.ix_(members[k], targets)] = residuals
        return left_out

    def of_leading(self, n_rows: int, first: int) -> None:
        """None: the factors of the patterns are gone."""
        return None

    def _machine(self, rows: np.ndarray, targets: np.ndarray) -> DualRidge:
        square = self.square[np.ix_(rows, rows)]
        weights = self.row_weights
        if weights is not None:
            weights = weights[rows] if weights.ndim == 1 else weights[rows, targets[0]]
        return DualRidge(square, self.diagonal[rows], self.Y[np.ix_(rows, targets)], weights, self._steps)
