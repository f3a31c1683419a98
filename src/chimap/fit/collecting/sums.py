"""Collect sums of features and targets, fold by fold: what ridge is solved from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import numpy as np

from chimap._types import Rows, Scoring
from chimap._validation import MemoryBudgetError
from chimap.backends.base import Keep, Sums
from chimap.engines import Engine, Job, Progress, Stopwatch
from chimap.engines.local import Pass
from chimap.features.base import FittedFeatures
from chimap.fit.checkpoint import SavedState
from chimap.fit.collecting.base import Collected, Collector, Request, Sample
from chimap.fit.learning_curve import DOUBLING_ROWS, learning_curve
from chimap.fit.method import Method
from chimap.fit.passes import Passes, empty_moments, learning_pass, witnesses_and_scored
from chimap.fit.plan import Plan, planned_job
from chimap.fit.rows import PreparedRows
from chimap.losses import FeatureRows
from chimap.moments import DoublingParts, FoldMoments, Moments, RowFolds
from chimap.selection.choose import ChosenSolution
from chimap.selection.learning_curve import LearningCurve, nested
from chimap.solvers.base import Evidence, Needs
from chimap.solvers.held_out import SCORED_ROWS

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
        The rows, with the folds whose moments are kept apart.
    plan : Plan
        Its sizes include the rows whose score helps choose the strength (``n_scored``), if there is room for them.
    has_curve : bool, default=False
        Whether a learning curve is wanted.
    """

    needs: ClassVar[Needs] = "moments"
    method: Method
    rows: PreparedRows
    plan: Plan
    has_curve: bool = False

    @property
    def chunk_rows(self) -> int:
        """See ``Collector``."""
        return self.plan.chunk_rows

    @classmethod
    def planned(
        cls, method: Method, rows: PreparedRows, engine: Engine, saved: SavedState | None, request: Request
    ) -> Self:
        """See ``Collector``.

        For a learning curve, the sums of some parts of the rows are kept apart if no folds are held out to choose and
        the budget allows it. A resumed fit keeps the folds that it began with.
        """
        over = partial(cls._over, method, rows, engine, saved, request)
        begun = None if saved is None or saved.stage != "learning" else len(saved.moments)
        parts = DoublingParts(rows.seed)
        if rows.n_folds == 1 and begun == parts.n_folds:
            return over(parts)
        if begun is None and rows.n_folds == 1 and request.has_curve and rows.source.n_rows >= DOUBLING_ROWS:
            try:
                return over(parts)
            except MemoryBudgetError:
                pass  # the model comes first: do without the curve
        return over(rows.folds)

    @classmethod
    def _over(
        cls,
        method: Method,
        rows: PreparedRows,
        engine: Engine,
        saved: SavedState | None,
        request: Request,
        folds: RowFolds,
    ) -> Self:
        """Plan the sums of these folds."""
        method, rows = replace(method, n_folds=folds.n_folds), replace(rows, folds=folds)
        jobs = cls._jobs(planned_job(method, rows, engine), method, rows, request)
        begun = None if saved is None else saved.chunk_rows
        return cls(method, rows, Plan.of_first(jobs, method.budget, begun), request.has_curve)

    @classmethod
    def _jobs(cls, job: Job, method: Method, rows: PreparedRows, request: Request) -> list[Job]:
        """Return the sizes to try in turn: with rows that help choose the strength, and without them."""
        trying = replace(job, n_scored=min(SCORED_ROWS, rows.source.n_rows))
        if method.holding.asked == "holdout":
            return [trying]
        return [trying, job] if method.holding.asked == "gcv" else [job]

    def sample(self, progress: Progress, saved: SavedState | None) -> Sample:
        """See ``Collector``."""
        progress.stage("sampling", None)
        places = self.rows.witnesses(self.plan.job.n_features, self.method.dtype.itemsize, self.method.budget)
        if saved is not None:
            return Sample(None, None, places)
        rows, others = self.rows.sample_and(places)
        return Sample(rows, None, places, others)

    def collect(self, passes: Passes, features: FittedFeatures, sample: Sample) -> Collected:
        """Add up the moments, and compute the features of the rows that scores and held-out outputs need."""
        moments, next_row = self._begun(passes, features, sample.rows)
        shift = moments.shift if self.method.is_rounded else None
        keep, replay = self._replaying(passes, moments)
        work = learning_pass(self.method, self.rows, features, moments, passes.clock, keep)
        passes.engine.run(
            work,
            self.rows.source,
            self.plan.chunk_rows,
            passes.progress,
            "learning",
            next_row,
            passes.reached("learning"),
        )
        work.finish()
        if not all(np.isfinite(part.scatter_diagonal()).all() for part in moments.parts):
            raise passes.overflow(features)
        moments.release_buffers()
        sums: list[Moments] = []
        if not self.rows.folds.n_held:
            sums = nested(moments)
            moments = FoldMoments.of(sums[-1:], self.method.dtype, self.method.is_rounded)
        evidence = Evidence(
            moments,
            replay(work),
            device=self.method.device,
            seed=self.method.seed,
            progress=passes.progress,
            asked=self.method.holding.asked,
            unit=self.rows.unit,
            held_folds=self.rows.folds_to_hold_out(sample.places),
        )
        with passes.clock("held out"):
            return Collected(self._with_rows(evidence, moments, features, sample), shift, sums)

    def _begun(self, passes: Passes, features: FittedFeatures, first: Rows | None) -> tuple[FoldMoments, int]:
        """Return the moments so far, and the first row that they do not contain."""
        method, rows, saved = self.method, self.rows, passes.saved
        with passes.clock("map"):
            if saved is not None and saved.stage == "learning":
                return FoldMoments.of(saved.moments, method.dtype, method.is_rounded), saved.next_row
            first = rows.sample() if first is None else first
            moments = empty_moments(features, first, rows.n_folds, rows.codec.shift, method.dtype, method.is_rounded)
            return moments, 0

    def _replaying(self, passes: Passes, moments: FoldMoments) -> tuple[Keep | None, Replay]:
        """Return what the pass does with the features of each chunk, and how rows are read again after it."""
        return None, lambda work: None

    def _with_rows(
        self, evidence: Evidence, moments: FoldMoments, features: FittedFeatures, sample: Sample
    ) -> Evidence:
        """Return the evidence with the features of witnesses and, where the plan has room, of rows that are scored."""
        witnesses, scored_rows = witnesses_and_scored(
            self.method, self.rows, features, moments, sample.places, sample.others, self.plan.job.n_scored
        )
        return replace(evidence, witnesses=witnesses, scored_rows=scored_rows)

    def curve(
        self, collected: Collected, chosen: ChosenSolution, shown: Scoring, clock: Stopwatch
    ) -> LearningCurve | None:
        """Return the scores of ridge on the sums of more and more rows, if they are wanted or at hand."""
        if not self.has_curve and not collected.sums:
            return None
        with clock("learning curve"):
            return learning_curve(self.method, self.rows, collected.evidence, chosen, collected.sums, shown)
