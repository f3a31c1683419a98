"""Exact ridge of several targets with entries missing, or with weights of their own, from one factor for all of them.

Target j counts row i with the share s_ij of the row's weight w_i, 0 where the entry is missing, 1 at most. Its machine
is that of all rows, with every entry counted in full, whose targets are filled up: put

    filled_ij = s_ij y_ij + (1 - s_ij) f_j(x_i),

the entry where it counts in full, what the machine says where it is missing. With the inverse M of K + alpha diag(1/w)
less what the intercept takes, alpha M filled / w are the residuals filled - f, so that the filled entries solve

    (alpha M + diag(w s / (1 - s))) filled = w s y / (1 - s)      in the rows where s < 1,

given the others. The eigenvalues of that, scaled by w and by 1 - s, lie between alpha over the largest eigenvalue of
the kernel and one, most of them near one, so that conjugate gradients need a few solutions with the factor: five for
three digits, a dozen or two for seven (fingerprints of molecules, a quarter missing). A factor a target, which does
without them, takes a dozen times as long for a dozen targets.

What a machine says of rows that it has not seen is what it fills them up with: to leave out rows is to miss them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap.moments import of_entries, of_rows
from chimap.solvers.exact import STEPS, DualRidge, DualSolution, with_intercept
from chimap.solvers.filling import Filling, by_row

# what is left of the residuals of entries that are filled up with the mean; by the bytes of a kernel value
_FINAL = {4: 1e-5, 8: 1e-12}
_SEARCH = 1e-2  # where settings are compared: a fifth of the steps less than 3e-3, the same scores to 1e-4
_LEFT_OUT = {4: 2e-3, 8: 1e-9}  # of rows that are left out
_FAR = 10  # times that goal: rows whose residuals stay above are not known
_COLUMNS = 64  # that are solved for together
_OF_TARGETS, _OF_COLUMNS = 10, 24  # arrays of all targets, and of the columns that are solved for


class ExactRidge(Protocol):
    """What ``selection.leave_one_out`` asks of a machine on a kernel matrix: see ``DualRidge``."""

    square: np.ndarray
    begins_at: ClassVar[
        int
    ]  # half decades of the scale: the strength that a search goes down from, by decades

    @property
    def operations(self) -> float:
        """Of all solutions so far."""
        ...

    def scale(self) -> float:
        """Mean scatter of a row."""
        ...

    def solve(self, alpha: float) -> DualSolution | None:
        """The solution; None where the matrix is not positive definite to rounding."""
        ...

    def finished(self, solution: DualSolution) -> DualSolution:
        """The same to the digits of the kernel values, where strengths are compared with fewer."""
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


def is_shared(Y: np.ndarray, row_weights: np.ndarray | None) -> bool:
    """Whether all targets (n, t) are of the same rows, with the same weights, so that one solution serves them."""
    return not np.isnan(Y).any() and (row_weights is None or row_weights.ndim == 1)


def filling_bytes(n_rows: int, n_targets: int) -> int:
    """What ``ObservedDualRidge`` takes beside the matrix."""
    return 8 * n_rows * (_OF_TARGETS * n_targets + _OF_COLUMNS * max(n_targets, _COLUMNS))


def exact_ridge(
    square: np.ndarray,
    diagonal: np.ndarray,
    Y: np.ndarray,
    row_weights: np.ndarray | None = None,
    steps: int = STEPS,
) -> ExactRidge:
    """The machine for targets (n, t), NaN where an entry is missing; see ``DualRidge`` for the others.

    row_weights: (n,), or (n, t) of the targets, or None.
    """
    machine = DualRidge if is_shared(Y, row_weights) else ObservedDualRidge
    return machine(square, diagonal, Y, row_weights, steps)


class ObservedDualRidge:
    """``DualRidge`` of targets with missing entries, NaN in Y, or with weights of their own, (n, t).

    Weights and residuals of missing entries are 0 and NaN. A target without entries is 0 everywhere. Solutions have
    the two digits that comparing strengths takes until they are ``finished``.
    """

    begins_at: ClassVar[int] = 0  # of a tenth of that strength conjugate gradients take twice as many steps

    def __init__(
        self,
        square: np.ndarray,
        diagonal: np.ndarray,
        Y: np.ndarray,
        row_weights: np.ndarray | None = None,
        steps: int = STEPS,
    ):
        seen = ~np.isnan(Y)
        each = seen if row_weights is None else np.where(seen, of_entries(row_weights), 0.0)
        of_row = each.max(axis=1)
        of_row[of_row == 0] = 1.0  # a row without any entry
        self.square, self.diagonal, self.Y = square, diagonal, Y
        self.row_weights, self._steps = row_weights, steps
        self._share = each / of_row[:, None]
        self._root = np.sqrt(of_row)[:, None]
        self._entries = np.where(seen, Y, 0.0)
        counts = each.sum(axis=0)
        self._means = (each * self._entries).sum(axis=0) / np.where(counts > 0, counts, 1.0)
        self._dual = DualRidge(square, diagonal, np.empty((Y.shape[0], 0)), of_row, steps)
        self._filled: tuple[float, np.ndarray] | None = None  # of the solution that was made last

    @property
    def operations(self) -> float:
        """See ``ExactRidge``."""
        return self._dual.operations

    def scale(self) -> float:
        """See ``DualRidge``; of all rows, by the mean weights of their targets."""
        weights = None if self.row_weights is None else of_rows(self.row_weights)
        return DualRidge(self.square, self.diagonal, self.Y, weights).scale()

    def solve(self, alpha: float) -> DualSolution | None:
        """See ``DualRidge``."""
        self._filled = None
        if self._dual.solve(alpha) is None:
            return None
        filled = np.where(self._share == 1, self._entries, self._means)
        system = Filling(self._dual, self._root, self._share, self._entries, alpha)
        residuals = system.residuals(filled)
        # in the end each row's residual must be small; scores of strengths want those of all rows together
        goals = _SEARCH * system.sizes(residuals)
        self._by_row = system.looks_at = by_row(self._share < 1, residuals)
        self._first = system.sizes(residuals)
        system.looks_at = None
        return self._solved(system, filled, residuals, goals, 0)

    def finished(self, solution: DualSolution) -> DualSolution:
        """See ``ExactRidge``; the factor of a strength that was not solved for last is made again."""
        alpha = solution.alpha
        if self._filled is None or self._filled[0] != alpha:
            self.solve(alpha)
        if self._filled is None:
            return solution
        system = Filling(self._dual, self._root, self._share, self._entries, alpha)
        system.looks_at = self._by_row
        goals = _FINAL[self.square.dtype.itemsize] * self._first
        filled = self._filled[1]
        finished = self._solved(system, filled, system.residuals(filled), goals, self._steps)
        if finished is None:
            warnings.warn(
                f"rounding leaves the weights of tasks with missing labels two digits at alpha={alpha:g}. Give a "
                "larger alpha, or precision='float64'.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return finished or solution

    def _solved(
        self, system: Filling, filled: np.ndarray, residuals: np.ndarray, goals: np.ndarray, steps: int
    ) -> DualSolution | None:
        """From filled entries on whose residuals are known, to ones below the goals (1, t), with so many refinements at
        most; None where rounding is in the way."""
        self._filled = None
        weights, intercept, going = (
            np.empty(filled.shape),
            np.empty(filled.shape[1]),
            np.arange(filled.shape[1]),
        )
        for _ in range(1 + steps):
            filled, _ = system.solved(filled, residuals, goals)
            solved = self._dual.solve_for(filled[:, going], steps)
            if solved is None:
                return None
            solved = np.column_stack([solved, self._dual.solved_ones])
            weights[:, going], intercept[going] = with_intercept(solved, filled[:, going])
            residuals = system.residuals_of(filled, weights)
            going = np.flatnonzero((system.sizes(residuals) > goals).any(axis=0))
            if not going.size:
                break
        self._filled = system.alpha, filled
        return DualSolution(np.where(self._share > 0, weights, 0.0), intercept, system.alpha)

    def leave_one_out(self, solution: DualSolution, first: int = 0) -> np.ndarray:
        """See ``DualRidge``; as many solutions as rows, where a share of the rows left out together does."""
        groups = [np.array([row]) for row in range(first, self.Y.shape[0])]
        return np.concatenate(self.leave_out(solution, groups))

    def leave_out(self, solution: DualSolution, groups: Sequence[np.ndarray]) -> list[np.ndarray]:
        """See ``DualRidge``; in float32 to two digits or three, and NaN where rounding leaves fewer."""
        if self._filled is None or self._filled[0] != solution.alpha:
            made = None if self._filled is None else self._filled[0]
            raise ValueError(
                f"the solution that was made last is of alpha={made}, not {solution.alpha}: solve first."
            )
        left_out = [np.full((group.size, self.Y.shape[1]), np.nan) for group in groups]
        t = self.Y.shape[1]
        for some in _together(len(groups), t):
            targets = np.tile(np.arange(t), len(some))
            share, filled = self._share[:, targets], self._filled[1][:, targets]
            for place, k in enumerate(some):
                own = slice(place * t, (place + 1) * t)
                # What the machine says of them now would be nearer, but it knows them: a search that ends early
                # must not.
                share[groups[k], own], filled[groups[k], own] = 0.0, self._means
            system = Filling(self._dual, self._root, share, self._entries[:, targets], solution.alpha)
            residuals = system.residuals(filled)
            system.looks_at = by_row((share == 0) & (self._share[:, targets] > 0), residuals)
            goals = _LEFT_OUT[self.square.dtype.itemsize] * system.sizes(residuals)
            filled, sizes = system.solved(filled, residuals, goals)
            filled[:, (sizes > _FAR * goals).any(axis=0)] = np.nan
            for place, k in enumerate(some):
                left_out[k] = self.Y[groups[k]] - filled[groups[k], place * t : (place + 1) * t]
        return left_out

    def of_leading(self, n_rows: int, first: int) -> None:
        """None: fewer rows would take solutions of their own."""
        return None


def _together(n_groups: int, n_targets: int) -> Iterator[range]:
    """Groups that are left out in one solution."""
    step = max(1, _COLUMNS // max(1, n_targets))
    for first in range(0, n_groups, step):
        yield range(first, min(first + step, n_groups))
