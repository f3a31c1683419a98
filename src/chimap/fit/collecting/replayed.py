"""Collect sums and a way to read the rows again: what losses need that are minimised by passes over the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, cast

from chimap.backends.base import HostSums, Keep, Sums
from chimap.engines import Job
from chimap.engines.local import Pass
from chimap.engines.rows import ReplayedRows
from chimap.fit.collecting.base import Request
from chimap.fit.collecting.sums import Replay, SumsCollector
from chimap.fit.method import Method
from chimap.fit.passes import Passes
from chimap.fit.plan import room_for
from chimap.fit.rows import PreparedRows
from chimap.losses import FeatureRows
from chimap.moments import FoldMoments
from chimap.solvers.base import Needs


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
        """See ``SumsCollector``."""
        kept = room_for(self.plan.job, moments, self.rows.folds, self.method.recipe.dtype)

        def replay(work: Pass[Sums]) -> FeatureRows:
            if kept is not None:
                return kept
            return ReplayedRows(cast("Pass[HostSums]", work), self.rows.source, self.plan.chunk_rows, passes.engine)

        return None if kept is None else kept.put, replay
