"""Margins of LIBLINEAR, on the features of all rows in memory."""

from __future__ import annotations

from typing import ClassVar

from chimap.engines.memory import CHUNK_UNIT, Job, KeepingJob
from chimap.machines.base import Facts, Refusals
from chimap.machines.explicit import HOST_ALONE, Explicit
from chimap.recipe import Recipe
from chimap.solvers.base import Needs


class KeepsFeatures(Explicit):
    """Keep the features of all rows in memory, as CSR where that is smaller."""

    name = "kept features"
    needs: ClassVar[tuple[Needs, ...]] = ("features",)
    refuses: ClassVar[Refusals] = HOST_ALONE

    def memory(self, job: Job, recipe: Recipe, facts: Facts) -> tuple[int, int]:
        """See ``Explicit``: of the features of filled bins. The fit counts their entries, and may refuse them."""
        filled = float(facts.filling.shares.mean()) if facts.source.is_sparse else 1.0
        n_stored = int(facts.n_rows * job.n_features * filled)
        return KeepingJob.of(job, n_stored, facts.source.is_sparse, is_copied=True).peak_bytes(CHUNK_UNIT), CHUNK_UNIT
