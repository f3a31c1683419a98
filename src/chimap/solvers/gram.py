"""Machines on one kernel matrix in memory, whose strength is chosen by machines of the other folds.

``KernelProblem`` leaves rows out in closed form, and searches; this one compares a few strengths, with the hinge too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.losses import Loss, Square
from chimap.penalties import L2
from chimap.solvers.base import Evidence, Needs, Problem, Solver, required
from chimap.solvers.exact import DualSolution, ExactSolver, lift
from chimap.solvers.exact_hinge import CACHE_MIB
from chimap.solvers.held_out import HeldOut, Witnesses
from chimap.solvers.kernel_matrix import EXACT_MACHINES
from chimap.solvers.ridge import LinearSolution

GRAM_LOSSES = ("hinge", "square")
# Strengths to compare, and the one that is preferred if no rows can be held out, in mean diagonals of the matrix.
_SHARES = np.array([1e-3, 1e-2, 0.1, 1.0, 10.0])
_PLAIN_SHARE = 0.1


def gram_bytes(n_rows: int) -> int:
    """Return the bytes of the matrix, of that of a machine, and of its factor or LIBSVM's cache."""
    return 8 * n_rows**2 * 3 + CACHE_MIB * 2**20


class GramProblem(Problem):
    """Minimise sum_i w_i loss(y_i, f(x_i)) + alpha/2 a'K a with f = K a + b, on the centred kernel matrix K (n, n).

    Attributes
    ----------
    scale : float
        Mean diagonal of the matrix.
    folds : list of arrays
        The rows of each fold that choose the strength; none if there are too few rows.
    """

    needs: ClassVar[Needs] = "matrix"
    rule = "fold machines"

    def __init__(self, loss: str | Loss, evidence: Evidence):
        rows = self.first = required(evidence.kernel, "the kernel matrix of all rows")
        name = loss if isinstance(loss, str) else loss.name
        self.loss = Square() if name == Square.name else None
        self._kind, self._held = EXACT_MACHINES[name], evidence.held_folds
        self.folds = rows.groups or []
        self.n_folds = max(1, len(self.folds))
        self.weights = np.ones(self.n_rows) if rows.weights is None else rows.weights
        self.gram = np.empty((self.n_rows, self.n_rows))
        diagonal = rows.features.gram_into(self.gram)
        for row in range(self.n_rows):  # above the diagonal there may be anything
            self.gram[row, row:] = self.gram[row:, row]
        np.fill_diagonal(self.gram, diagonal)
        # Centred, as LIBSVM rounds values to float32: the weights of a target sum to 0, so that it leaves a constant.
        shares = self.weights / self.weights.sum()
        self._means = shares @ self.gram
        self.gram -= self._means
        self.gram -= (self.gram @ shares)[:, None]
        self.scale = float(shares @ self.gram.diagonal()) or 1.0
        counts = self.n_rows if rows.counts is None else rows.counts.sum()
        self._unit = self.scale * float(self.weights.sum() / counts)
        self._machine: ExactSolver | None = None
        self._solution: DualSolution | None = None

    @property
    def n_rows(self) -> int:
        """See ``Problem``."""
        return self.first.order.size

    def strengths(self, alpha: float | Sequence[float] | None) -> np.ndarray:
        """Return the strengths to compare, ascending: those given, or some about the scale of the matrix."""
        return self._unit * _SHARES if alpha is None else np.unique(alpha)

    def usual_alpha(self) -> float:
        """Return a tenth of the scale."""
        return _PLAIN_SHARE * self._unit

    def outputs_of_fold(self, fold: int, alphas: Sequence[float]) -> list[np.ndarray]:
        """Return outputs (m, t) for the rows of a fold by machines of its other rows, one for each strength."""
        left_out = self.folds[fold]
        others = np.setdiff1d(np.arange(self.n_rows), left_out)
        machine = self._machine_of(others)
        solutions = [self._solved(machine, alpha) for alpha in alphas]
        cross = self.gram[np.ix_(left_out, others)]
        return [cross @ solution.weights + solution.intercept for solution in solutions]

    def solve(self, alpha: float) -> LinearSolution:
        """See ``Problem``; the weights are those of the rows."""
        self._machine = self._machine_of(np.arange(self.n_rows))
        machine = self._solution = self._solved(self._machine, alpha)
        intercept = machine.intercept - self._means @ machine.weights + self.first.shift
        return LinearSolution(machine.weights, intercept, alpha)

    def held_out(self, solution: LinearSolution, witnesses: Witnesses | None) -> HeldOut | None:
        """See ``Problem``: of all rows where they have a closed form, else of as many folds as are enough."""
        assert self._machine is not None
        assert self._solution is not None
        has_closed_form = self._kind.leaves_out
        if has_closed_form and not self._held:
            rows, residuals = np.arange(self.n_rows), self._machine.leave_one_out(self._solution)
        elif self.folds:
            folds = self.folds if has_closed_form else [self.folds[fold] for fold in self._held]
            rows = np.concatenate(folds)
            residuals = np.concatenate(self._machine.leave_out(self._solution, folds))
        else:
            return None
        return HeldOut(self.first.order[rows], self.first.Y[rows] - residuals + self.first.shift)

    @property
    def attributes(self) -> dict[str, object]:
        """See ``Problem``."""
        assert self._solution is not None
        duals = np.ascontiguousarray(self._solution.weights.T)  # in the order of a file, for the same bits
        return {"row_numbers_": self.first.order, "scale_": self.scale, "dual_coef_": duals}

    def _machine_of(self, rows: np.ndarray) -> ExactSolver:
        """Return the machine of some rows."""
        square = np.ascontiguousarray(self.gram[np.ix_(rows, rows)])
        return self._kind.make(square, lift(square, square.diagonal().copy()), self.first.Y[rows], self.weights[rows])

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


class GramSolver(Solver):
    """The machines on the kernel matrix of all rows, in their order, and on that of the rows outside a fold."""

    name: ClassVar[str] = "gram"
    needs: ClassVar[Needs] = "matrix"

    def supports(self, loss: str | Loss, penalty: type = L2) -> bool:
        """See ``Solver``."""
        return penalty is L2 and (loss if isinstance(loss, str) else loss.name) in GRAM_LOSSES

    def problem(self, loss: str | Loss, evidence: Evidence) -> GramProblem:
        """See ``Solver``."""
        return GramProblem(loss, evidence)
