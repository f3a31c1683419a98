"""Kernel ridge of any number of rows, block by block, without a matrix larger than one block.

The problem is

    (K + alpha W^-1) a = Y - b,   f = sum_j K(., x_j) a_j + b,

with W the weights of the rows and K (n, n) never formed. A step takes a block B of rows and solves for its weights:

    r = Y_B - b - K_B,: a - alpha W_B^-1 a_B,      a_B += (K_BB + alpha W_B^-1)^-1 r.

Each step minimises phi(a) = a'(K + alpha W^-1) a / 2 - (Y - b)'a over the block exactly, so that phi falls with every
step and a sweep may end after any block. In the first sweep the blocks to come have weights 0, so K_B,: is needed for
the blocks before B only, which is half of the products: n^2 p multiply-adds and (n / m) m^3 / 3 for the factors of
blocks of m rows. Memory is that of the rows and of one block of the matrix.

Smooth directions, which all blocks share, converge slowly. A core S of the first rows is therefore solved again with
every block: (B, S) takes the place of B. The residual of S is 0 after each step, so that nothing else changes. On logP
of 15,000 molecules (b = 2500, 2000 rows of core) one sweep scores better than three without a core.

The sweep validates itself: before block B is solved, K_B,: a + b are outputs by a machine that has not seen its rows.

Those rows also tell how long the step before should have been. A block is solved as if no rows were to come, and fits
what they would explain. With the step s of a_B and of the core, length l minimises

    |r - (l - l') K_B,: s|^2,   r the residuals of the next block after length l', so that   l = l' + r'(K s) / |K s|^2.

Each step takes the mean of the lengths that were best before it, which keeps the outputs for rows to come honest. On
logP of 100,000 molecules in 33 blocks lengths fall from .7 to .2, and one sweep gives R^2 .9400; full steps give .9340,
and .9411 after a second sweep, which has three times as much to do. The first sweep over 30,000 rows in four blocks,
with lengths of .5 to .7, gains .3 points of accuracy on Fashion-MNIST, .1 on MNIST and 1 on words of images.

They also tell whether the strength suits so many rows, if it was left open. The first block's rows chose it for a
machine of their own; many blocks average the noise that one would fit, and may need less. The step in full depends
on the strength by d s / d alpha = -A^-1 W^-1 s =: -d, with A what was factorised, so that the squared error of row i,
after the length that is best for all, has the derivative

    d e_i / d alpha = 2 l (r - l K_B,: s)_i (K_B,: d)_i,

for a solution with the factor that is there. Where the mean over the rows of a block is above three standard errors,
the strength falls by half a decade for this step and those to come, each of which solves the core anew. On words of
50,000 images it falls from .63 to .02, and .6 points more of others are recognised; on logP of 100,000 molecules it
falls from .006 to .002, and R^2 gains .002; on MNIST, Fashion-MNIST and HIV it stays. Evidence of several blocks taken
together lets it fall too far on 700,000 molecules, and a strength that may rise as well runs away there.

Leaving row i out of the block that was solved last changes its residual after the full step to
s_i / (K_BB + alpha W_B^-1)^-1_ii, as the blocks before it do not depend on that row; after a step of length l it is
that times l, and the residual before the step times 1 - l.

References
----------
Bertsekas, Nonlinear Programming (block coordinate descent); Rathore, Frangella, Yang, Derezinski and Udell, Have
ASkotch (2024), on full kernel ridge against inducing points; Dawid, Prequential analysis (1984), on scores of rows to
come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from chimap._messages import Message
from chimap._progress import Progress
from chimap._validation import DataError
from chimap.backends.base import BlockFactor, BlockKernel
from chimap.losses import CATALOGUE, Loss, Square, check_loss
from chimap.moments import of_rows
from chimap.penalties import L2
from chimap.solvers.base import Evidence, KernelRows, Needs, Problem, Solver, Standing, Swept, WatchedRows, required
from chimap.solvers.block_kernel import FactorRows, block_kernel
from chimap.solvers.exact import STEPS, DualSolution
from chimap.solvers.findings import Findings
from chimap.solvers.held_out import HeldOut, ValidationRows, noise_of
from chimap.solvers.kernel_matrix import ChosenMachine, KernelMatrix, KernelProblem, solved_alone
from chimap.solvers.posterior import DualPosterior
from chimap.solvers.ridge import LinearSolution

_MOST_STRENGTHS = (
    6  # strengths of a single step, each ten times the one before, where rounding makes its block singular
)

# Rows behind the deviations of predictions: more hardly lower them, and take memory of their square.
POSTERIOR_ROWS = 3000
LEFT_OUT_ROWS = 3000  # of the last block that are left out at its end: as many as calibrate well
MOST_SWEEPS = 4  # within a time limit: the fourth moves scores by less than their error
# The core that is solved again with every block: as many rows as smooth directions need, and no more than a share of
# the rows of a factor. R^2 of logP after two sweeps over 30,000 rows in blocks of 5000: .9314 with a core of 1000 rows,
# .9338 with 2000, .9346 with 3000, in 9.7, 12.7 and 17.5 seconds.
CORE_ROWS, CORE_SHARE = 2000, 0.4
# Standard errors by which rows must ask for another strength: each of many blocks may be the one that asks by luck. The
# error is that of the mean over parts of a block, each of whole groups; few parts, or few rows, would tell it badly.
_SURE, _PARTS, _FEWEST_PARTS, _FEWEST_ROWS = 3.0, 50, 20, 200
_HALF_DECADE = 10**0.5


def core_rows(block_rows: int) -> int:
    """Return the rows of the core that is solved again with every block, for so many rows of a factor."""
    return int(min(CORE_ROWS, CORE_SHARE * block_rows))


def factor_places(block: slice, n_core: int) -> np.ndarray:
    """Return the places of the rows that are factorised for a block: those of a core of other rows, and its own."""
    core = np.arange(n_core if block.start >= n_core else 0)
    return np.concatenate([core, np.arange(block.start, block.stop)])


@dataclass(frozen=True)
class LatestBlock:
    """The block that was solved last, behind the rows of the core in its factor.

    ``residuals`` (m, t) are those before the step, ``step`` (m, t) the change of its weights in full, of which the
    machine took ``length``, and ``core_step`` that of the weights of the core.
    """

    block: slice
    n_core: int
    factor: BlockFactor
    residuals: np.ndarray
    step: np.ndarray
    core_step: np.ndarray
    length: float


class BlockRidge:
    """Weights a (n, t) and intercept b (t,) of the rows of the blocks so far.

    Parameters
    ----------
    kernel : BlockKernel
        Kernel values between all rows, in the order of the blocks; see ``block_kernel``.
    Y : ndarray of shape (n, t), float64
        Targets.
    row_weights : ndarray of shape (n,) or None
        Positive weights of the rows; None is 1 for all.
    alpha : float
        Strength of the penalty.
    intercept : ndarray of shape (t,)
        Intercept b. It stays as it is: kernels without a constant part of their own are lifted by one, see ``lift``.
    n_core : int, default=0
        Number of the first rows that are solved again with every block.
    is_lifted : bool, default=False
        Whether the kernel has no constant part of its own.
    lift : float, default=0.0
        The constant that is added to the values of such kernels; 0 before the first block.
    is_open : bool, default=False
        Whether the strength may fall where the rows of new blocks ask for it.
    starts : ndarray of shape (groups,) or None, default=None
        Ascending places of the first rows of groups, whose rows tell the same; None for single rows.
    hidden : ndarray of bool of shape (n,) or None, default=None
        See ``KernelRows``: the others tell nothing of a step, as they are not like rows to come.

    Attributes
    ----------
    weights : ndarray of shape (n, t)
        Weights a; 0 for the rows of blocks to come.
    n_seen : int
        Rows of the blocks so far.
    lengths : list of float
        Of each step whose successor's rows have come, the length that would have been best for them.
    step : ndarray of shape (core + m, t)
        The latest step over new rows, in full: the change of the weights of the core and of a block. It has no rows
        before the first such step.
    step_by_strength : ndarray of shape (core + m, t), or (core + m, 0)
        How much the step shrinks with the strength, -d step / d alpha. It has no columns if the strength is not open.
    """

    def __init__(
        self,
        kernel: BlockKernel,
        Y: np.ndarray,
        row_weights: np.ndarray | None,
        alpha: float,
        intercept: np.ndarray,
        n_core: int = 0,
        *,
        is_lifted: bool = False,
        lift: float = 0.0,
        is_open: bool = False,
        starts: np.ndarray | None = None,
        hidden: np.ndarray | None = None,
    ):
        self._starts, self._hidden = starts, hidden
        self._kernel, self._Y, self._row_weights, self._is_lifted = kernel, Y, row_weights, is_lifted
        self._core = np.arange(n_core)
        self.core_residuals = np.zeros((n_core, Y.shape[1]))
        self.alpha, self._intercept, self.lift = alpha, intercept, lift
        self.weights = np.zeros(Y.shape)
        self.n_seen = 0
        self.lengths: list[float] = []
        self.step = np.zeros((0, Y.shape[1]))
        self.step_by_strength = np.zeros((0, Y.shape[1] if is_open else 0))
        self._last: LatestBlock | None = None

    @property
    def intercept(self) -> np.ndarray:
        """Intercept of the outputs (t,)."""
        return self._intercept + self.lift * self.weights.sum(axis=0)

    def outputs(self, block: slice) -> np.ndarray:
        """Return the outputs (m, t) of the rows of a block, by all rows that have weights."""
        out = np.zeros((block.stop - block.start, self._Y.shape[1]))
        self._kernel.add_outputs(block, [(slice(0, self.n_seen), self.weights[: self.n_seen])], out)
        return out + self.intercept

    def change_of_outputs(self, places: slice) -> np.ndarray:
        """Return what the latest step adds to the outputs (m, t) of rows, but for the intercept."""
        latest, out = self._latest, np.zeros((places.stop - places.start, self._Y.shape[1]))
        by = [(slice(0, latest.n_core), latest.core_step), (latest.block, latest.step)]
        self._kernel.add_outputs(places, [(rows, latest.length * step) for rows, step in by if step.size], out)
        return out

    @property
    def length(self) -> float:
        """Length of the next step: the mean of those that were best so far; 1 before any is known."""
        return float(np.mean(self.lengths)) if self.lengths else 1.0

    def adopt(self, begun: Swept) -> None:
        """Go on from there: weights of the first rows, which were solved elsewhere together with the intercept."""
        self.n_seen = begun.weights.shape[0]
        self.weights[: self.n_seen], self.core_residuals[:] = begun.weights, begun.core_residuals
        self.lengths, self.step, self.step_by_strength = begun.lengths.tolist(), begun.step, begun.step_by_strength

    def learn(self, block: slice) -> np.ndarray:
        """Solve for the weights of a block, which follows the rows seen so far or is among them.

        Returns the outputs (m, t) of its rows by the machine before the step. The values of the kernel between the
        block and the core are those that are factorised.

        Raises
        ------
        DataError
            If no strength near alpha makes the block positive definite to rounding.
        """
        rows = factor_places(block, self._core.size)
        core = rows[: rows.size - (block.stop - block.start)]
        is_new = block.start == self.n_seen
        n_latest = max(0, self.step.shape[0] - core.size) if is_new else 0  # rows of the block before
        self._last = None
        factor = self._kernel.among(rows, None if self._row_weights is None else self._row_weights[rows])
        if self._is_lifted and not self.lift:
            self.lift = float(factor.diagonal.mean())
        if self.lift:
            factor.lift(self.lift)
        is_definite = factor.factorise(self.alpha)
        outputs, of_moves = self._outputs_and_moves(block, n_latest, core, factor)
        residuals = self._Y[block] - outputs - self._ridge(block) * self.weights[block]
        if n_latest:
            t = outputs.shape[1]
            left = self._left_at_best_length(residuals, of_moves[:, :t], block)
            if self._is_too_strong(left, of_moves[:, t:], block):
                is_definite = self._lower_strength(factor)
        before = np.vstack([self.core_residuals[: core.size], residuals])
        step, alpha = self._step(factor, is_definite, rows, before)
        length = self.length
        self.core_residuals = (1 - length) * before[: self._core.size] + length * self.core_residuals
        self.weights[rows] += length * step
        if is_new and core.size:
            self.step = step
            # A strength that rounding has raised says nothing of a lower one.
            self.step_by_strength = self._change_of_step(factor, rows, step if alpha == self.alpha else 0.0 * step)
        self.n_seen = max(self.n_seen, block.stop)
        self._last = LatestBlock(block, core.size, factor, residuals, step[core.size :], step[: core.size], length)
        return outputs

    def _outputs_and_moves(
        self, block: slice, n_latest: int, core: np.ndarray, factor: BlockFactor
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the outputs (m, t) of a block, and those of the latest step and of its change with the strength.

        ``n_latest`` are the rows of the block of that step, 0 if there was none.
        """
        t, middle = self._Y.shape[1], self.n_seen - n_latest
        moves = np.hstack([self.step, self.step_by_strength]) if n_latest else np.empty((core.size, 0))
        both = np.zeros((block.stop - block.start, t + moves.shape[1]))
        by = [(slice(core.size, middle), self.weights[core.size : middle])] if core.size < middle else []
        if n_latest:
            latest = np.hstack([self.weights[middle : self.n_seen], moves[core.size :]])
            by.append((slice(middle, self.n_seen), latest))
        self._kernel.add_outputs(block, by, both)
        if core.size:
            both += factor.outputs_by_first(np.hstack([self.weights[core], moves[core]]))
        outputs, of_moves = both[:, :t] + self._intercept, both[:, t:]
        if self.lift:  # of the other rows: values with the core have it
            outputs += self.lift * self.weights[core.size :].sum(axis=0)
            of_moves = of_moves + self.lift * moves[core.size :].sum(axis=0)
        return outputs, of_moves

    def _left_at_best_length(self, residuals: np.ndarray, of_step: np.ndarray, block: slice) -> np.ndarray:
        """Keep the length of the latest step that is best for the rows of a new block.

        Returns the residuals (m, t) that it would leave, times the length.
        """
        weights = self._weights_of_new(block)
        along = float(np.sum(weights * of_step * of_step))
        if along <= 0:
            return np.zeros_like(residuals)
        further = float(np.sum(weights * residuals * of_step)) / along
        best = self.length + further
        self.lengths.append(min(max(best, 0.0), 1.0))
        return max(best, 0.0) * (residuals - further * of_step)

    def _is_too_strong(self, left: np.ndarray, of_change: np.ndarray, block: slice) -> bool:
        """Whether squared errors of a new block, at the best length of the latest step, grow with the strength."""
        if not of_change.size or left.shape[0] < _FEWEST_ROWS:
            return False
        edges = self._edges_of_parts(block)
        if edges.size < _FEWEST_PARTS:
            return False
        weights = self._weights_of_new(block)
        slopes = (weights * left * of_change).sum(axis=1)
        parts = np.add.reduceat(slopes, edges)
        return bool(parts.mean() > _SURE * parts.std(ddof=1) / np.sqrt(parts.size))

    def _weights_of_new(self, block: slice) -> float | np.ndarray:
        """Return what rows of a new block, none of which was learned, count in the choice of length and strength."""
        weights = 1.0 if self._row_weights is None else self._row_weights[block, None]
        return weights if self._hidden is None else weights * self._hidden[block, None]

    def _edges_of_parts(self, block: slice) -> np.ndarray:
        """Return where parts of about equal size begin in a block; each has whole groups."""
        edges = np.linspace(block.start, block.stop, _PARTS, endpoint=False).astype(np.intp)
        if self._starts is not None:
            inside = self._starts[(self._starts >= block.start) & (self._starts < block.stop)]
            edges = inside[np.searchsorted(inside, edges[edges <= inside[-1]])]
        return np.unique(edges) - block.start

    def _lower_strength(self, factor: BlockFactor) -> bool:
        """Let the strength fall by half a decade, unless rounding allows no less; return whether there is a factor.

        The core, whose residuals that leaves, is solved by the next step.
        """
        lower, core = self.alpha / _HALF_DECADE, slice(self._core.size)
        if not factor.factorise(lower):
            return factor.factorise(self.alpha)
        before, self.alpha = self._ridge(core), lower
        self.core_residuals = self.core_residuals + (before - self._ridge(core)) * self.weights[core]
        return True

    def _change_of_step(self, factor: BlockFactor, rows: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Return -d step / d alpha for the rows of a block, by their factor; without columns if alpha stays."""
        if not self.step_by_strength.shape[1]:
            return np.empty((rows.size, 0))
        weighed = step if self._row_weights is None else step / self._row_weights[rows, None]
        change = factor.solve_for(weighed, 0)
        return np.zeros_like(step) if change is None else change

    def step_residuals(self, rows: slice) -> np.ndarray:
        """Return the residuals (m, t) of rows of the latest block after its step in full, alpha s_i / w_i."""
        own = self.weights[rows] if self._last is None else self._last.step[rows.start - self._last.block.start :]
        return np.asarray(self._ridge(rows) * own)

    def _ridge(self, rows: slice) -> float | np.ndarray:
        """Return alpha / w of rows."""
        return self.alpha if self._row_weights is None else self.alpha / self._row_weights[rows, None]

    def left_out(self, first: int) -> np.ndarray:
        """Return the residuals (m - first, t) of rows of the latest block after its step in full, each left out alone.

        They are those of rows from ``first`` on, and cost (m - first)^3 / 3 operations.
        """
        latest = self._latest
        diagonal = latest.factor.inverse_diagonal(latest.n_core + first)
        return np.asarray(latest.step[first:] / diagonal[:, None])

    def left_out_together(self, groups: Sequence[np.ndarray]) -> np.ndarray:
        """Return the residuals (m, t) of the latest block after its step in full, rows of a group left out together.

        ``groups`` are places in the block; NaN stands for rows that are in none.
        """
        latest, step = self._latest, self._latest.step
        out = np.full(step.shape, np.nan)
        residuals = latest.factor.of_inverse_blocks(
            [latest.n_core + group for group in groups], lambda k, inverse: np.linalg.solve(inverse, step[groups[k]])
        )
        for group, own in zip(groups, residuals, strict=True):
            out[group] = own
        return out

    def outputs_left_out(self, residuals: np.ndarray, first: int) -> np.ndarray:
        """Return the outputs (m - first, t) that go with residuals of rows that are left out of the step in full."""
        latest = self._latest
        rows = slice(latest.block.start + first, latest.block.stop)
        left = (1 - latest.length) * latest.residuals[first:] + latest.length * residuals
        return np.asarray(self._Y[rows] - left)

    def variances(self, groups: Sequence[np.ndarray]) -> np.ndarray:
        """Return the variances (m,) of the residuals of these groups when they are left out, as ``DualRidge`` does.

        ``groups`` are consecutive places that cover the latest block.
        """
        latest = self._latest
        return np.concatenate(
            latest.factor.of_inverse_blocks(
                [latest.n_core + group for group in groups], lambda k, inverse: np.linalg.inv(inverse).diagonal()
            )
        )

    @property
    def latest(self) -> slice | None:
        """The block that was solved last, whose rows can be left out; None before one, or if one was interrupted."""
        return None if self._last is None else self._last.block

    @property
    def _latest(self) -> LatestBlock:
        if self._last is None:
            raise ValueError("no block has been solved: call learn first.")
        return self._last

    def _step(
        self, factor: BlockFactor, is_definite: bool, rows: np.ndarray, residuals: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Return the step of the rows of the core and of a block by their factor, and the strength of the factor.

        Where a factor is not definite, or does not solve the residuals, one of a larger strength is made.
        ``core_residuals`` become those after the step.
        """
        for decades in range(_MOST_STRENGTHS):
            alpha = self.alpha * 10.0**decades
            if decades:  # a step with more noise than the problem has is shorter, and phi still falls
                is_definite = factor.factorise(alpha)
            step = factor.solve_for(residuals, STEPS) if is_definite else None
            if step is not None:
                core = slice(self._core.size)
                self.core_residuals = (10.0**decades - 1) * self._ridge(core) * step[core]
                return step, alpha
        raise DataError(
            Message(
                "{alpha=:g} is too small: the kernel matrix of rows {:,} to {:,} is singular to rounding. Use a larger "
                "one, {alpha='auto'} or {precision='float64'}.",
                self.alpha,
                rows[-1] + 1 - rows.size,
                rows[-1] + 1,
            )
        )


class Sweep:
    """A sweep over the blocks, and what it shows of the machine.

    ``begun`` is where it begins, with the first block solved at least; ``reached``, if given, is called with the state
    there and after each block. ``left_out`` are the outputs of the first block, each row left out alone, if it has just
    been solved. ``watch``, if given, ends it where more rows bring nothing; its rows are the last. ``growth`` are the
    rows and scores of machines of parts of the first block.

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
        watch: WatchedRows | None = None,
        growth: Sequence[tuple[int, float]] = (),
    ):
        self._watch, self._growth, self._standings = watch, growth, list[Standing]()
        n = rows.Y.shape[0]
        self._watched = slice(n - (0 if watch is None else watch.places.size), n)
        self._of_watched = np.zeros((0, rows.Y.shape[1]))  # outputs, but for the intercept
        self._machine, self._rows, self._progress, self._ends_at = machine, rows, progress, ends_at
        self._begun, self._reached, self._left_out_first = begun, reached, left_out
        self._blocks = [slice(int(a), int(b)) for a, b in pairwise(begun.borders)]
        self.held_out = np.full(rows.Y.shape, np.nan)
        self.held_out[: begun.held_out.shape[0]] = begun.held_out
        self.noise: np.ndarray | None = None
        self._scores = [(int(n), float(score)) for n, score in begun.scores]
        self._latest_seconds, self._latest_rows, self._most_seconds = 0.0, 1, 0.0

    def run(self) -> None:
        """Learn the blocks that are left, as far as there is time.

        Time of a limit that one sweep leaves goes into further ones, which come nearer to the exact solution. An
        interruption by the user (Ctrl-C) ends the sweep, not the fit. If there is a checkpoint it ends both, and the
        fit is resumed from there.
        """
        self._progress.stage("blocks", self._blocks[-1].stop)
        self._machine.adopt(self._begun)
        self._progress.advance(self._machine.n_seen)
        self._tell()
        try:
            if self._is_watching:
                self._of_watched = self._machine.outputs(self._watched) - self._machine.intercept
            verdict = self._verdict()
            for block in [block for block in self._blocks if block.start >= self._machine.n_seen]:
                if not verdict and self._has_time_for(block):
                    self._learn(block)
                    verdict = self._verdict()
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

    @property
    def _is_watching(self) -> bool:
        """Whether rows are watched, of which no block has come yet."""
        return self._watch is not None and self._machine.n_seen <= self._watched.start

    def _verdict(self) -> str:
        """Return why the sweep ends here, by its outputs for the watched rows; empty if it goes on."""
        machine, rows, watch, n_end = self._machine, self._rows, self._watch, self._blocks[-1].stop
        if watch is None or not self._is_watching or machine.n_seen == n_end:
            return ""
        outputs = self.held_out[self._watched] = self._of_watched + machine.intercept
        outputs = (outputs + rows.shift)[np.argsort(rows.order[self._watched])]
        outputs = outputs if rows.units is None else outputs * rows.units
        self._standings.append(watch.standing(outputs, machine.n_seen))
        verdict = watch.verdict(self._standings, n_end, self._growth)
        if verdict:
            self._progress.note(f"the sweep ends after {machine.n_seen:,} of {n_end:,} rows: {verdict}")
        return verdict

    def _sweep_again(self) -> None:
        """Learn all blocks again and again, while there is time; what was held out stays that of the first sweep."""
        for number in range(2, MOST_SWEEPS + 1):
            self._progress.stage(f"sweep {number}", self._machine.n_seen)
            for block in self._learned:
                if self._has_time_for(block, self._machine.n_seen):
                    self._machine.learn(block)
                    self._progress.advance(block.stop - block.start)

    def _tell(self) -> None:
        """Say where the sweep stands."""
        if self._reached is None:
            return
        machine, n = self._machine, self._machine.n_seen
        standing = replace(
            self._begun,
            lift=machine.lift,
            weights=machine.weights[:n],
            core_residuals=machine.core_residuals,
            lengths=np.array(machine.lengths),
            alpha=machine.alpha,
            step=machine.step,
            step_by_strength=machine.step_by_strength,
            held_out=self.held_out[:n],
            scores=np.array(self._scores).reshape(-1, 2),
        )
        self._reached(standing)

    def _learn(self, block: slice) -> None:
        """Learn a block, and keep the outputs of its rows by the machine before it."""
        began, n_seen, alpha = time.monotonic(), self._machine.n_seen, self._machine.alpha
        outputs = self.held_out[block] = self._machine.learn(block)
        if self._is_watching:
            self._of_watched += self._machine.change_of_outputs(self._watched)
        self._scores.append((n_seen, self._score(outputs, block)))
        self._latest_seconds, self._latest_rows = time.monotonic() - began, block.stop
        self._most_seconds = max(self._most_seconds, self._latest_seconds)
        self._progress.advance(block.stop - block.start)
        self._progress.scored(self._rows.score.name, self._scores[-1][1])
        self._progress.note(f"{n_seen:,} rows learned: {self._rows.score.name} {self._scores[-1][1]:.4f} of the next")
        if self._machine.alpha != alpha:
            self._progress.note(f"the strength falls to {self._machine.alpha:.3g}")

    def _score(self, outputs: np.ndarray, block: slice) -> float:
        return self._rows.score_if_any(outputs, block)

    def _has_time_for(self, block: slice, n_seen: int | None = None) -> bool:
        """Whether a block is expected to end within the limit, by the seconds of those before it.

        They grow with the rows. A block may also take as long as the longest, which was factorised with its successors.
        """
        if self._ends_at is None:
            return True
        seconds = max(self._most_seconds, self._latest_seconds * (n_seen or block.stop) / self._latest_rows)
        return time.monotonic() + seconds <= self._ends_at and self._machine.n_seen >= block.start

    def _leave_out(self) -> None:
        """Replace the outputs of the last rows by those of the machine of all other rows."""
        rows, n, block = self._rows, self._machine.n_seen, self._machine.latest
        if block is None and (self._left_out_first is None or n > self._begun.borders[1]):
            return
        first, groups = 0, None
        if block is None:
            self.held_out[:n] = self._left_out_first
            residuals = rows.Y[:n] - self.held_out[:n]
        elif rows.groups is None:
            first = max(block.start, n - LEFT_OUT_ROWS)
            residuals = self._machine.left_out(first - block.start)
        else:
            first = block.start
            groups = [group - first for group in rows.groups if first <= group[0] < n]
            residuals = self._machine.left_out_together(groups)
        last = slice(first, n)
        if block is not None:
            self.held_out[last] = self._machine.outputs_left_out(residuals, first - block.start)
        self._scores.append((n, self._score(self.held_out[last], last)))
        if rows.has_noise:
            self.noise = self._noise_of(last, residuals, groups)

    def _noise_of(self, last: slice, residuals: np.ndarray, groups: list[np.ndarray] | None) -> np.ndarray:
        """Return the variance of the noise (t,) by residuals of the last rows, left out alone or by group."""
        rows = self._rows
        weights = np.ones(residuals.shape[0]) if rows.weights is None else of_rows(rows.weights)[last]
        if groups is None:
            own = self._machine.step_residuals(last)
            factors = np.divide(residuals, own, out=np.ones_like(residuals), where=own != 0)
        else:
            factors = weights * self._machine.variances(groups) / self._machine.alpha
        scored = slice(None) if rows.hidden is None else np.flatnonzero(rows.hidden[last])
        counts = None if rows.counts is None else rows.counts[last][scored]
        return noise_of(residuals[scored], factors[scored], weights[scored], counts)

    @property
    def n_seen(self) -> int:
        """Rows that have been learned."""
        return self._machine.n_seen

    @property
    def _learned(self) -> list[slice]:
        """The blocks that were learned."""
        return [block for block in self._blocks if block.stop <= self._machine.n_seen]

    @property
    def block_rows(self) -> np.ndarray:
        """Rows of each block that was learned."""
        return np.array([block.stop - block.start for block in self._learned])

    @property
    def recent(self) -> np.ndarray:
        """See the class."""
        n = self._machine.n_seen
        first = min(b.start for b in self._blocks if b.start >= n / 2 or b.stop == n)
        places = np.arange(first, n)
        return places[~np.isnan(self.held_out[first:n]).all(axis=1)]

    @property
    def scores(self) -> list[tuple[int, float]]:
        """Rows learned from, and score of the next block, after each block."""
        return self._scores


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
            self.chosen = ChosenMachine(machine, begun.octaves, begun.held_out, begun.selection, is_open=begun.is_open)

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
            lift=begun.lift,
            is_open=begun.is_open,
            starts=None if rows.groups is None else np.array([group[0] for group in rows.groups]),
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
            step_by_strength=np.zeros((0, t if chosen.is_open else 0)),
            is_open=chosen.is_open,
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
