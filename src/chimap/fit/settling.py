"""The values that stand for "auto", for the rows at hand.

``settled`` is called once per fit, after the race and before the recipe is final. It changes nothing: it returns the
values, and the estimator keeps them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from chimap._memory import parse_memory, room_in
from chimap._messages import Message
from chimap._types import Parameters
from chimap._validation import check_positive
from chimap.backends.units import automatic_precision
from chimap.data import Source
from chimap.engines import chunk_rows_within
from chimap.features.additive import check_map
from chimap.features.base import FeatureSettings
from chimap.features.families import check_features
from chimap.fit.automatic import (
    BLOCK_TERMS,
    bytes_of_exact,
    holds_matrix,
    is_automatic,
    landmarks_within,
    most_components,
    takes_blocks,
    takes_components,
    takes_exact,
    takes_landmarks,
    takes_wide,
    words_of_a_batch,
)
from chimap.fit.plan import largest_job
from chimap.fit.recipe import Recipe
from chimap.solvers.blocks import FEWEST_BLOCK_ROWS, BlockSolver
from chimap.solvers.from_moments import RidgeSolver
from chimap.solvers.wide_ridge import WideRidgeSolver


@dataclass(frozen=True)
class Circumstances:
    """What settling needs to know of a fit beside the parameters and the rows.

    Parameters
    ----------
    recipe : callable
        Returns the recipe for parameters.
    choose_gamma : callable
        Returns gamma for these rows, chosen on a sample; "mean" for kernels without one.
    n_targets : int
        Number of targets.
    keeps_posterior : bool
        Whether the model keeps the posterior of its weights.
    is_plain : bool, default=True
        Whether the exact machine supports all options of the fit.
    is_resumable : bool, default=False
        Whether the state of the fit is written to a file, so that the features of all rows cannot be kept.
    is_batch : bool, default=False
        Whether more rows will come.
    wants_matrix : bool, default=False
        Whether the user named exact machines, which then have a matrix of all rows wherever the memory holds one.
    """

    recipe: Callable[[Parameters], Recipe]
    choose_gamma: Callable[[], float | str]
    n_targets: int
    keeps_posterior: bool
    is_plain: bool = True
    is_resumable: bool = False
    is_batch: bool = False
    wants_matrix: bool = False


def settled(given: Parameters, source: Source, about: Circumstances) -> Parameters:
    """Return the values of the parameters that are "auto" and depend on the rows: those that differ from ``given``.

    They say whether every row is kept, how many landmarks there are, gamma, which solver, and the precision.

    Raises
    ------
    ValueError
        If a size is invalid.
    MemoryBudgetError
        If not even a few landmarks fit in the memory budget.
    """
    taken: Parameters = {}
    takes_all_rows, room = about.is_plain and not about.is_batch, room_in(parse_memory(given["memory"]))
    is_open = takes_all_rows and is_automatic(given.get("features"))
    has_posterior = about.keeps_posterior
    if is_open and (
        takes_exact(given, source, room, has_posterior=has_posterior) or takes_blocks(given, source, room)
    ):
        taken["features"] = "exact"
    if _sweeps(given | taken, source, room, about):
        taken |= {"solver": BlockSolver.name} | (
            {"n_terms": BLOCK_TERMS} if is_automatic(given["n_terms"]) else {}
        )
    check_sizes(given)
    if is_automatic(given.get("gamma")) and not keeps_rows(given | taken):
        taken["gamma"] = about.choose_gamma()
    if about.is_batch:
        taken |= words_of_a_batch(feature_settings(given | taken), source.n_rows)
    if is_automatic(given["n_components"]) and takes_landmarks(feature_settings(given | taken)):
        check = room_for(given | taken, source, about.n_targets, about.recipe)
        taken["n_components"] = landmarks_within(source.n_rows, check)
    if (
        takes_all_rows
        and not about.is_resumable
        and takes_wide(given | taken, feature_settings(given | taken), source)
    ):
        taken["solver"] = WideRidgeSolver.name
    if is_automatic(given["precision"]) and _may_round(given | taken):
        taken["precision"] = automatic_precision(given.get("device", "cpu"))
    return taken


def _sweeps(given: Parameters, source: Source, room: int, about: Circumstances) -> bool:
    """Whether a machine that keeps every row is solved block by block: rows to come are blocks of their own."""
    if not keeps_rows(given) or not RidgeSolver().supports(given["loss"]):
        return False
    if about.is_batch or source.n_rows <= FEWEST_BLOCK_ROWS:
        return about.is_batch
    if about.wants_matrix:
        return bytes_of_exact(given, source) > room
    return not holds_matrix(given, source, room)


def room_for(
    given: Parameters, source: Source, n_targets: int, recipe: Callable[[Parameters], Recipe]
) -> Callable[[int], None]:
    """Return a function that takes a number of components and raises MemoryBudgetError if it does not fit."""

    def check(n: int) -> None:
        planned = recipe(given | {"n_components": n})
        chunk_rows_within(largest_job(planned, source, n_targets), planned.budget)

    return check


def advice_on_components(
    given: Parameters, source: Source, n_targets: int, recipe: Callable[[Parameters], Recipe]
) -> str:
    """Return a sentence with the largest number of components that fits in the memory budget.

    It is empty if not even one fits, or if the parameters do not set their number.
    """
    n = given["n_components"]
    if keeps_rows(given) or is_automatic(n) or not takes_components(feature_settings(given)):
        return ""
    most = most_components(recipe(given).most_principal or 1, n, room_for(given, source, n_targets, recipe))
    return Message(" At most about {n_components=!s} fits it.", most) if most else ""


def keeps_rows(given: Parameters) -> bool:
    """Whether a fit with these parameters keeps every row, with features="exact"."""
    features = given.get("features")
    return isinstance(features, str) and features == "exact"


def _may_round(given: Parameters) -> bool:
    """Whether features are summed up, so that they may be rounded first; other solvers take them as they are."""
    return not keeps_rows(given) and given.get("solver") is None and given.get("n_principal") is None


def feature_settings(given: Parameters) -> FeatureSettings:
    """Return the settings of the features of one kernel, from those parameters that an estimator has."""
    settings = {field.name: given[field.name] for field in fields(FeatureSettings) if field.name in given}
    if keeps_rows(given) and is_automatic(given.get("gamma")):
        settings["gamma"] = "mean"  # where the search for gamma starts
    return FeatureSettings(**settings)


def check_sizes(given: Parameters) -> None:
    """Raise ValueError for features, numbers or a map that no rows could have."""
    check_features(given.get("features", "auto"))
    for name in ("n_components", "n_terms"):
        if not is_automatic(given[name]):
            check_positive(given[name], name, integer=True)
    if given.get("map") is not None:
        check_map(given["map"])
