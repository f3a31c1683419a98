"""Run a fit from beginning to end.

``fit`` is the trunk of the package: every estimator that learns from a source of rows ends up here, with a ``Recipe``
of checked settings. It plans the memory (``fit.plan``), draws a sample and learns the features on it, passes over all
rows chunk by chunk (``fit.passes``: principal components first, if asked for; then sums of features and targets), and
hands the sums to the objective (``fit.solving``), which chooses the strength and solves for the weights. A fit that
keeps every row (``features="exact"``) branches off to ``fit.in_rows``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np

from chimap import _arrays
from chimap._types import Rows, Scoring
from chimap._validation import check_width
from chimap.backends import check_device, on_host
from chimap.backends.base import HostSums, RowFeatures
from chimap.data import Source
from chimap.engines import Engine, Progress, Stopwatch, chunk_rows_within
from chimap.engines.keeping import KeepingPass
from chimap.engines.local import LocalEngine, Pass, Reached, Work
from chimap.engines.memory import FIRST_ROWS
from chimap.engines.rows import ReplayedRows
from chimap.explain import mean_and_deviation
from chimap.features.blocks import BlockMoments, PrincipalFeatures
from chimap.fit.checkpoint import Checkpoint, Standing
from chimap.fit.in_rows import check_in_rows, fit_in_rows
from chimap.fit.learning_curve import learning_curve, planned
from chimap.fit.passes import component_pass, empty_moments, learning_pass, rounded, witnesses_of
from chimap.fit.plan import Plan, keeping_job, room_for
from chimap.fit.recipe import Objective, Recipe
from chimap.fit.result import FitResult, HeldOutRows, Known
from chimap.fit.rows import PreparedRows
from chimap.moments import PCA, DealtFolds, FoldMoments, Moments, RowFolds, RowWeights
from chimap.moments.kept import KeptFeatures
from chimap.selection.base import USUAL_FOLDS
from chimap.selection.learning_curve import nested
from chimap.selection.tried import TRIED_ROWS
from chimap.solvers.base import Evidence


def fit(
    recipe: Recipe,
    source: Source,
    engine: Engine,
    progress: Progress,
    *,
    unlabelled: Source | None = None,
    checkpoint: Checkpoint | None = None,
    clock: Stopwatch | None = None,
    groups: np.ndarray | None = None,
    has_curve: bool = False,
    shown: Scoring = None,
) -> FitResult:
    """Learn features and weights from a source of rows.

    Parameters
    ----------
    recipe : Recipe
        The checked settings.
    source : Source
        The rows and their labels or targets.
    engine : Engine
        Where chunks of rows are processed.
    progress : Progress
        Informed of the stages and of each step within them.
    unlabelled : Source or None, default=None
        Rows without targets. They contribute to the principal components only.
    checkpoint : Checkpoint or None, default=None
        The file to write the state of the fit to, and to resume from if it exists.
    clock : Stopwatch or None, default=None
        Collects the seconds of each stage.
    groups : array of shape (n,) or None, default=None
        The group of each row; the rows of a group are held out together.
    has_curve : bool, default=False
        Whether to keep the sums in parts that give a learning curve, if the memory budget allows it.
    shown : str, callable or None, default=None
        The score that the learning curve shows; None for accuracy or R^2.

    Returns
    -------
    FitResult
        Features, weights and what was learned beside them.

    Raises
    ------
    ValueError
        If settings contradict each other (see ``check_request``).
    DataError
        If the rows or targets cannot be used, or the checkpoint belongs to another fit.
    MemoryBudgetError
        If the memory budget is too small.
    """
    clock = clock or Stopwatch()
    sources = [source] if unlabelled is None else [source, unlabelled]
    is_local = isinstance(engine, LocalEngine)
    check_request(
        recipe.objective, recipe.device, recipe.n_principal,
        is_local=is_local, has_checkpoint=checkpoint is not None, has_unlabelled=unlabelled is not None,
    )  # fmt: skip
    if recipe.keeps_rows:
        check_in_rows(
            recipe, is_local=is_local, has_checkpoint=checkpoint is not None,
            has_unlabelled=unlabelled is not None,
        )  # fmt: skip
        return fit_in_rows(recipe, source, progress, clock, groups)
    for joined in sources[1:]:
        check_width(np.empty((0, joined.n_features)), sources[0].n_features, recipe.estimator)
    with clock("sample"):
        progress.stage("sampling", None)
        standing = None if checkpoint is None else checkpoint.open(recipe, sources)
        codec = recipe.codec.of(source.labels()) if standing is None else standing.known.codec
        recipe = recipe if standing is None else recipe.with_seed(standing.known.seed)
        parts = recipe.design.parts(source.n_features)
        preparation = recipe.preparation(parts)
        folds = recipe.holding.folds(source.n_rows, source.labels(), groups, recipe.seed)
        rows = PreparedRows(source, preparation, codec, folds, recipe.seed)
        may_keep = engine.can_keep and checkpoint is None
        recipe, rows, plan = planned(recipe, rows, engine, standing, may_keep=may_keep, has_curve=has_curve)
        places = _witnessed(recipe, rows, plan)
        sample, seen = rows.sample_beside(places) if standing is None else (None, None)
    known = standing.known if standing is not None else _learn_features(recipe, rows, sample, clock, progress)
    first = None if sample is None else _arrays.take_rows(sample, slice(FIRST_ROWS)).copy()
    del sample  # from here on only the first rows are needed
    passes = _Passes(recipe, rows, sources, known, plan, engine, checkpoint, clock, progress)
    principal = passes.components(standing, first)
    features: Any = known.features if principal is None else PrincipalFeatures(known.features, principal)
    keeps = recipe.objective.needs == "features"
    if keeps:
        evidence = passes.keep(features, first)
    else:
        evidence = passes.learn(features, first, standing, principal)
        seen = rows.take(places) if seen is None and places.size else seen
        evidence = passes.with_rows(evidence, features, places, seen)
    learned = recipe.objective.learn(evidence, features, clock, progress)
    curve = None
    if has_curve or passes.sums:
        with clock("learning curve"):
            curve = learning_curve(recipe, rows, evidence, learned, passes.sums, shown)
    coef, intercept = learned.solution.coef, learned.solution.intercept
    if principal is not None:
        coef, intercept = features.folded(coef, intercept)
    return FitResult(
        known, learned, coef, intercept, passes.shift, source.n_features, clock.seconds, plan.chunk_rows,
        HeldOutRows.of(learned.held_out, rows.labels, source.weights), curve,
    )  # fmt: skip


def _witnessed(recipe: Recipe, rows: PreparedRows, plan: Plan) -> np.ndarray:
    """Return the places of the rows to compute held-out outputs for; none where the solver keeps all rows."""
    if recipe.objective.needs == "features":
        return np.zeros(0, dtype=np.intp)
    return rows.witnesses(plan.job.n_features, recipe.dtype.itemsize, recipe.budget)


def _learn_features(
    recipe: Recipe, rows: PreparedRows, sample: Any, clock: Stopwatch, progress: Progress
) -> Known:
    """Learn the features on the sample, together with all else that precedes the passes."""
    with clock("map"):
        features = recipe.design.fit(sample, recipe.seed)
    features, attributes = recipe.design.learn(features, recipe, rows, sample, clock, progress)
    return Known(recipe.seed, rows.codec, features, mean_and_deviation(sample) | attributes)


def check_request(
    objective: Objective,
    device: str,
    n_principal: int | Sequence[int] | None,
    *,
    is_local: bool,
    has_checkpoint: bool,
    has_unlabelled: bool,
) -> None:
    """Raise ValueError for settings that cannot be combined."""
    check_device(device)
    keeps = objective.needs == "features"
    if not on_host(device) and (has_checkpoint or not is_local):
        raise ValueError(
            f"device={device!r} keeps its moments on the device: use engine='local' and no checkpoint."
        )
    if keeps and has_checkpoint:
        raise ValueError(
            "loss='hinge' keeps the features of all rows in memory and cannot write a checkpoint."
        )
    if keeps and not is_local:
        raise ValueError(
            "loss='hinge' keeps the features of all rows in the memory of one process: use engine='local', or "
            "loss='squared_hinge', whose passes run on the workers."
        )
    if has_unlabelled and n_principal is None:
        raise ValueError("unlabelled rows contribute to principal components only: give n_principal.")


@dataclass
class _Passes:
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
    sums: list[Moments] = field(
        default_factory=list
    )  # moments of more and more rows; the last one has all of them

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
        advance, asked = self.progress.advance, recipe.holding.asked
        return Evidence(moments, replayable, None, recipe.device, recipe.seed, advance, asked)

    def with_rows(
        self, evidence: Evidence, features: RowFeatures, places: np.ndarray, seen: Rows | None
    ) -> Evidence:
        """Return the evidence with the features of witnesses and of the rows that help choose the strength.

        Witnesses, whose held-out outputs are wanted, are the prepared rows ``seen`` at ``places`` of the source. Where
        the plan has room (``n_tried``), the strength is also scored on them, on other rows of a fixed number, or, for
        ``selection="holdout"``, on rows of the fold that is held out.
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
            wanted = rows.held_out(n_tried) if recipe.holding.asked == "holdout" else rows.beside(TRIED_ROWS)
            is_there = witnesses is not None and np.array_equal(wanted, places)
            scored = witnesses if is_there else make(wanted, rows.take(wanted), needs_folds)
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
