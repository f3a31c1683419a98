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

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from chimap.moments import of_entries, of_rows
from chimap.solvers.cholesky import solve
from chimap.solvers.exact import STEPS, DualRidge, DualSolution, with_intercept

_FINAL = {4: 1e-5, 8: 1e-12}  # of the size of the targets, by the bytes of a kernel value
_SEARCH = 1e-2  # where settings are compared
_LEFT_OUT = {4: 1e-2, 8: 1e-9}  # of the targets of the rows that are left out
_MOST_STEPS = 300
_COLUMNS = 64  # that are solved for together
_OF_TARGETS, _OF_COLUMNS = 10, 24  # arrays of all targets, and of the columns that are solved for


class ExactRidge(Protocol):
    """What ``selection.leave_one_out`` asks of a machine on a kernel matrix: see ``DualRidge``."""

    square: np.ndarray

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
    the three digits that comparing strengths takes until they are ``finished``.
    """

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
        self.square, self.diagonal, self.Y, self.row_weights, self._steps = (
            square,
            diagonal,
            Y,
            row_weights,
            steps,
        )
        self._share = each / of_row[:, None]
        self._root = np.sqrt(of_row)[:, None]
        self._entries = np.where(seen, Y, 0.0)
        self._size = np.sqrt((each * np.square(self._entries)).sum(axis=0))  # of each target
        self._dual = DualRidge(square, diagonal, np.empty((Y.shape[0], 0)), of_row, steps)
        self._filled: tuple[float, np.ndarray] | None = None  # of the solution that was made last

    def scale(self) -> float:
        """See ``DualRidge``; of all rows, by the mean weights of their targets."""
        weights = None if self.row_weights is None else of_rows(self.row_weights)
        return DualRidge(self.square, self.diagonal, self.Y, weights).scale()

    def solve(self, alpha: float) -> DualSolution | None:
        """See ``DualRidge``."""
        self._filled = None
        if self._dual.solve(alpha) is None:
            return None
        counting = self._share * self._root**2
        counts = counting.sum(axis=0)
        means = (counting * self._entries).sum(axis=0) / np.where(counts > 0, counts, 1.0)
        return self._solved(alpha, np.where(self._share == 1, self._entries, means), _SEARCH, 0)

    def finished(self, solution: DualSolution) -> DualSolution:
        """See ``ExactRidge``; the factor of a strength that was not solved for last is made again."""
        alpha = solution.alpha
        if self._filled is None or self._filled[0] != alpha:
            self.solve(alpha)
        final = None
        if self._filled is not None:
            final = self._solved(alpha, self._filled[1], _FINAL[self.square.dtype.itemsize], self._steps)
        return solution if final is None else final

    def _solved(self, alpha: float, filled: np.ndarray, goal: float, steps: int) -> DualSolution | None:
        """From filled entries on, to so small a share of the targets, with so many refinements at most; None where
        rounding is in the way."""
        self._filled = None
        system = _Filling(self._dual, self._root, self._share, self._entries, alpha)
        residuals, goals = system.residuals(filled), goal * self._size
        for _ in range(1 + steps):
            filled = system.solved(filled, residuals, goals)
            solved = self._dual.solve_for(filled, steps)
            if solved is None:
                return None
            weights, intercept = with_intercept(np.column_stack([solved, self._dual.solved_ones]), filled)
            residuals = system.residuals_of(filled, weights)
            if system.is_solved(residuals, goals):
                break
        self._filled = alpha, filled
        return DualSolution(np.where(self._share > 0, weights, 0.0), intercept, alpha)

    def leave_one_out(self, solution: DualSolution, first: int = 0) -> np.ndarray:
        """See ``DualRidge``; as many solutions as rows, where a share of the rows left out together does."""
        groups = [np.array([row]) for row in range(first, self.Y.shape[0])]
        return np.concatenate(self.leave_out(solution, groups))

    def leave_out(self, solution: DualSolution, groups: Sequence[np.ndarray]) -> list[np.ndarray]:
        """See ``DualRidge``; in float32 to three digits."""
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
                share[groups[k], place * t : (place + 1) * t] = 0.0
            system = _Filling(self._dual, self._root, share, self._entries[:, targets], solution.alpha)
            shares = [np.sqrt(groups[k].size / self.Y.shape[0]) for k in some]
            goals = _LEFT_OUT[self.square.dtype.itemsize] * np.outer(shares, self._size).ravel()
            filled = system.solved(filled, system.residuals(filled), goals)
            for place, k in enumerate(some):
                left_out[k] = self.Y[groups[k]] - filled[groups[k], place * t : (place + 1) * t]
        return left_out

    def of_leading(self, n_rows: int, first: int) -> None:
        """None: fewer rows would take solutions of their own."""
        return None


class _Filling:
    """The equations of the filled entries (n, t), by conjugate gradients of all targets together.

    The unknowns are sqrt(w) filled, in the rows where the share is less than one; 1 - s preconditions.
    """

    def __init__(
        self, dual: DualRidge, root: np.ndarray, share: np.ndarray, entries: np.ndarray, alpha: float
    ):
        self._dual, self._root, self._alpha, self._entries = dual, root, alpha, entries
        self._free = 1.0 - share
        self._pull = np.divide(share, self._free, out=np.zeros_like(share), where=self._free > 0)

    def residuals(self, filled: np.ndarray) -> np.ndarray:
        """Of the equations, by the factor alone."""
        return self._pulled(filled) - self._product(self._root * filled)

    def residuals_of(self, filled: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The same where the weights of the machine of the filled entries are known."""
        return self._pulled(filled) - self._alpha * weights / self._root

    def is_solved(self, residuals: np.ndarray, goals: np.ndarray) -> bool:
        """Whether they are below the goals (t,)."""
        return bool(((self._free * np.square(residuals)).sum(axis=0) <= np.square(goals)).all())

    def solved(self, filled: np.ndarray, residuals: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Filled entries, from some on whose residuals are known, until a step moves them by less than the goals (t,).

        Residuals would stop too early: where the strength is small a machine goes through entries that it should not
        have seen, and hardly differs from one that has not.
        """
        U, R = self._root * filled, residuals.copy()
        direction = self._free * R
        size = (R * direction).sum(axis=0)
        going = np.flatnonzero(size > 0)
        for _ in range(_MOST_STEPS):
            P = direction[:, going]
            product = self._product(P) + self._pull[:, going] * P
            curvature = (P * product).sum(axis=0)
            falls = curvature > 0  # or all that is left is rounding
            going, P, product = going[falls], P[:, falls], product[:, falls]
            if not going.size:
                break
            step = size[going] / curvature[falls]
            U[:, going] += step * P
            R[:, going] -= step * product
            ahead = self._free[:, going] * R[:, going]
            before, size[going] = size[going], (R[:, going] * ahead).sum(axis=0)
            direction[:, going] = ahead + size[going] / before * P
            moved = np.linalg.norm(step * P, axis=0)
            going = going[(moved > goals[going]) & (size[going] > 0)]
        return U / self._root

    def _pulled(self, filled: np.ndarray) -> np.ndarray:
        return np.asarray(self._pull * self._root * (self._entries - filled))

    def _product(self, U: np.ndarray) -> np.ndarray:
        """alpha sqrt(1/w) M sqrt(1/w) U."""
        solved, ones = solve(self._dual.square, U / self._root), self._dual.solved_ones
        solved = solved - np.outer(ones, solved.sum(axis=0, dtype=np.float64) / ones.sum())
        return np.asarray(self._alpha * solved / self._root)


def _together(n_groups: int, n_targets: int) -> Iterator[range]:
    """Groups that are left out in one solution."""
    step = max(1, _COLUMNS // max(1, n_targets))
    for first in range(0, n_groups, step):
        yield range(first, min(first + step, n_groups))
