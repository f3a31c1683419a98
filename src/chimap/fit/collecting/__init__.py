"""The catalogue of collectors: what a fit collects from the rows, by what the solver of its objective needs."""

from __future__ import annotations

from chimap._errors import InputError
from chimap._messages import Message
from chimap.backends import check_device, on_host
from chimap.fit.collecting.base import Collected, Collector, FitRun, Passes, Sample
from chimap.fit.collecting.kept import KeptCollector
from chimap.fit.collecting.kernel import BlocksCollector, KernelCollector
from chimap.fit.collecting.sums import ReplayedCollector, SumsCollector
from chimap.machines.base import Request
from chimap.machines.objective import objective_of
from chimap.recipe import Recipe
from chimap.solvers.base import Needs

__all__ = ["COLLECTORS", "Collected", "Collector", "Passes", "FitRun", "Sample", "check_request"]

COLLECTORS: dict[Needs, type[Collector]] = {
    collector.needs: collector
    for collector in (SumsCollector, ReplayedCollector, KeptCollector, KernelCollector, BlocksCollector)
}
"""Collectors by the ``needs`` of a solver."""


def check_request(recipe: Recipe, has_gaps: bool, request: Request) -> None:
    """Raise ValueError for settings that cannot be combined with what is asked of the fit."""
    check_device(recipe.device)
    if not on_host(recipe.device) and (request.has_checkpoint or not request.can_keep):
        raise InputError(
            Message("{device=} keeps its moments on the device: use {engine='local'} and no checkpoint.", recipe.device)
        )
    COLLECTORS[objective_of(recipe, has_gaps).solver.needs].check(request)
    if request.has_unlabelled and recipe.n_principal is None:
        raise InputError(Message("unlabelled rows contribute to principal components only: give {n_principal}."))
