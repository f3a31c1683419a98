"""Exact ridge of several targets with missing entries or separate weights, from one factor for all targets.

The problem of target j on a kernel matrix, with weights w_i of the rows, is

    min_{a, b}  sum_i s_ij w_i (y_ij - f_j(x_i))^2 + alpha |f_j|^2,   f_j = sum_i K(., x_i) a_i + b,

where target j counts row i with the share s_ij of the row's weight: 0 where the entry is missing, 1 at most. Its
solution is that of ridge on all rows, with every entry counted in full, if the targets are filled up. Put

    filled_ij = s_ij y_ij + (1 - s_ij) f_j(x_i),

the entry itself where it counts in full, the output of the model where it is missing. With the inverse M of
K + alpha diag(1/w) less the part of the intercept, alpha M filled / w are the residuals filled - f, so that the filled
entries solve

    (alpha M + diag(w s / (1 - s))) filled = w s y / (1 - s)      in the rows where s < 1,

given the entries in the other rows. The eigenvalues of that matrix, scaled by w and by 1 - s, lie between one and alpha
over the largest eigenvalue of the kernel, most of them near one. So conjugate gradients need few solves with the
factor: five for three digits, one or two dozen for seven (fingerprints of molecules, a quarter missing). The cost is
n^3/3 operations for the factor and O(n^2 t) for each step; memory is the kernel matrix and some dozen arrays (n, t).
One factor for each target, which needs no such steps, takes a dozen times as long for a dozen targets.

The output of the model for an unseen row is the value that fills its entry: leaving rows out is treating them as
missing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap._cholesky import solve
from chimap._messages import Message
from chimap.moments import of_entries, of_rows
from chimap.solvers.exact import STEPS, DualRidge, DualSolution, ExactSolver, check_latest, with_intercept

_MOST_STEPS = 300


class Filling:
    """The equations of the filled entries (n, t), by conjugate gradients of all targets together.

    The unknowns are sqrt(w) filled, in the rows whose share is less than one; 1 - share is the preconditioner.
    ``looks_at`` (n, t) may add a second criterion besides the residuals of all entries: weights of the entries whose
    residuals must also become small.
    """

    looks_at: np.ndarray | None = None

    def __init__(self, dual: DualRidge, root: np.ndarray, share: np.ndarray, entries: np.ndarray, alpha: float):
        self._dual, self._root, self.alpha, self._entries = dual, root, alpha, entries
        self._free = 1.0 - share
        self._pull = np.divide(share, self._free, out=np.zeros_like(share), where=self._free > 0)

    def residuals(self, filled: np.ndarray) -> np.ndarray:
        """Return the residuals of the equations, by the factor alone."""
        return self._pulled(filled) - self._product(self._root * filled)

    def residuals_of(self, filled: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the same residuals, given the dual weights of the filled entries."""
        return self._pulled(filled) - self.alpha * weights / self._root

    def sizes(self, residuals: np.ndarray) -> np.ndarray:
        """Return the norms of the residuals (1, t), or (2, t) with those weighted by ``looks_at``."""
        return self._sizes(residuals, np.arange(residuals.shape[1]))

    def solved(self, filled: np.ndarray, residuals: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Improve filled entries whose residuals are known until their norms are below the goals.

        Returns the filled entries and the norms of their residuals.
        """
        U, R = self._root * filled, residuals.copy()
        direction = self._free * R
        size = (R * direction).sum(axis=0)
        sizes = self.sizes(R)
        going = np.flatnonzero((sizes > goals).any(axis=0))
        for _ in range(_MOST_STEPS):
            P = direction[:, going]
            product = self._product(P) + self._pull[:, going] * P
            curvature = (P * product).sum(axis=0)
            falls = curvature > 0  # otherwise only rounding is left
            going, P, product = going[falls], P[:, falls], product[:, falls]
            if not going.size:
                break
            step = size[going] / curvature[falls]
            U[:, going] += step * P
            R[:, going] -= step * product
            ahead = self._free[:, going] * R[:, going]
            before, size[going] = size[going], (R[:, going] * ahead).sum(axis=0)
            direction[:, going] = ahead + size[going] / before * P
            sizes[:, going] = self._sizes(R[:, going], going)
            going = going[(sizes[:, going] > goals[:, going]).any(axis=0)]
        return U / self._root, sizes

    def _sizes(self, residuals: np.ndarray, columns: np.ndarray) -> np.ndarray:
        squares = self._free[:, columns] * np.square(residuals)
        sums = [squares.sum(axis=0)]
        if self.looks_at is not None:
            sums.append((squares * self.looks_at[:, columns]).sum(axis=0))
        return np.sqrt(np.array(sums))

    def _pulled(self, filled: np.ndarray) -> np.ndarray:
        return np.asarray(self._pull * self._root * (self._entries - filled))

    def _product(self, U: np.ndarray) -> np.ndarray:
        """Return alpha sqrt(1/w) M sqrt(1/w) U."""
        solved, ones = solve(self._dual.square, U / self._root), self._dual.solved_ones
        solved = solved - np.outer(ones, solved.sum(axis=0, dtype=np.float64) / ones.sum())
        return np.asarray(self.alpha * solved / self._root)


def by_row(entries: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """Return weights of entries (n, t) under which the residuals of each row count equally.

    At a small strength, the residual of a row that no other row resembles is a small part of the total, however wrong
    the filled entry is.
    """
    squares = (entries * np.square(residuals)).sum(axis=1)
    counts = entries.sum(axis=1)
    return np.asarray(entries * np.divide(counts, squares, out=np.zeros_like(squares), where=squares > 0)[:, None])


# Tolerances: residuals relative to those of entries filled with the mean, by the bytes of a kernel value.
_FINAL_RESIDUAL = {4: 1e-5, 8: 1e-12}
_SEARCH_RESIDUAL = 1e-2  # when settings are compared: a fifth fewer steps than 3e-3, the same scores to 1e-4
_LEFT_OUT_RESIDUAL = {4: 2e-3, 8: 1e-9}  # for rows that are left out
_UNKNOWN_FROM = 10  # multiple of that tolerance above which the outputs of left-out rows are reported as unknown
_COLUMNS_AT_ONCE = 64  # columns that are solved for together
_ARRAYS_OF_TARGETS, _ARRAYS_OF_COLUMNS = (
    10,
    24,
)  # number of arrays for all targets, and for the columns solved for together


def filling_bytes(n_rows: int, n_targets: int) -> int:
    """Return the bytes that ``ObservedDualRidge`` takes besides the matrix."""
    return 8 * n_rows * (_ARRAYS_OF_TARGETS * n_targets + _ARRAYS_OF_COLUMNS * max(n_targets, _COLUMNS_AT_ONCE))


class ObservedDualRidge(ExactSolver):
    """``DualRidge`` for targets with missing entries, NaN in Y, or with separate weights (n, t).

    The dual weights of missing entries are 0, their residuals NaN. A target without entries is 0 everywhere. Solutions
    have the two digits that comparing strengths takes, until they are ``finished``.

    Parameters
    ----------
    square, diagonal, steps
        As in ``DualRidge``.
    Y : ndarray of shape (n, t), float64
        Targets, NaN where an entry is missing.
    row_weights : ndarray of shape (n,) or (n, t), default=None
        Positive weights. None is 1 for all.
    """

    begins_at: ClassVar[int] = 0  # at a tenth of that strength, conjugate gradients take twice as many steps

    def __init__(
        self,
        square: np.ndarray,
        diagonal: np.ndarray,
        Y: np.ndarray,
        row_weights: np.ndarray | None = None,
        steps: int = STEPS,
    ):
        seen = ~np.isnan(Y)
        entry_weights = seen if row_weights is None else np.where(seen, of_entries(row_weights), 0.0)
        largest = entry_weights.max(axis=1)
        largest[largest == 0] = 1.0  # rows without any entry
        self.square, self.diagonal, self.Y = square, diagonal, Y
        self.row_weights, self._steps = row_weights, steps
        self._share = entry_weights / largest[:, None]
        self._root = np.sqrt(largest)[:, None]
        self._entries = np.where(seen, Y, 0.0)
        counts = entry_weights.sum(axis=0)
        self._means = (entry_weights * self._entries).sum(axis=0) / np.where(counts > 0, counts, 1.0)
        self._dual = DualRidge(square, diagonal, np.empty((Y.shape[0], 0)), largest, steps)
        # strength and filled entries of the latest solution
        self._filled: tuple[float, np.ndarray] | None = None

    @property
    def operations(self) -> float:
        return self._dual.operations

    def scale(self) -> float:
        """See ``DualRidge``; over all rows, by the mean weights of their targets."""
        weights = None if self.row_weights is None else of_rows(self.row_weights)
        return DualRidge(self.square, self.diagonal, self.Y, weights).scale()

    def solve(self, alpha: float) -> DualSolution | None:
        self._filled = None
        if self._dual.solve(alpha) is None:
            return None
        filled = np.where(self._share == 1, self._entries, self._means)
        system = Filling(self._dual, self._root, self._share, self._entries, alpha)
        residuals = system.residuals(filled)
        # Finished solutions need a small residual in each row; comparing strengths needs only a small total residual.
        goals = _SEARCH_RESIDUAL * system.sizes(residuals)
        self._by_row = system.looks_at = by_row(self._share < 1, residuals)
        self._first = system.sizes(residuals)
        system.looks_at = None
        return self._solved(system, filled, residuals, goals, 0)

    def finished(self, solution: DualSolution) -> DualSolution:
        """See ``ExactSolver``; the factor is made again unless this strength was solved last."""
        alpha = solution.alpha
        if self._filled is None or self._filled[0] != alpha:
            self.solve(alpha)
        if self._filled is None:
            return solution
        system = Filling(self._dual, self._root, self._share, self._entries, alpha)
        system.looks_at = self._by_row
        goals = _FINAL_RESIDUAL[self.square.dtype.itemsize] * self._first
        filled = self._filled[1]
        finished = self._solved(system, filled, system.residuals(filled), goals, self._steps)
        if finished is None:
            warnings.warn(
                Message(
                    "rounding leaves the weights of tasks with missing labels only two digits at {alpha=:g}. Give "
                    "a larger {alpha}, or {precision='float64'}.",
                    alpha,
                ),
                ConvergenceWarning,
                stacklevel=2,
            )
        return finished or solution

    def _solved(
        self, system: Filling, filled: np.ndarray, residuals: np.ndarray, goals: np.ndarray, steps: int
    ) -> DualSolution | None:
        """Improve filled entries with known residuals until these are below the goals (1, t).

        At most ``steps`` refinements are made. Returns None if rounding prevents it.
        """
        self._filled = None
        weights, intercept, going = (np.empty(filled.shape), np.empty(filled.shape[1]), np.arange(filled.shape[1]))
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
        """See ``DualRidge``; it takes a solution for each row, while rows left out together take a single one."""
        groups = [np.array([row]) for row in range(first, self.Y.shape[0])]
        return np.concatenate(self.leave_out(solution, groups))

    def leave_out(self, solution: DualSolution, groups: Sequence[np.ndarray]) -> list[np.ndarray]:
        """See ``DualRidge``; two or three digits in float32, and NaN where rounding leaves fewer."""
        check_latest(None if self._filled is None else self._filled[0], solution)
        assert self._filled is not None
        left_out = [np.full((group.size, self.Y.shape[1]), np.nan) for group in groups]
        t = self.Y.shape[1]
        for batch in _together(len(groups), t):
            targets = np.tile(np.arange(t), len(batch))
            share, filled = self._share[:, targets], self._filled[1][:, targets]
            for place, k in enumerate(batch):
                columns = slice(place * t, (place + 1) * t)
                # The model's current outputs would be a closer start, but it was fitted to these rows: a search that
                # ends early must not reveal them.
                share[groups[k], columns], filled[groups[k], columns] = 0.0, self._means
            system = Filling(self._dual, self._root, share, self._entries[:, targets], solution.alpha)
            residuals = system.residuals(filled)
            system.looks_at = by_row((share == 0) & (self._share[:, targets] > 0), residuals)
            goals = _LEFT_OUT_RESIDUAL[self.square.dtype.itemsize] * system.sizes(residuals)
            filled, sizes = system.solved(filled, residuals, goals)
            filled[:, (sizes > _UNKNOWN_FROM * goals).any(axis=0)] = np.nan
            for place, k in enumerate(batch):
                left_out[k] = self.Y[groups[k]] - filled[groups[k], place * t : (place + 1) * t]
        return left_out


def _together(n_groups: int, n_targets: int) -> Iterator[range]:
    """Yield ranges of groups that are left out in one solution."""
    step = max(1, _COLUMNS_AT_ONCE // max(1, n_targets))
    for first in range(0, n_groups, step):
        yield range(first, min(first + step, n_groups))
