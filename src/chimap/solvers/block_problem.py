"""The problem of kernel ridge block by block of rows: a choice on the first block, then a sweep over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from chimap.losses import CATALOGUE, Loss, Square, check_loss
from chimap.moments import of_rows
from chimap.penalties import L2
from chimap.solvers.base import Evidence, KernelRows, Needs, Problem, Solver, Swept, required
from chimap.solvers.block_kernel import FactorRows, block_kernel
from chimap.solvers.blocks import BlockRidge, core_rows, factor_places
from chimap.solvers.exact import DualSolution
from chimap.solvers.findings import Findings
from chimap.solvers.held_out import HeldOut, ValidationRows
from chimap.solvers.kernel_matrix import ChosenMachine, KernelMatrix, KernelProblem, solved_alone
from chimap.solvers.posterior import DualPosterior
from chimap.solvers.ridge import LinearSolution
from chimap.solvers.sweep import Sweep

# Rows behind the deviations of predictions: more hardly lower them, and take memory of their square.
POSTERIOR_ROWS = 3000


class BlockProblem(Problem):
    """Minimise sum_i w_i |y_i - f(x_i)|^2 + alpha |f|^2 over f = sum_j K(., x_j) a_j + b, block by block of rows.

    Strength and gamma are chosen on the first block as on a matrix of all rows, and ``adopt`` takes its machine; then
    ``solve`` sweeps over the blocks once. A sweep that goes on from a checkpoint has its choice already.

    Attributes
    ----------
    chosen : ChosenMachine or None
        The machine of the first block that was adopted.
    """

    needs: ClassVar[Needs] = "blocks"
    rule = "leave out"
    stage: ClassVar[str] = "blocks"

    def __init__(self, loss: str | Loss, evidence: Evidence):
        self.rows = required(evidence.kernel, "all rows")
        self.borders = required(evidence.borders, "the borders of the blocks of rows")
        self._loss, self.loss = loss, check_loss(loss, CATALOGUE)
        self._evidence, self._begun = evidence, evidence.begun
        self._first: KernelProblem | None = None
        self._sweep: Sweep | None = None
        self.chosen: ChosenMachine | None = None
        if self._begun is not None:
            begun = self._begun
            machine = DualSolution(begun.weights, begun.intercept, begun.alpha)
            self.chosen = ChosenMachine(machine, begun.octaves, begun.held_out, begun.selection, begun.open)

    @property
    def first(self) -> KernelRows:
        """The rows that settings are compared on: the first block."""
        return self._of_first().first

    @property
    def matrix(self) -> KernelMatrix:
        """The kernel matrix of the first block."""
        return self._of_first().matrix

    def _of_first(self) -> KernelProblem:
        if self._first is None:
            leading = self.rows.leading(int(self.borders[1]))
            self._first = KernelProblem(self._loss, replace(self._evidence, kernel=leading))
        return self._first

    @property
    def n_rows(self) -> int:
        """Rows that have been learned; before the sweep, rows of all blocks."""
        return int(self.borders[-1]) if self._sweep is None else self._sweep.n_seen

    def usual_alpha(self) -> float:
        """Return the mean scatter of a row of the first block."""
        return self._of_first().usual_alpha()

    def adopt(self, chosen: ChosenMachine) -> None:
        """Take the machine of the first block that a rule has chosen, and set the features to its gamma."""
        self._first, self.chosen = None, chosen  # the matrix of the first block is not needed any more
        self.rows.features.set_octaves(chosen.octaves)

    def solve(self, alpha: float) -> LinearSolution:
        """See ``Problem``: sweep over the blocks; the features then keep the rows that were learned."""
        if self.chosen is None:
            self.adopt(solved_alone(self.matrix, alpha))
        rows, evidence, borders = self.rows, self._evidence, self.borders
        assert self.chosen is not None
        begun, n_core = self._begun or self._after_first(self.chosen), core_rows(int(borders[1]))
        most_rows = max(borders[1], n_core + np.diff(borders[1:]).max(initial=0))
        weights = None if rows.weights is None else of_rows(rows.weights)
        places = [factor_places(slice(int(a), int(b)), n_core) for a, b in pairwise(borders)]
        ahead = [FactorRows(own, None if weights is None else weights[own]) for own in places]
        machine = BlockRidge(
            block_kernel(rows.features, int(most_rows), rows.dtype, evidence.device, evidence.held, ahead, n_core),
            rows.Y,
            weights,
            begun.alpha,
            begun.intercept,
            n_core,
            is_lifted=rows.features.is_centred,
            hidden=rows.hidden,
        )
        left_out = None if self._begun is not None else self.chosen.held_out
        sweep = Sweep(
            machine,
            rows,
            begun,
            evidence.progress,
            evidence.ends_at,
            evidence.reached,
            left_out,
            evidence.watch,
            self.chosen.growth,
        )
        sweep.run()
        if rows.hidden is not None:
            sweep.held_out[~rows.hidden] = np.nan
        self._sweep = sweep
        n = machine.n_seen
        rows.features.keep(slice(n))
        self._held_out = np.full((evidence.n_rows, rows.Y.shape[1]), np.nan)
        self._held_out[rows.order] = sweep.held_out + rows.shift
        return LinearSolution(machine.weights[:n], machine.intercept + rows.shift, machine.alpha)

    def _after_first(self, chosen: ChosenMachine) -> Swept:
        """Return the sweep after the first block, which the machine that was adopted has solved."""
        machine = chosen.solution
        n, t = machine.weights.shape
        return Swept(
            borders=self.borders,
            octaves=chosen.octaves,
            selection=chosen.result,
            alpha=machine.alpha,
            intercept=machine.intercept,
            lift=0.0,
            weights=machine.weights,
            core_residuals=np.zeros((core_rows(int(self.borders[1])), t)),
            lengths=np.empty(0),
            step=np.zeros((0, t)),
            open=chosen.open,
            held_out=np.full((n, t), np.nan),
            scores=np.empty((0, 2)),
        )

    def held_out(self, solution: LinearSolution, validation: ValidationRows | None) -> HeldOut | None:
        """See ``Problem``: outputs for the rows of later blocks by machines of the blocks before theirs."""
        assert self._sweep is not None
        recent = np.sort(self.rows.order[self._sweep.recent])
        return HeldOut(recent, self._held_out[recent], self._sweep.noise)

    @property
    def findings(self) -> Findings:
        assert self._sweep is not None
        n_unlearned = self._evidence.n_rows - self.n_rows
        return Findings(self.rows.order[: self.n_rows], self._held_out, n_unlearned, self._sweep.block_rows)

    @property
    def growth(self) -> tuple[str, Sequence[tuple[int, float]]] | None:
        """See ``Problem``: the score of each block before it was learned."""
        return None if self._sweep is None else (self.rows.score.name, self._sweep.scores)

    def posterior(self, solution: LinearSolution) -> DualPosterior | None:
        """Return how certain a machine of the first rows is: variances that are at least those of all rows."""
        rows = self.rows.leading(min(POSTERIOR_ROWS, int(self.borders[1]) // 2))
        return KernelMatrix(rows.features, rows.Y, rows.weights, rows.dtype).posterior(solution.alpha, 0, rows.unit)


class BlockSolver(Solver):
    """Kernel ridge of more rows than a kernel matrix holds, block after block."""

    name: ClassVar[str] = "blocks"
    needs: ClassVar[Needs] = "blocks"
    leaves_out: ClassVar[bool] = True

    def supports(self, loss: str | Loss, penalty: type = L2) -> bool:
        return penalty is L2 and (loss == Square.name or loss == Square())

    def problem(self, loss: str | Loss, evidence: Evidence) -> BlockProblem:
        return BlockProblem(loss, evidence)
