"""What a race leads to: recipes for all rows, the best first, and the first of them that memory holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from chimap._memory import budgets
from chimap._messages import Message
from chimap._validation import MemoryBudgetError
from chimap.data import Source
from chimap.data.doubts import say
from chimap.engines import Progress
from chimap.fit.checkpoint import Checkpoint
from chimap.fit.gamma import Fit
from chimap.machines.base import Request
from chimap.models.model import Model
from chimap.race.choose import race
from chimap.race.trials import RaceResult
from chimap.recipe import Recipe
from chimap.recipe.task import Task

Raced = tuple[Recipe, RaceResult | None]
"""A recipe for all rows, and the race that it leads; None without one."""


def chosen(
    asked: Recipe,
    source: Source,
    task: Task,
    groups: np.ndarray | None,
    fit: Fit,
    progress: Progress,
    request: Request,
    log: Checkpoint | None,
    races: bool,
) -> Sequence[Raced]:
    """Return the recipes that a race leads to, see ``race``, or the one that the checkpoint has of one."""
    choice = None if log is None else log.choice(asked)
    if choice is not None:
        resumed = replace(asked, seed=choice.seed, memory=choice.memory)
        return [(resumed.with_raced(**choice.chosen), choice.race)]
    return race(asked, source, task, groups, fit, progress, request) if races else [(asked, None)]


def first_within_memory(choices: Sequence[Raced], fitted: Callable[[Recipe, RaceResult | None], Model]) -> Model:
    """Return the model of the first choice whose machine the memory holds, in the least budget that does.

    It is said if it is not the first of all. Raise the MemoryBudgetError of the first choice, in its largest budget, if
    no machine fits.
    """
    refusal: MemoryBudgetError | None = None
    for place, (recipe, raced) in enumerate(choices):
        for memory in budgets(recipe.memory):
            try:
                model = fitted(recipe if memory == recipe.memory else recipe.with_values(memory=memory), raced)
            except MemoryBudgetError as error:
                refusal = error if place == 0 else refusal
                continue
            if place and raced is not None and choices[0][1] is not None:
                first, taken = choices[0][1].trials[0].candidate.name, raced.trials[0].candidate.name
                say([Message("{} won the race, but {} The model is {}, the next that fits.", first, refusal, taken)])
            return model
    assert refusal is not None  # there is a choice, and at least one budget
    raise refusal
