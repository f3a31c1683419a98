"""The passes of a fit over its rows: sums about a provisional mean, computed on this machine or a device.

``fit.fit`` makes one ``Passes`` and calls its methods in turn: ``components`` if principal components are asked for,
then ``learn`` (sums of features and targets, fold by fold) or ``keep`` (the features of all rows in memory), then
``with_rows`` (features of the rows that scores and held-out outputs need). Their result is the ``Evidence`` that a
solver finds the weights from. The functions below make the empty sums and the work of a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.backends import backend_of
from chimap.backends.base import BlockedFeatures, HostSums, Keep, RowFeatures, Sums
from chimap.data import Source
from chimap.engines import Engine, Progress, Stopwatch, chunk_rows_within
from chimap.engines.keeping import KeepingPass
from chimap.engines.local import Pass, Reached, Work, no_targets
from chimap.engines.memory import FIRST_ROWS
from chimap.engines.rows import ReplayedRows
from chimap.features.principal import BlockMoments
from chimap.features.rounded import RoundedFeatures
from chimap.fit.checkpoint import Checkpoint, Standing
from chimap.fit.plan import Plan, keeping_job, room_for
from chimap.fit.recipe import Recipe
from chimap.fit.result import Known
from chimap.fit.rows import PreparedRows, features_by_pieces
from chimap.moments import PCA, DealtFolds, FoldMoments, Moments, RowFolds, RowWeights, provisional_mean
from chimap.moments.kept import KeptFeatures
from chimap.selection.base import USUAL_FOLDS
from chimap.selection.learning_curve import nested
from chimap.selection.tried import TRIED_ROWS
from chimap.solvers.base import Evidence
from chimap.solvers.held_out import Witnesses


def first_mean(features: RowFeatures, rows: Rows, dtype: np.dtype) -> np.ndarray:
    """Return the provisional mean (D,) of the features, computed from the first of the prepared rows."""
    first = _arrays.take_rows(rows, slice(FIRST_ROWS))
    Z = np.empty((first.shape[0], features._n_features_out), dtype=dtype)
    features.features_into(first, Z)
    return provisional_mean(Z)


def empty_moments(
    features: RowFeatures,
    rows: Rows,
    n_folds: int,
    target_shift: np.ndarray,
    dtype: np.dtype,
    is_rounded: bool = False,
) -> FoldMoments:
    """Return moments without rows, whose shift is the mean feature of the first of ``rows``."""
    shift = first_mean(features, rows, dtype)
    return FoldMoments(n_folds, shift.size, target_shift.size, shift, target_shift, dtype, is_rounded)


def learning_pass(
    recipe: Recipe,
    rows: PreparedRows,
    features: RowFeatures,
    moments: FoldMoments,
    clock: Stopwatch,
    keep: Keep | None = None,
) -> Pass[Sums]:
    """Return the pass that adds up features and targets of the rows, fold by fold."""
    features = rounded(recipe, features, moments.shift)
    sums = backend_of(recipe.device).sums(features, moments, keep)
    return Pass(rows.prepare, rows.codec.encode, sums, rows.folds, clock, rows.weights)


def component_pass(
    recipe: Recipe, rows: PreparedRows, features: BlockedFeatures, moments: BlockMoments, clock: Stopwatch
) -> Pass[Sums]:
    """Return the pass that adds up the features of each block of columns, without targets."""
    sums = backend_of(recipe.device).block_sums(features, moments, recipe.dtype)
    return Pass(rows.prepare, no_targets, sums, DealtFolds(1, rows.seed), clock, rows.weights)


def rounded(recipe: Recipe, features: RowFeatures, shift: np.ndarray) -> RowFeatures:
    """Return the features as they are added up: rounded to bfloat16 if the recipe says so."""
    return RoundedFeatures(features, shift) if recipe.is_rounded else features


def witnesses_of(
    recipe: Recipe,
    rows: PreparedRows,
    features: RowFeatures,
    moments: FoldMoments,
    places: np.ndarray,
    seen: Rows,
    needs_folds: bool,
) -> Witnesses:
    """Return features and targets, less the shifts of the moments, of the rows ``seen`` at ``places`` of the source."""
    Z = np.empty((places.size, moments.shift.size), dtype=recipe.dtype)
    features_by_pieces(rounded(recipe, features, moments.shift), seen, Z, moments.shift)
    folds = np.zeros(places.size, dtype=np.intp)
    if needs_folds and rows.n_folds > 1:
        folds = rows.folds(0, rows.source.n_rows)[places]
    Y = np.asarray(rows.codec.encode(rows.labels[places]), dtype=np.float64)
    weights = rows.source.weights
    return Witnesses(places, Z, Y, folds, None if weights is None else weights[places])


@dataclass
class Passes:
    """The passes over the rows, each resumed from a checkpoint where there is one.

    ``shift`` is the shift of rounded features, set by ``learn`` or ``keep``.
    """

    recipe: Recipe
    rows: PreparedRows
    sources: list[Source]
    known: Known
    plan: Plan
    engine: Engine
    checkpoint: Checkpoint | None
    clock: Stopwatch
    progress: Progress
    shift: np.ndarray | None = None
    # Moments of more and more rows; the last of them has all rows.
    sums: list[Moments] = field(default_factory=list)

    def components(self, standing: Standing | None, first: Any) -> Sequence[PCA] | None:
        """Return the principal components of each block, from a separate pass over all sources; None without any."""
        if self.recipe.most_principal is None:
            return None
        if standing is not None and standing.principal is not None:
            return standing.principal
        features = self.known.features
        moments = BlockMoments(standing.moments) if standing else BlockMoments.about(features, first)
        work = component_pass(self.recipe, self.rows, features, moments, self.clock)
        place, next_row = (0, 0) if standing is None else (standing.place, standing.next_row)
        for i in range(place, len(self.sources)):
            work = replace(work, weights=RowWeights(self.sources[i].weights))
            self._run(work, self.sources[i], "components", next_row if i == place else 0, i, None)
        work.finish()
        most, device = self.recipe.most_principal, self.recipe.device
        with self.clock("components"):
            return [PCA.of(block, min(most, block.n_features), device) for block in work.moments.blocks]

    def learn(
        self,
        features: RowFeatures,
        first: Any,
        standing: Standing | None,
        principal: Sequence[PCA] | None,
    ) -> Evidence:
        """Add up the moments of each fold and, for losses that pass over the rows again, keep a way to do so."""
        recipe, rows = self.recipe, self.rows
        with self.clock("map"):
            if standing is not None and standing.stage == "learning":
                moments = FoldMoments.of(standing.moments, recipe.dtype, recipe.is_rounded)
                next_row = standing.next_row
            else:
                first = rows.sample() if first is None else first
                moments, next_row = empty_moments(
                    features, first, rows.n_folds, rows.codec.shift, recipe.dtype, recipe.is_rounded
                ), 0  # fmt: skip
        self.shift = moments.shift if recipe.is_rounded else None
        kept = room_for(self.plan.job, moments, rows.folds, recipe.dtype)
        work = learning_pass(recipe, rows, features, moments, self.clock, None if kept is None else kept.put)
        self._run(work, rows.source, "learning", next_row, 0, principal)
        work.finish()
        moments.release_buffers()
        if rows.folds.n_held < rows.n_folds:
            self.sums = nested(moments)
            moments = FoldMoments.of(self.sums[-1:], recipe.dtype, recipe.is_rounded)
        replayable = None
        if recipe.objective.needs == "rows":
            replayable = kept or ReplayedRows(
                cast("Pass[HostSums]", work), rows.source, self.plan.chunk_rows, self.engine
            )
        advance, selection = self.progress.advance, recipe.holding.asked
        return Evidence(moments, replayable, None, recipe.device, recipe.seed, advance, selection)

    def with_rows(
        self, evidence: Evidence, features: RowFeatures, places: np.ndarray, seen: Rows | None
    ) -> Evidence:
        """Return the evidence with the features of witnesses and of the rows that help choose the strength.

        Witnesses are the rows to compute held-out outputs for: the prepared rows ``seen`` at ``places`` of the source.
        Where the plan has room (``n_tried``), rows whose score helps choose the strength are added. For
        ``selection="holdout"`` these are rows of the fold that is held out, and else a fixed number of rows that
        resemble unseen ones (the witnesses themselves, if they are the same rows).
        """
        recipe, rows, moments = self.recipe, self.rows, evidence.moments
        if moments is None:
            return evidence
        needs_folds, n_tried = recipe.objective.needs == "rows", self.plan.job.n_tried
        make = partial(witnesses_of, recipe, rows, features, moments)
        with self.clock("held out"):
            witnesses = None if seen is None else make(places, seen, needs_folds)
            if not n_tried:
                return replace(evidence, witnesses=witnesses)
            # The number of scored rows is independent of the budget, which would otherwise influence the choice.
            scored_places = (
                rows.held_out(n_tried) if recipe.holding.asked == "holdout" else rows.beside(TRIED_ROWS)
            )
            is_there = witnesses is not None and np.array_equal(scored_places, places)
            scored = witnesses if is_there else make(scored_places, rows.take(scored_places), needs_folds)
        tried = None if scored is None else rows.tried(scored, recipe.scoring)
        return replace(evidence, witnesses=witnesses, tried=tried)

    def keep(self, features: RowFeatures, first: Any) -> Evidence:
        """Keep the features of all rows in memory, for solvers that need them there."""
        recipe, rows = self.recipe, self.rows
        self.shift = np.zeros(features._n_features_out) if recipe.is_rounded else None
        features = rounded(recipe, features, np.zeros(features._n_features_out))
        job = keeping_job(self.plan.job, rows.source, first, features, recipe.objective)
        kept = KeptFeatures(_folds_kept(rows), rows.codec.shift)
        work = KeepingPass(
            rows.prepare, features, rows.codec.encode, kept, self.clock, job.is_sparse, rows.weights
        )
        chunk_rows = chunk_rows_within(job, recipe.budget)
        self.engine.run(work, rows.source, chunk_rows, self.progress, "learning", 0, lambda work, row: None)
        return Evidence(None, None, kept, recipe.device, recipe.seed, self.progress.advance)

    def _run(
        self, work: Work, source: Source, stage: str, first: int, place: int, principal: Sequence[PCA] | None
    ) -> None:
        reached = self._reached(stage, place, principal)
        self.engine.run(work, source, self.plan.chunk_rows, self.progress, stage, first, reached)

    def _reached(self, stage: str, place: int, principal: Sequence[PCA] | None) -> Reached:
        """Return the callback for the end of a chunk, which writes the checkpoint if it is due."""

        def reached(work: Work, next_row: int) -> None:
            if self.checkpoint is not None:
                standing = Standing(
                    stage, place, next_row, self.plan.chunk_rows, work.moments.parts, principal, self.known
                )
                with self.clock("checkpoint"):
                    self.checkpoint.reached(self.recipe, self.sources, standing)

        return reached


def _folds_kept(rows: PreparedRows) -> RowFolds:
    """Return the folds of kept features; there are folds to hold out even where nothing is to be chosen."""
    n_folds = min(USUAL_FOLDS, rows.source.n_rows // 2)
    return rows.folds if rows.n_folds > 1 or n_folds < 2 else DealtFolds(n_folds, rows.seed)
