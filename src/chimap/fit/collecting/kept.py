"""Keep the features of all rows in memory, for solvers that need them there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from chimap._errors import InputError
from chimap._messages import Message
from chimap.engines import Progress, chunk_rows_within
from chimap.engines.keeping import KeepingPass
from chimap.engines.memory import CHUNK_UNIT
from chimap.features.base import FittedFeatures
from chimap.fit.checkpoint import SavedState
from chimap.fit.collecting.base import Collected, Collector, FitRun, Passes, Sample
from chimap.machines.base import Plan, Request
from chimap.machines.jobs import PassPlan, keeping_job, planned_job
from chimap.machines.method import Method
from chimap.machines.rows import PreparedRows
from chimap.moments import DealtFolds
from chimap.moments.kept import KeptFeatures
from chimap.selection.base import USUAL_FOLDS
from chimap.solvers.base import Evidence, Needs


@dataclass(frozen=True)
class KeptCollector(Collector):
    """Keep the features of all rows, as CSR where that is smaller.

    Parameters
    ----------
    method : Method
        The settings.
    rows : PreparedRows
        The rows.
    plan : PassPlan
        Sizes of the pass for principal components, if there is one. The pass that keeps features is planned once they
        are fitted, because their density decides how large they are.
    """

    needs: ClassVar[Needs] = "features"
    method: Method
    rows: PreparedRows
    plan: PassPlan

    @property
    def chunk_rows(self) -> int:
        return self.plan.chunk_rows

    @classmethod
    def check(cls, request: Request) -> None:
        """Refuse a checkpoint and engines that keep no rows in this process."""
        if request.has_checkpoint:
            raise InputError(
                Message("{loss='hinge'} keeps the features of all rows in memory and cannot write a checkpoint.")
            )
        if not request.can_keep:
            raise InputError(
                Message(
                    "{loss='hinge'} keeps the features of all rows in the memory of one process: use {engine='local'}, "
                    "or {loss='squared_hinge'}, whose passes run on the workers."
                )
            )

    @classmethod
    def planned(cls, method: Method, plan: Plan, rows: PreparedRows, run: FitRun, saved: SavedState | None) -> Self:
        job = planned_job(method, rows, run.engine)
        if method.n_principal is None:
            return cls(method, rows, PassPlan(job, CHUNK_UNIT))
        return cls(method, rows, PassPlan.of_first([job], method.recipe.budget))

    def sample(self, progress: Progress, saved: SavedState | None) -> Sample:
        progress.stage("sampling", None)
        return Sample(self.rows.sample())

    def collect(self, passes: Passes, features: FittedFeatures, sample: Sample) -> Collected:
        method, rows = self.method, self.rows
        n_folds = min(USUAL_FOLDS, rows.source.n_rows // 2)  # to hold out, even where nothing is to be chosen
        rows = replace(rows, folds=rows.folds if rows.n_folds > 1 or n_folds < 2 else DealtFolds(n_folds, rows.seed))
        held_folds = rows.folds_to_hold_out()
        job = keeping_job(self.plan.job, rows.source, sample.drawn, features, method.objective, len(held_folds) > 1)
        kept = KeptFeatures(rows.folds, rows.codec.shift)
        clock = passes.run.clock
        work = KeepingPass(rows.prepare, features, rows.codec.encode, kept, clock, job.is_sparse, rows.weights)
        passes.add(work, rows.source, "learning", chunk_rows=chunk_rows_within(job, method.recipe.budget))
        evidence = Evidence(
            kept=kept,
            device=method.recipe.device,
            seed=method.recipe.seed,
            progress=passes.run.progress,
            asked=method.holding.asked,
            held_folds=held_folds,
            unit=rows.unit,
        )
        return Collected(evidence)
