"""What the machines share that are solved from explicit features: how many landmarks suit rows and memory."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from chimap._messages import Message
from chimap._progress import Ahead
from chimap._types import JSON
from chimap._validation import MemoryBudgetError
from chimap.engines import chunk_rows_within
from chimap.engines.memory import Job
from chimap.engines.rates import RATES
from chimap.features.additive.base import AdditiveMap
from chimap.features.base import Features
from chimap.features.families import FAMILIES, has_number
from chimap.kernels import Exponential
from chimap.machines.base import Cost, Facts, Machine, Plan, Refusals, Winner
from chimap.machines.jobs import largest_job
from chimap.machines.method import Method
from chimap.machines.objective import objective_of
from chimap.recipe import Recipe
from chimap.solvers.catalogue import SOLVERS

FEWEST_LANDMARKS, MOST_LANDMARKS = 1000, 8000
MOST_SUMMED = 8192  # features whose products an ordinary machine can sum up
SHARE_OF_IMPROVING = 0.25  # of the usual seconds of a fit that sums of more landmarks may take
_GROWTH = 8  # landmarks per square root of the rows: 2000 for 60,000 rows
_LESS = 0.8  # factor on the number of landmarks while they do not fit in the memory
_LEAST = 64  # landmarks; if these do not fit, the budget itself is too small
_BATCH = 2 * FEWEST_LANDMARKS  # rows of a first batch that landmarks for later batches can be chosen from


def _scoring(recipe: Recipe) -> Message:
    return Message(
        "{scoring} needs rows held out by {loss='square'}; got {loss=}. Leave {scoring} out.", recipe.requested_loss
    )


def _device(recipe: Recipe) -> Message:
    return Message(
        "{device=} supports {loss='square'} only; got {loss=}. Use {device='cpu'}.", recipe.device, recipe.loss
    )


def _gaps_on_device(recipe: Recipe) -> Message:
    return Message(
        "{device=} needs targets without missing entries and with equal weights, but some entries are missing or have "
        "a {class_weight}. Use {device='cpu'}, or fit the tasks one by one.",
        recipe.device,
    )


NO_SCORE: Refusals = {"scoring": _scoring}
HOST_ALONE: Refusals = {**NO_SCORE, "gaps on a device": _gaps_on_device, "device": _device}
"""What machines refuse that pass over rows, or keep them."""


@dataclass(frozen=True)
class PassCost(Cost):
    """What passes over explicit features take: so many features, of chunks of so many rows."""

    n_features: int
    chunk_rows: int

    def ahead(self, searches: bool) -> tuple[Ahead, ...]:
        """See ``Cost``: a pass over the rows."""
        return (Ahead("learning", self.n_rows, lambda n: self.seconds * n / self.n_rows),)

    @property
    def sizes(self) -> JSON:
        return {"components": self.n_features, "features": "landmarks", "chunk_rows": self.chunk_rows}


class Explicit(Machine):
    """A machine that is solved from explicit features of the rows."""

    def against(self, recipe: Recipe, facts: Facts, asked: Recipe) -> str:
        """See ``Machine``: the first solver that minimises the loss says what it needs."""
        if recipe.solver is not None:
            return "" if SOLVERS[recipe.solver].needs in self.needs else "the estimator has a solver of its own"
        objective = objective_of(with_explicit_features(recipe, facts, asked, None), facts.has_gaps)
        is_own = objective.solver.needs in self.needs and self.penalises(objective.groups is not None)
        return "" if is_own else f"the loss is minimised from {objective.solver.needs}"

    def penalises(self, has_groups: bool) -> bool:
        """Whether it penalises the weights: of groups of features as one, or each."""
        return not has_groups

    def raced(self, recipe: Recipe, facts: Facts, asked: Recipe, winner: Winner | None) -> Recipe:
        return with_explicit_features(recipe, facts, asked, winner)

    def resolved_recipe(self, recipe: Recipe, facts: Facts) -> Recipe:
        """See ``Machine``: as many landmarks as suit the rows and the memory."""
        recipe = super().resolved_recipe(recipe, facts)
        if facts.request.is_batch and is_small_batch(recipe, facts.n_rows):
            recipe = recipe.with_values(features="fourier")
        if recipe.leaves_open("n_components") and takes_landmarks(recipe):
            recipe = recipe.with_values(n_components=landmarks_within(facts.n_rows, room_for(recipe, facts)))
        return recipe

    def cost(self, recipe: Recipe, facts: Facts) -> Cost:
        """See ``Machine``: of passes over the features of all rows."""
        method = Method.of(recipe, facts.source.column_names, has_gaps=facts.has_gaps)
        job = largest_job(method, facts.source, facts.n_targets)
        seconds = self.seconds(facts, job.n_features)
        n_bytes, rows = self.memory(job, recipe, facts)
        return PassCost(n_bytes, seconds, facts.n_rows, job.n_features, min(rows, facts.n_rows))

    def memory(self, job: Job, recipe: Recipe, facts: Facts) -> tuple[int, int]:
        """Return the bytes of a fit, and the rows of a chunk: here with sums of products of the features."""
        rows = chunk_rows_within(job, recipe.budget)
        return job.peak_bytes(rows), rows

    def seconds(self, facts: Facts, n_features: int) -> float:
        """Return the seconds of two cores, by the operations: here of sums of so many features."""
        return facts.n_rows * n_features**2 / RATES.sums


def with_explicit_features(recipe: Recipe, facts: Facts, asked: Recipe, winner: Winner | None) -> Recipe:
    """Return the recipe with explicit features in place of rows that a race has kept.

    Landmarks take the gamma that the race found, and their number is chosen again to suit all rows. An additive kernel
    has its map, of sparse rows with any number of mapped bins.
    """
    if not asked.leaves_open("features") or recipe.leaves_open("features"):
        return recipe if winner is None else recipe.with_raced(scoring=None)
    if winner is not None:
        recipe = recipe.with_raced(scoring=None)
    if recipe.features == "landmarks":
        return recipe.without_raced("n_components", of=asked)
    if not recipe.is_exact:
        return recipe
    kernel = recipe.exact_kernel
    if isinstance(kernel, Exponential):
        gamma = recipe.gamma if winner is None else winner.learned.get("gamma", "mean")
        return recipe.with_raced(features="landmarks", gamma=gamma)
    if kernel.inner is None:
        return recipe.with_raced(features="landmarks")
    is_narrow = facts.source.is_sparse or 2 * facts.source.n_features <= MOST_SUMMED
    return recipe.with_raced(features="additive", n_terms=2 if is_narrow else 1)


def has_additive_map(recipe: Recipe) -> bool:
    """Whether the features are those of an additive map, which keep the zeros of sparse rows."""
    return isinstance(recipe.features_of(recipe.exact_kernel), (AdditiveMap, *FAMILIES["additive"]))


# --- landmarks


def takes_components(recipe: Recipe) -> bool:
    """Whether the word for the features gives landmarks or random features, whose number is n_components."""
    features = _features_of_word(recipe)
    return features is not None and has_number(features)


def takes_landmarks(recipe: Recipe) -> bool:
    """Whether the word for the features gives landmarks, chosen among the rows or given."""
    return isinstance(_features_of_word(recipe), FAMILIES["landmarks"])


def _features_of_word(recipe: Recipe) -> Features | None:
    """Return unfitted features of all columns; None where an object was given, or several kernels."""
    if not isinstance(recipe.features, str) or isinstance(recipe.kernel, list | tuple):
        return None
    return recipe.features_of(recipe.exact_kernel)


def is_small_batch(recipe: Recipe, n_rows: int) -> bool:
    """Whether a first batch is too small for landmarks, and the kernel has random features."""
    is_small = recipe.leaves_open("features") and n_rows < _BATCH and takes_landmarks(recipe)
    return is_small and any(made.takes(recipe.exact_kernel) for made in FAMILIES["fourier"])


def landmarks_of(n_rows: int) -> int:
    """Return the number of landmarks that a fit of ``n_rows`` rows begins with, whatever the memory.

    >>> [landmarks_of(n) for n in (500, 60_000, 10**9)]
    [1000, 1959, 8000]
    """
    return int(np.clip(_GROWTH * np.sqrt(n_rows), FEWEST_LANDMARKS, MOST_LANDMARKS))


def landmarks_in(seconds: float, n_rows: int) -> int:
    """Return the number of landmarks whose sums over ``n_rows`` rows take so many seconds of two cores.

    >>> [landmarks_in(60.0, n) for n in (100_000, 1_000_000, 100_000_000)]
    [8000, 3464, 1000]
    """
    return int(np.clip(np.sqrt(seconds * RATES.sums / n_rows), FEWEST_LANDMARKS, MOST_LANDMARKS))


def landmarks_within(n_rows: int, check: Callable[[int], None]) -> int:
    """Return as many landmarks as suit the rows and fit in the memory budget.

    ``check`` raises MemoryBudgetError for a number that does not fit; if even few do not, that error is raised.
    """
    n = landmarks_of(n_rows)
    while True:
        try:
            check(n)
        except MemoryBudgetError:
            if n <= _LEAST:
                raise
            n = max(_LEAST, int(_LESS * n))
        else:
            return n


def room_for(recipe: Recipe, facts: Facts) -> Callable[[int], None]:
    """Return a function that takes a number of components and raises MemoryBudgetError if it does not fit."""

    def check(n: int) -> None:
        method = Method.of(replace(recipe, n_components=n), facts.source.column_names, has_gaps=facts.has_gaps)
        method = method.of_groups() if facts.has_groups else method
        chunk_rows_within(largest_job(method, facts.source, facts.n_targets), recipe.budget)

    return check


def fits(n: int, check: Callable[[int], None]) -> bool:
    """Whether a number of components fits; see ``room_for``."""
    try:
        check(n)
    except MemoryBudgetError:
        return False
    return True


@contextmanager
def advised(plan: Plan) -> Iterator[None]:
    """Say how many components would fit, where memory does not hold as many as were asked for."""
    try:
        yield
    except MemoryBudgetError as error:
        raise MemoryBudgetError(Message("{}{}", error, advice_on_components(plan.recipe, plan.facts))) from None


def advice_on_components(recipe: Recipe, facts: Facts) -> str:
    """Return a sentence with the largest number of components that fits in the memory budget.

    It is empty if not even one fits, or if the settings do not give their number.
    """
    n = recipe.n_components
    if recipe.is_exact or isinstance(n, str) or not takes_components(recipe):
        return ""
    fewest = Method.of(recipe, facts.source.column_names, has_gaps=facts.has_gaps).most_principal or 1
    check = room_for(recipe, replace(facts, has_groups=False))
    n_fitting = bisect_left(range(fewest, n), True, key=lambda fewer: not fits(fewer, check))
    return Message(" At most about {n_components=!s} fits it.", fewest + n_fitting - 1) if n_fitting else ""
