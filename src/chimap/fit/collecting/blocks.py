"""Keep rows in memory for machines that are solved block by block, where the kernel matrix of all rows does not fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import numpy as np

from chimap import _arrays
from chimap._memory import budget_for, format_bytes, room_in, whole_mebibytes
from chimap._messages import Message
from chimap._types import Scoring
from chimap._validation import DataError, MemoryBudgetError
from chimap.data.rows import RunningDigest
from chimap.engines import Engine, Progress, Stopwatch
from chimap.features.base import FittedFeatures
from chimap.features.scaled import Scale, ScaledFeatures, unscaled
from chimap.fit.automatic import BlockPlan, block_plan
from chimap.fit.blocks import can_sweep, core_rows
from chimap.fit.checkpoint import Standing
from chimap.fit.collecting.base import Collected, Request, Sample
from chimap.fit.collecting.kernel import CHUNK_ROWS, KernelCollector, order_of
from chimap.fit.passes import Passes
from chimap.fit.recipe import Recipe
from chimap.fit.rows import PreparedRows
from chimap.fit.solving import Learned
from chimap.moments import of_rows
from chimap.selection.learning_curve import LearningCurve
from chimap.solvers.base import Evidence, Needs
from chimap.solvers.kernel_matrix import KernelRows


@dataclass(frozen=True)
class BlocksCollector:
    """Read the rows once, each to its place in a random order in which the rows of a group are adjacent.

    Parameters
    ----------
    recipe : Recipe
        The settings.
    rows : PreparedRows
        The rows.
    order : array of shape (n,)
        Places in the source of the rows to learn from, in the order of the blocks.
    borders : array of shape (blocks + 1,)
        Where each block begins in that order, and the end of the last.
    groups : list of arrays, or None
        Places in that order of the rows that are left out together; None if each is left out alone.
    """

    needs: ClassVar[Needs] = "blocks"
    chunk_rows: ClassVar[int] = 0
    recipe: Recipe
    rows: PreparedRows
    order: np.ndarray
    borders: np.ndarray
    groups: list[np.ndarray] | None

    @classmethod
    def check(cls, request: Request) -> None:
        """Refuse what would need chunks or sums."""
        KernelCollector.check(request)

    @classmethod
    def planned(
        cls, recipe: Recipe, rows: PreparedRows, engine: Engine, standing: Standing | None, request: Request
    ) -> Self:
        """See ``Collector``."""
        source, weights = rows.source, rows.source.weights
        if not can_sweep(np.asarray(rows.codec.encode(rows.labels)), weights):
            raise DataError(
                Message(
                    "tasks with missing entries, or with a {class_weight} of their own, take one kernel matrix of all "
                    "{:,} rows, which {memory} does not hold. Use {features='landmarks'}, or fit the tasks one by one.",
                    source.n_rows,
                )
            )
        plan = block_plan(recipe.given, source, room_in(recipe.budget))
        if plan.n_bytes > room_in(recipe.budget):
            raise MemoryBudgetError(
                Message(
                    "{memory} of {} is too small for {:,} rows and a block of their kernel matrix: they take {}. Give "
                    "{memory=}, or use {features='landmarks'}.",
                    format_bytes(recipe.budget),
                    plan.n_rows,
                    format_bytes(budget_for(plan.n_bytes)),
                    whole_mebibytes(budget_for(plan.n_bytes)),
                )
            )
        if not plan.is_held:
            raise MemoryBudgetError(
                Message(
                    "{device=} has no room for {:,} dense mapped rows and a block of their kernel matrix. Use "
                    "{device='cpu'}, or {features='landmarks'}.",
                    recipe.device,
                    plan.n_rows,
                )
            )
        order, groups = order_of(rows.folds, source.n_rows, recipe.seed)
        begun = None if standing is None else standing.swept
        borders = _borders(plan, source.n_rows, groups) if begun is None else begun.borders
        n = int(borders[-1])
        if groups is not None:
            groups = [group for group in groups if group[0] < n]
        return cls(recipe, rows, order[:n], borders, groups)

    def sample(self, progress: Progress, standing: Standing | None) -> Sample:
        """Return the rows of the first block, with their weights, to fit map and gamma on."""
        if standing is not None:
            return Sample(None)
        places = self.order[: self.borders[1]]
        ascending = np.sort(places)
        rows = _arrays.take_rows(self.rows.take(ascending), np.searchsorted(ascending, places))
        weights = self.rows.source.weights
        return Sample(rows, None if weights is None else of_rows(weights[places]))

    def collect(self, passes: Passes, features: FittedFeatures, sample: Sample) -> Collected:
        """Read the rows to their places in the features, and return them with targets and score."""
        recipe, codec, y, source = self.recipe, self.rows.codec, self.rows.labels, self.rows.source
        scale = features.scale if isinstance(features, ScaledFeatures) else Scale()
        kept = unscaled(features)
        known = replace(
            passes.known, features=passes.known.features.take(slice(0))
        )  # for a checkpoint: no rows
        keeper = kept.keeper(self.order.size)
        place_of = np.full(source.n_rows, -1)
        place_of[self.order] = np.arange(self.order.size)
        seen = None if passes.checkpoint is None else RunningDigest()
        passes.progress.stage("reading", source.n_rows)
        with passes.clock("reading"):
            for chunk in source.chunks(CHUNK_ROWS):
                if seen is not None:
                    seen.add(chunk.X)
                places = place_of[chunk.start : chunk.start + chunk.X.shape[0]]
                chosen = np.flatnonzero(places >= 0)
                if chosen.size:
                    some = chunk.X if chosen.size == places.size else _arrays.take_rows(chunk.X, chosen)
                    prepared = self.rows.prepare(some, chunk.start + chosen, source.name)
                    keeper.put(places[chosen], scale.rows(prepared))
                passes.progress.advance(chunk.X.shape[0])
            keeper.close()
        weights = source.weights
        rows = KernelRows(
            kept, self.order, self.groups, np.asarray(codec.encode(y[self.order]), dtype=np.float64), codec.shift,
            None if weights is None else weights[self.order], codec.score(y, recipe.scoring, weights), recipe.dtype,
            self.rows.unit, self.rows.has_rare, codec.has_noise, codec.units,
            None if source.counts is None else source.counts[self.order],
        )  # fmt: skip
        standing, digest = passes.standing, "" if seen is None else seen.result()
        if standing is not None:
            standing.check_rows(digest, source.name)
        evidence = Evidence(
            kernel=rows, borders=self.borders, n_rows=source.n_rows, device=recipe.device, seed=recipe.seed,
            begun=None if standing is None else standing.swept,
            reached=None if passes.checkpoint is None else partial(passes.swept, known, digest),
            hold=getattr(passes.engine, "hold", None),
        )  # fmt: skip
        return Collected(evidence)

    def curve(
        self, collected: Collected, learned: Learned, shown: Scoring, clock: Stopwatch
    ) -> LearningCurve | None:
        """Return the curve of the blocks that were predicted before they were learned."""
        return learned.curve


def _borders(plan: BlockPlan, n_rows: int, groups: list[np.ndarray] | None) -> np.ndarray:
    """Return where blocks begin, and the end of the last; no group is divided.

    The first has the rows of a factor, and the others, of about the same size, those that the core leaves of one.
    Raises DataError for a group that is larger than a block.
    """
    n, first = min(n_rows, plan.n_rows), plan.block_rows
    most = first - core_rows(first)
    if groups is None:
        later = np.linspace(first, n, -(-(n - first) // most) + 1) if n > first else np.array([n])
        return np.concatenate([[0], later.round()]).astype(np.intp)
    ends = np.array([group[-1] + 1 for group in groups])
    largest = max(group.size for group in groups)
    if largest > most:
        raise DataError(
            Message(
                "the largest of {groups} has {:,} rows, and {memory} holds a block of {:,}. Give more memory, or use "
                "{features='landmarks'}.",
                largest,
                most,
            )
        )
    chosen = [0]
    while chosen[-1] < n:
        within = ends[(ends > chosen[-1]) & (ends <= chosen[-1] + (most if chosen[-1] else first))]
        chosen.append(int(within[-1]))
        if chosen[-1] == ends[-1]:
            break
    return np.array(chosen, dtype=np.intp)
