"""The catalogue of collectors: what a fit collects from the rows, by what the solver of its objective needs."""

from __future__ import annotations

from chimap.fit.collecting.base import Collected, Collector, FitRun, Passes, Sample
from chimap.fit.collecting.kept import KeptCollector
from chimap.fit.collecting.kernel import BlocksCollector, KernelCollector
from chimap.fit.collecting.sums import ReplayedCollector, SumsCollector
from chimap.solvers.base import Needs

__all__ = ["COLLECTORS", "Collected", "Collector", "Passes", "FitRun", "Sample"]

COLLECTORS: dict[Needs, type[Collector]] = {
    collector.needs: collector
    for collector in (SumsCollector, ReplayedCollector, KeptCollector, KernelCollector, BlocksCollector)
}
"""Collectors by the ``needs`` of a solver."""
