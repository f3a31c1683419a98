"""The objective of exact machines of more rows than a kernel matrix holds: block after block (``solvers.blocks``).

``BlockObjective`` chooses strength and gamma on the first block as ``ExactObjective`` does, then sweeps over the blocks
once. Each block is predicted before it is learned, so that the sweep validates itself. Between two blocks the weights
are all that is known (``solvers.blocks.Swept``): a checkpoint keeps them, and reads the rows again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import ClassVar, cast

import numpy as np

from chimap import _threads
from chimap._types import Parameters
from chimap.engines import Job, Progress, Stopwatch
from chimap.features.base import FittedFeatures
from chimap.features.exact import SharedRows
from chimap.fit.design import FeatureBlock
from chimap.fit.exact import ExactObjective
from chimap.fit.solving import Learned
from chimap.losses import CATALOGUE, Loss, check_loss
from chimap.moments import of_rows
from chimap.selection import SelectionResult
from chimap.selection.learning_curve import LearningCurve, curve_of, score_if_any
from chimap.selection.leave_one_out import FEW_ROWS, within
from chimap.solvers import LinearSolution
from chimap.solvers.base import Evidence, Needs
from chimap.solvers.blocks import BlockRidge, Swept
from chimap.solvers.exact import is_shared
from chimap.solvers.held_out import HeldOut, noise_of
from chimap.solvers.kernel_matrix import KernelRows
from chimap.solvers.posterior import DualPosterior

BLOCKS = "blocks"  # the solver of machines that keep every row but no matrix between all of them
MOST_BLOCK_ROWS = 10_000  # a factor takes two seconds of two cores, and larger blocks gain nothing
POSTERIOR_ROWS = (
    3000  # behind the deviations of predictions: more rows hardly lower them, and take memory of their square
)
MOST_SWEEPS = 4  # within a time limit: the fourth moves scores by less than their error
CORE_SHARE = 0.2  # of the rows of a factor: the core that is solved again with every block
FEWEST_BLOCK_ROWS = 500  # smaller blocks take longer to learn about than landmarks of the same memory
USUAL_SECONDS = 120.0  # of counted work that a sweep may do
# Operations per second of two cores: of products and of factors, and seconds of an exponential with its sum.
_PRODUCTS, _FACTORS, _VALUE_SECONDS = 2e11, 1e11, 3e-10


def block_bytes(block_rows: int, row_bytes: float, dtype: np.dtype) -> int:
    """Return the bytes of a sweep with blocks of so many rows, beside the rows: see ``exact.exact_bytes``."""
    columns = block_rows + 512 * _threads.count()
    return int(dtype.itemsize * block_rows * columns + 3 * block_rows * row_bytes)


def block_seconds(n_rows: int, block_rows: int, n_columns: float) -> float:
    """Return the seconds of a sweep on two cores, by its operations, for mapped rows of so many (dense) columns."""
    pairs = n_rows**2 / 2
    factors = n_rows / (1 - CORE_SHARE) * block_rows**2 / 3
    return 2 * pairs * n_columns / _PRODUCTS + pairs * _VALUE_SECONDS + factors / _FACTORS


def core_rows(block_rows: int) -> int:
    """Return the rows of the core that is solved again with every block, for so many rows of a factor."""
    return int(CORE_SHARE * block_rows)


def most_rows_within(seconds: float, block_rows: int, n_columns: float) -> int:
    """Return the rows that a sweep learns from in so many seconds of two cores."""
    square = block_seconds(2, 0, n_columns) / 4
    linear = block_rows**2 / (1 - CORE_SHARE) / 3 / _FACTORS
    return int((np.sqrt(linear**2 + 4 * square * seconds) - linear) / (2 * square))


@dataclass(frozen=True)
class BlockObjective:
    """Minimise sum_i w_i |y_i - f(x_i)|^2 + alpha |f|^2 over f = sum_j K(., x_j) a_j + b, block by block of rows.

    Parameters
    ----------
    first : ExactObjective
        Chooses strength and gamma on the first block, and solves it.
    ends_at : float or None, default=None
        Time of ``time.monotonic`` after which no block begins that would end later; None for no limit.
    """

    needs: ClassVar[Needs] = "blocks"
    n_vectors: ClassVar[int] = 0
    has_gcv: ClassVar[bool] = False
    leaves_out: ClassVar[bool] = True
    first: ExactObjective
    ends_at: float | None = None

    @property
    def loss(self) -> str | Loss:
        """See ``Objective``."""
        return self.first.loss

    def check(self, given: Parameters) -> None:
        """See ``Objective``."""
        self.first.check(given)

    def footprint(self, job: Job, parts: list[FeatureBlock]) -> Job:
        """See ``Objective``."""
        return job

    def learn(
        self, evidence: Evidence, features: FittedFeatures, clock: Stopwatch, progress: Progress
    ) -> Learned:
        """See ``Objective``. The features are set to the chosen gamma, and keep the rows that were learned from."""
        rows, borders = evidence.kernel, evidence.borders
        if rows is None or borders is None:
            raise TypeError("a machine in blocks is solved on all rows and the borders of its blocks")
        with clock("choose alpha"):
            begun, left_out = evidence.begun, None
            if begun is None:
                begun, left_out = self._begun(rows, borders, progress)
            rows.features.set_octaves(begun.octaves)
        with clock("blocks"):
            n_core = core_rows(int(borders[1]))
            most_rows = max(borders[1], n_core + np.diff(borders[1:]).max(initial=0))
            machine = BlockRidge(
                rows.features, rows.Y, None if rows.weights is None else of_rows(rows.weights), begun.alpha,
                begun.intercept, int(most_rows), rows.dtype, n_core, evidence.device, begun.lift,
                None if evidence.hold is None else SharedRows(rows.features, evidence.hold()),
            )  # fmt: skip
            sweep = Sweep(machine, rows, begun, progress, self.ends_at, evidence.reached, left_out)
            sweep.run()
        n = machine.n_seen
        rows.features.keep(slice(n))
        held_out = np.full((evidence.n_rows, rows.Y.shape[1]), np.nan)
        held_out[rows.order] = sweep.held_out + rows.shift
        evidence_rows = rows.order[sweep.recent]
        return Learned(
            LinearSolution(machine.weights[:n], machine.intercept + rows.shift, machine.alpha),
            check_loss(self.loss, CATALOGUE), cast("SelectionResult | None", begun.selection), 1, n,
            {"row_numbers_": rows.order[:n], "held_out_": held_out, "kernel_": features.kernel_,
             "n_unlearned_": evidence.n_rows - n, "block_rows_": sweep.block_rows},
            HeldOut(np.sort(evidence_rows), held_out[np.sort(evidence_rows)], sweep.noise),
            partial(_posterior, rows, min(POSTERIOR_ROWS, int(borders[1]) // 2), machine.alpha), sweep.curve,
        )  # fmt: skip

    def _begun(self, rows: KernelRows, borders: np.ndarray, progress: Progress) -> tuple[Swept, np.ndarray]:
        """Return the sweep after the first block, on which strength and gamma are chosen, and its left-out outputs."""
        progress.stage("alpha", None, "values")
        start = _leading(rows, borders[1])
        choice = self.first.choice(start, start.matrix(self.loss), lambda alpha, value: progress.advance())
        machine = choice.solution
        begun = Swept(
            borders, choice.octaves, choice.result, machine.alpha, machine.intercept, 0.0, machine.weights,
            np.zeros((core_rows(int(borders[1])), machine.weights.shape[1])),
            np.full(machine.weights.shape, np.nan), np.empty((0, 2)),
        )  # fmt: skip
        return begun, choice.held_out


def _posterior(rows: KernelRows, n: int, alpha: float) -> DualPosterior | None:
    """Return how certain a machine of the first n rows is: variances that are at least those of all rows."""
    return _leading(rows, n).matrix("square").posterior(alpha, 0, rows.unit)


def _leading(rows: KernelRows, n: int) -> KernelRows:
    """Return the first rows alone."""
    groups = None if rows.groups is None else within(rows.groups, np.arange(n))
    return replace(
        rows, features=rows.features.take(slice(n)), order=rows.order[:n], groups=groups, Y=rows.Y[:n],
        weights=None if rows.weights is None else rows.weights[:n],
        counts=None if rows.counts is None else rows.counts[:n],
    )  # fmt: skip


class Sweep:
    """A sweep over the blocks, and what it shows of the machine.

    ``begun`` is where it begins, with the first block solved at least; ``reached``, if given, is told where it stands
    there and after each block. ``left_out`` are the outputs of the first block, each row left out alone, if it has just
    been solved.

    Attributes
    ----------
    held_out : ndarray of shape (n, t)
        Outputs for each row by a machine that has not seen it: that of the blocks before its own or, for the last rows
        of the last block, that of all other rows. NaN for blocks that were not learned, and for the first block unless
        it is the last.
    noise : ndarray of shape (t,) or None
        Variance of the targets about the outputs of a machine without uncertainty; None before a second block.
    recent : ndarray
        Places of the rows whose held-out outputs are by machines of at least half of the rows, or of the last block.
    """

    def __init__(
        self,
        machine: BlockRidge,
        rows: KernelRows,
        begun: Swept,
        progress: Progress,
        ends_at: float | None,
        reached: Callable[[Swept], None] | None = None,
        left_out: np.ndarray | None = None,
    ):
        self._machine, self._rows, self._progress, self._ends_at = machine, rows, progress, ends_at
        self._begun, self._reached, self._left_out_first = begun, reached, left_out
        self._blocks = [slice(int(a), int(b)) for a, b in pairwise(begun.borders)]
        self.held_out = np.full(rows.Y.shape, np.nan)
        self.held_out[: begun.held_out.shape[0]] = begun.held_out
        self.noise: np.ndarray | None = None
        self._scores = [(int(n), float(score)) for n, score in begun.scores]
        self._latest_seconds, self._latest_rows = 0.0, 1

    def run(self) -> None:
        """Learn the blocks that are left, as far as there is time.

        Time of a limit that one sweep leaves goes into further ones, which come nearer to the exact solution. An
        interruption by the user (Ctrl-C) ends the sweep, not the fit. If there is a checkpoint it ends both, and the
        fit is resumed from there.
        """
        self._progress.stage("blocks", self._blocks[-1].stop)
        self._machine.adopt(self._begun.weights, self._begun.core_residuals)
        self._progress.advance(self._machine.n_seen)
        self._tell()
        try:
            for block in [block for block in self._blocks if block.start >= self._machine.n_seen]:
                if self._has_time_for(block):
                    self._learn(block)
                    self._tell()
            self._leave_out()
            if self._ends_at is not None and self._machine.n_seen == self._blocks[-1].stop:
                self._sweep_again()
        except KeyboardInterrupt:
            if self._reached is not None:
                raise
            self._progress.note(f"interrupted: the machine has learned from {self._machine.n_seen:,} rows")
            if self.noise is None:
                self._leave_out()

    def _sweep_again(self) -> None:
        """Learn all blocks again and again, while there is time; what was held out stays that of the first sweep."""
        for number in range(2, MOST_SWEEPS + 1):
            self._progress.stage(f"sweep {number}", self._blocks[-1].stop)
            for block in self._blocks:
                if self._has_time_for(block, self._machine.n_seen):
                    self._machine.learn(block)
                    self._progress.advance(block.stop - block.start)

    def _tell(self) -> None:
        """Say where the sweep stands."""
        if self._reached is None:
            return
        machine, n = self._machine, self._machine.n_seen
        standing = replace(
            self._begun, lift=machine.lift, weights=machine.weights[:n], core_residuals=machine.core_residuals,
            held_out=self.held_out[:n],
            scores=np.array(self._scores).reshape(-1, 2),
        )  # fmt: skip
        self._reached(standing)

    def _learn(self, block: slice) -> None:
        """Predict a block, then learn it."""
        began, n_seen = time.monotonic(), self._machine.n_seen
        outputs = self._machine.outputs(block)
        self._machine.learn(block, outputs)
        self.held_out[block] = outputs
        self._scores.append((n_seen, self._score(outputs, block)))
        self._latest_seconds, self._latest_rows = time.monotonic() - began, block.stop
        self._progress.advance(block.stop - block.start)
        self._progress.note(
            f"{n_seen:,} rows learned: {self._rows.score.name} {self._scores[-1][1]:.4f} of the next"
        )

    def _score(self, outputs: np.ndarray, block: slice) -> float:
        return score_if_any(partial(self._rows.scored, outputs, block))

    def _has_time_for(self, block: slice, n_seen: int | None = None) -> bool:
        """Whether a block is expected to end within the limit, by the seconds of the block before it."""
        if self._ends_at is None:
            return True
        seconds = self._latest_seconds * (n_seen or block.stop) / self._latest_rows
        return time.monotonic() + seconds <= self._ends_at and self._machine.n_seen >= block.start

    def _leave_out(self) -> None:
        """Replace the outputs of the last rows by those of the machine of all other rows."""
        rows, n, block = self._rows, self._machine.n_seen, self._machine.latest
        if block is None and (self._left_out_first is None or n > self._begun.borders[1]):
            return
        if block is None:
            first = 0
            self.held_out[:n] = self._left_out_first
        elif rows.groups is None:
            first = max(block.start, n - FEW_ROWS)
            self.held_out[first:n] = self._machine.left_out(first - block.start)
        else:
            first = block.start
            groups = [group - first for group in rows.groups if first <= group[0] < n]
            self.held_out[first:n] = self._machine.left_out_together(groups)
        last = slice(first, n)
        self._scores.append((n, self._score(self.held_out[last], last)))
        if rows.has_noise:
            self.noise = self._noise_of(last, None if rows.groups is None else groups)

    def _noise_of(self, last: slice, groups: list[np.ndarray] | None) -> np.ndarray:
        """Return the variance of the noise (t,) by the last rows, each left out alone or with its group."""
        rows, residuals = self._rows, self._rows.Y[last] - self.held_out[last]
        weights = np.ones(residuals.shape[0]) if rows.weights is None else of_rows(rows.weights)[last]
        if groups is None:
            own = self._machine.residuals(last)
            factors = np.divide(residuals, own, out=np.ones_like(residuals), where=own != 0)
        else:
            factors = weights * self._machine.variances(groups) / self._machine.alpha
        return noise_of(residuals, factors, weights, None if rows.counts is None else rows.counts[last])

    @property
    def block_rows(self) -> np.ndarray:
        """Rows of each block that was learned."""
        return np.array([b.stop - b.start for b in self._blocks if b.stop <= self._machine.n_seen])

    @property
    def recent(self) -> np.ndarray:
        """See the class."""
        n = self._machine.n_seen
        first = min(b.start for b in self._blocks if b.start >= n / 2 or b.stop == n)
        places = np.arange(first, n)
        return places[~np.isnan(self.held_out[first:n]).all(axis=1)]

    @property
    def curve(self) -> LearningCurve | None:
        """How the score of the next block grows with the rows."""
        return curve_of(self._rows.score.name, self._scores)


def can_sweep(Y: np.ndarray, weights: np.ndarray | None) -> bool:
    """Whether targets can be learned block by block: none misses entries, or has weights of its own."""
    return is_shared(Y, weights)
