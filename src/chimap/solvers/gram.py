"""The problem of a kernel matrix that is given, whose strength is chosen by machines of the other folds.

``KernelProblem`` makes its own matrix and leaves rows out in closed form; this one serves kernels without a map and the
hinge, for data that fit memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.solvers.base import Needs, PlacedScore, Problem
from chimap.solvers.exact import DualSolution, ExactSolver, lift
from chimap.solvers.held_out import HeldOut, Witnesses
from chimap.solvers.kernel_matrix import EXACT_MACHINES
from chimap.solvers.ridge import LinearSolution

GRAM_LOSSES = ("hinge", "square")
# Strengths to compare, and the one that is preferred if no rows can be held out, in mean diagonals of the matrix.
_SHARES = np.array([1e-3, 1e-2, 0.1, 1.0, 10.0])
_PLAIN_SHARE = 0.1

Split = tuple[np.ndarray, np.ndarray]
"""Rows to learn from, and rows that are held out."""


class GramProblem(Problem):
    """Minimise sum_i w_i loss(y_i, f(x_i)) + alpha/2 a'K a with f = K a + b, on a kernel matrix K (n, n) that is given.

    Parameters
    ----------
    loss : {"hinge", "square"}
        The loss.
    gram : ndarray of shape (n, n), float64
        The kernel matrix, centred.
    Y : ndarray of shape (n, t)
        Targets.
    weights : ndarray of shape (n,)
        Weights of the rows.
    scale : float
        Mean diagonal of the matrix times the mean weight of a row, the unit of the strengths.
    splits : sequence of (rows, rows)
        Folds that choose the strength; none if there are too few rows.
    score : callable
        Score of outputs.
    held : sequence of int or None, default=None
        Folds that are held out for held-out outputs; None leaves out rows in closed form, alone or by ``groups``.
    groups : sequence of ndarray or None, default=None
        Rows that are left out together.
    """

    needs: ClassVar[Needs] = "kernel"
    rule = "fold machines"

    def __init__(
        self,
        loss: str,
        gram: np.ndarray,
        Y: np.ndarray,
        weights: np.ndarray,
        scale: float,
        splits: Sequence[Split],
        score: PlacedScore,
        held: Sequence[int] | None = None,
        groups: Sequence[np.ndarray] | None = None,
    ):
        self._make = EXACT_MACHINES[loss].make
        self.gram, self.Y, self.weights, self.scale = gram, Y, weights, scale
        self.splits, self.score, self.n_folds = splits, score, max(1, len(splits))
        self._held, self._groups = held, groups
        self._machine: ExactSolver | None = None
        self._solution: DualSolution | None = None

    @property
    def n_rows(self) -> int:
        """See ``Problem``."""
        return self.Y.shape[0]

    def strengths(self, alpha: float | Sequence[float] | None) -> np.ndarray:
        """Return the strengths to compare, ascending: those given, or some about the scale of the matrix."""
        return self.scale * _SHARES if alpha is None else np.unique(alpha)

    def usual_alpha(self) -> float:
        """Return a tenth of the scale."""
        return _PLAIN_SHARE * self.scale

    def outputs_of_fold(self, fold: int, alphas: Sequence[float]) -> list[np.ndarray]:
        """Return outputs (m, t) for the rows of a fold by machines of its other rows, one for each strength."""
        train, test = self.splits[fold]
        machine = self._machine_of(train)
        solutions = [self._solved(machine, alpha) for alpha in alphas]
        cross = self.gram[np.ix_(test, train)]
        return [cross @ solution.weights + solution.intercept for solution in solutions]

    def solve(self, alpha: float) -> LinearSolution:
        """See ``Problem``; the weights are those of the rows."""
        self._machine = self._machine_of(None)
        machine = self._solution = self._solved(self._machine, alpha)
        return LinearSolution(machine.weights, machine.intercept, alpha)

    def held_out(self, solution: LinearSolution, witnesses: Witnesses | None) -> HeldOut | None:
        """See ``Problem``."""
        if self._held is not None:
            if not self.splits:
                return None
            rows = np.concatenate([self.splits[fold][1] for fold in self._held])
            outputs = [self.outputs_of_fold(fold, [solution.alpha])[0] for fold in self._held]
            return HeldOut(rows, np.concatenate(outputs))
        assert self._machine is not None
        assert self._solution is not None
        if self._groups is None:
            residuals, rows = self._machine.leave_one_out(self._solution), np.arange(self.n_rows)
        else:
            residuals = np.concatenate(self._machine.leave_out(self._solution, self._groups))
            rows = np.concatenate(self._groups)
        return HeldOut(rows, self.Y[rows] - residuals)

    def _machine_of(self, rows: np.ndarray | None) -> ExactSolver:
        """Return the machine of some rows, or of all."""
        square = self.gram.copy() if rows is None else np.ascontiguousarray(self.gram[np.ix_(rows, rows)])
        diagonal = lift(square, square.diagonal().copy())
        if rows is None:
            return self._make(square, diagonal, self.Y, self.weights)
        return self._make(square, diagonal, self.Y[rows], self.weights[rows])

    @staticmethod
    def _solved(machine: ExactSolver, alpha: float) -> DualSolution:
        solution = machine.solve(alpha)
        if solution is None:
            raise DataError(
                Message(
                    "{alpha=:g} is too small: the kernel matrix is singular to rounding. Use a larger one, or "
                    "{alpha='auto'}.",
                    alpha,
                )
            )
        return solution
