"""Collect sums of features and targets, fold by fold: what ridge is solved from.

Losses that are minimised by passes over the rows take a way to read the rows again besides (``ReplayedCollector``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self, cast

import numpy as np

from chimap import _arrays
from chimap._types import Rows, Scoring
from chimap._validation import MemoryBudgetError
from chimap.backends.base import HostSums, Keep, Sums
from chimap.engines import Job, Progress, Stopwatch
from chimap.engines.local import Pass
from chimap.engines.memory import FIRST_ROWS
from chimap.engines.rows import ReplayedRows
from chimap.features.base import FittedFeatures
from chimap.fit.checkpoint import SavedState
from chimap.fit.collecting.base import Collected, Collector, FitRun, Passes, Sample
from chimap.losses import FeatureRows
from chimap.machines.base import Plan, Request
from chimap.machines.jobs import PassPlan, planned_job, room_for
from chimap.machines.method import Method
from chimap.machines.rows import PreparedRows, features_by_pieces
from chimap.moments import DoublingParts, FoldMoments, Moments, RowFolds, provisional_mean
from chimap.selection.choose import ChosenSolution
from chimap.selection.learning_curve import LearningCurve, curve_of, growing, nested, score_growing, score_if_any
from chimap.solvers.base import Evidence, Needs
from chimap.solvers.held_out import SCORED_ROWS, ScoredRows, ValidationRows
from chimap.solvers.ridge import Factor

DOUBLING_ROWS = 240  # a learning curve of fewer rows is not worth its parts
_MEASURED = 50  # rows to score at least

Replay = Callable[[Pass[Sums]], FeatureRows | None]
"""Returns the rows of a pass in a form that can be read again, or None."""


@dataclass(frozen=True)
class SumsCollector(Collector):
    """Add up the moments of each fold in one pass over the rows.

    Parameters
    ----------
    method : Method
        The settings.
    rows : PreparedRows
        The rows, with the folds whose moments are kept separately.
    plan : PassPlan
        Its sizes include the rows whose score helps choose the strength (``n_scored``), if there is room for them.
    has_curve : bool, default=False
        Whether a learning curve is wanted.
    """

    needs: ClassVar[Needs] = "moments"
    method: Method
    rows: PreparedRows
    plan: PassPlan
    has_curve: bool = False

    @property
    def chunk_rows(self) -> int:
        return self.plan.chunk_rows

    @classmethod
    def planned(cls, method: Method, plan: Plan, rows: PreparedRows, run: FitRun, saved: SavedState | None) -> Self:
        """See ``Collector``.

        For a learning curve, the sums of some parts of the rows are kept separately if no folds are held out to
        choose and the budget allows it. A resumed fit keeps the folds that it began with.
        """
        over = partial(cls._over, method, rows, run, saved)
        begun = None if saved is None or saved.stage != "learning" else len(saved.moments)
        parts = DoublingParts(rows.seed)
        if rows.n_folds == 1 and begun == parts.n_folds:
            return over(parts)
        if begun is None and rows.n_folds == 1 and run.request.has_curve and rows.source.n_rows >= DOUBLING_ROWS:
            try:
                return over(parts)
            except MemoryBudgetError:
                pass  # the model comes first: do without the curve
        return over(rows.folds)

    @classmethod
    def _over(cls, method: Method, rows: PreparedRows, run: FitRun, saved: SavedState | None, folds: RowFolds) -> Self:
        """Plan the sums of these folds."""
        rows = replace(rows, folds=folds)
        jobs = cls._jobs(planned_job(method, rows, run.engine), method, rows, run.request)
        begun = None if saved is None else saved.chunk_rows
        return cls(method, rows, PassPlan.of_first(jobs, method.recipe.budget, begun), run.request.has_curve)

    @classmethod
    def _jobs(cls, job: Job, method: Method, rows: PreparedRows, request: Request) -> list[Job]:
        """Return the sizes to try in turn: with rows that help choose the strength, and without them."""
        trying = replace(job, n_scored=min(SCORED_ROWS, rows.source.n_rows))
        if method.holding.asked == "holdout":
            return [trying]
        return [trying, job] if method.holding.asked == "gcv" else [job]

    def sample(self, progress: Progress, saved: SavedState | None) -> Sample:
        progress.stage("sampling", None)
        places = self.rows.validation(
            self.plan.job.n_features, self.method.recipe.dtype.itemsize, self.method.recipe.budget
        )
        if saved is not None:
            return Sample(None, None, places)
        rows, others = self.rows.sample_and(places)
        return Sample(rows, None, places, others)

    def collect(self, passes: Passes, features: FittedFeatures, sample: Sample) -> Collected:
        """Add up the moments, and compute the features of the rows that scores and held-out outputs need."""
        moments, next_row = self._begun(passes, features, sample.rows)
        keep, replay = self._replaying(passes, moments)
        run, rows = passes.run, self.method.summed(self.rows)
        work = self.method.learning_pass(rows, features, moments, run.clock, keep)
        reached = passes.reached("learning")
        run.engine.run(work, rows.source, passes.chunk_rows, run.progress, "learning", next_row, reached)
        work.finish()
        if not all(np.isfinite(part.scatter_diagonal()).all() for part in moments.parts):
            raise passes.overflow(features)
        moments.release_buffers()
        sums: list[Moments] = []
        if not self.rows.folds.n_held:
            sums = nested(moments)
            moments = FoldMoments.of(sums[-1:], self.method.recipe.dtype)
        evidence = Evidence(
            moments,
            replay(work),
            device=self.method.recipe.device,
            seed=self.method.recipe.seed,
            progress=run.progress,
            asked=self.method.holding.asked,
            unit=self.rows.unit,
            held_folds=self.rows.folds_to_hold_out(sample.places),
        )
        with run.clock("held out"):
            validation, scored_rows = validation_and_scored_rows(
                self.method, self.rows, features, moments, sample.places, sample.others, self.plan.job.n_scored
            )
        return Collected(replace(evidence, validation=validation, scored_rows=scored_rows), sums)

    def _begun(self, passes: Passes, features: FittedFeatures, first: Rows | None) -> tuple[FoldMoments, int]:
        """Return the moments so far, and the first row that they do not contain."""
        method, rows, saved = self.method, self.rows, passes.saved
        with passes.run.clock("map"):
            if saved is not None and saved.stage == "learning":
                return FoldMoments.of(saved.moments, method.recipe.dtype), saved.next_row
            first = rows.sample() if first is None else first
            moments = empty_moments(features, first, rows.n_folds, rows.codec.shift, method.recipe.dtype)
            return moments, 0

    def _replaying(self, passes: Passes, moments: FoldMoments) -> tuple[Keep | None, Replay]:
        """Return what the pass does with the features of each chunk, and how rows are read again after it."""
        return None, lambda work: None

    def curve(
        self, collected: Collected, chosen: ChosenSolution, shown: Scoring, clock: Stopwatch
    ) -> LearningCurve | None:
        """Return the scores of ridge on the sums of more and more rows, if they are wanted or at hand."""
        if not self.has_curve and not collected.sums:
            return None
        with clock("learning curve"):
            return learning_curve(self.method, self.rows, collected.evidence, chosen, collected.sums, shown)


@dataclass(frozen=True)
class ReplayedCollector(SumsCollector):
    """Add up moments, and keep the features of all rows for further passes if they fit in the memory.

    If they do not fit, each pass reads the rows and computes their features again.
    """

    needs: ClassVar[Needs] = "rows"

    @classmethod
    def _jobs(cls, job: Job, method: Method, rows: PreparedRows, request: Request) -> list[Job]:
        """Return the sizes with the features of all rows, where this process may keep them, and those without.

        It may not if a checkpoint is written: a resumed fit has not computed the features of its first rows.
        """
        without = super()._jobs(job, method, rows, request)
        if not request.can_keep or request.has_checkpoint:
            return without
        return [replace(job, n_kept=job.n_rows, kept_itemsize=job.itemsize), *without]

    def _replaying(self, passes: Passes, moments: FoldMoments) -> tuple[Keep | None, Replay]:
        kept = room_for(self.plan.job, moments, self.rows.folds, self.method.recipe.dtype)

        def replay(work: Pass[Sums]) -> FeatureRows:
            if kept is not None:
                return kept
            return ReplayedRows(cast("Pass[HostSums]", work), self.rows.source, self.plan.chunk_rows, passes.run.engine)

        return None if kept is None else kept.put, replay


# --- sums, and rows that are scored


def empty_moments(
    features: FittedFeatures, rows: Rows, n_folds: int, target_shift: np.ndarray, dtype: np.dtype
) -> FoldMoments:
    """Return moments without rows, whose shift is the mean feature of the first of ``rows``."""
    first = _arrays.take_rows(rows, slice(FIRST_ROWS))
    Z = np.empty((first.shape[0], features._n_features_out), dtype=dtype)
    features.features_into(first, Z)
    shift = provisional_mean(Z)
    return FoldMoments(n_folds, shift.size, target_shift.size, shift, target_shift, dtype)


def validation_rows_of(
    method: Method, rows: PreparedRows, features: FittedFeatures, moments: FoldMoments, places: np.ndarray, seen: Rows
) -> ValidationRows:
    """Return features and targets, less the shifts of the moments, of the rows ``seen`` at ``places`` of the source."""
    Z = np.empty((places.size, moments.shift.size), dtype=method.recipe.dtype)
    features_by_pieces(features, seen, Z, moments.shift)
    Y = np.asarray(rows.codec.encode(rows.labels[places]), dtype=np.float64)
    weights, counts = (None if part is None else part[places] for part in (rows.source.weights, rows.source.counts))
    return ValidationRows(
        places,
        Z,
        Y,
        rows.folds(0, rows.source.n_rows)[places],
        weights,
        rows.shares(places),
        rows.leaves_folds,
        rows.reserved(places),
        counts,
    )


def validation_and_scored_rows(
    method: Method,
    rows: PreparedRows,
    features: FittedFeatures,
    moments: FoldMoments,
    places: np.ndarray,
    seen: Rows | None,
    n_scored: int,
) -> tuple[ValidationRows | None, ScoredRows | None]:
    """Return the rows to compute held-out outputs for, and the rows whose score helps choose the strength.

    The former are those at ``places``, prepared in ``seen`` unless that is None. The latter are rows of the fold that
    is held out, at most ``n_scored`` of them, for ``selection="holdout"``; else a fixed number of rows that resemble
    unseen ones (the former, if they are the same rows), or None if ``n_scored`` is 0.
    """
    make = partial(validation_rows_of, method, rows, features, moments)
    validation = make(places, rows.take(places) if seen is None else seen) if places.size else None
    if not n_scored:
        return validation, None
    # The number of scored rows is independent of the budget, which would otherwise influence the choice.
    scored_places = (
        rows.held_out(n_scored) if method.holding.asked == "holdout" else rows.validation_places(SCORED_ROWS)
    )
    is_there = validation is not None and np.array_equal(scored_places, places)
    scored = validation if is_there else make(scored_places, rows.take(scored_places))
    return validation, None if scored is None else rows.with_scores(scored, method.recipe.scoring)


# --- the learning curve


def learning_curve(
    method: Method,
    rows: PreparedRows,
    evidence: Evidence,
    learned: ChosenSolution,
    sums: Sequence[Moments],
    shown: Scoring,
) -> LearningCurve | None:
    """Return how the score of held-out rows grows with the rows learned from, by ridge on the sums of the fit.

    ``sums`` are moments of more and more rows, the last of all rows, or empty if the moments are folds that were held
    out to choose. ``shown`` is the score, None for accuracy or R^2. The curve is None if the fit has no suitable sums
    or too few rows to score.
    """
    validation, moments, last = evidence.validation, evidence.moments, rows.n_folds - 1
    chooses_components = isinstance(method.n_principal, tuple)
    if chooses_components or validation is None or moments is None or last < 2:
        return None
    members = np.flatnonzero(rows.folds(0, rows.source.n_rows)[validation.rows] == last)
    if members.size < _MEASURED:
        return None
    scored_rows = rows.with_scores(validation.of(members), shown)
    factor = Factor(moments.shift.size, method.recipe.device)
    points = score_growing(sums[:-1] or growing(moments), learned.solution.alpha, scored_rows, factor)
    if sums and learned.held_out is not None:  # the last point: each of these rows was left out alone
        outputs = learned.held_out.outputs[np.searchsorted(learned.held_out.rows, validation.rows[members])]
        points.append((learned.n_rows, score_if_any(partial(scored_rows.score, outputs))))
    return curve_of(scored_rows.measure, points)
