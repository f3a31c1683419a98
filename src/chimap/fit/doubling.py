"""Landmarks whose number is left to the fit: it doubles while rows that are left out gain by more than the error.

How many landmarks are worth their time depends on the rows, so it is measured. Twice the landmarks take four times the
work, so that all fits before the last take a third of its time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from chimap._types import is_auto
from chimap._validation import MemoryBudgetError
from chimap.data import Source
from chimap.engines import Progress
from chimap.fit.collecting import Request
from chimap.fit.resolve import room_for
from chimap.models.model import Model
from chimap.recipe import Recipe
from chimap.recipe.sizes import landmarks_in, takes_landmarks
from chimap.recipe.task import Task, scoring_of
from chimap.selection.jackknife import parts_of_rows
from chimap.selection.scoring import gain_and_error
from chimap.solvers.blocks import USUAL_SECONDS
from chimap.solvers.from_moments import RidgeSolver
from chimap.solvers.held_out import HeldOut

_SHARE = 0.5  # of the usual seconds of a fit that the sums of the last doubling may take
_ROWS_OF_A_LANDMARK = 4  # with fewer rows for each landmark, an exact machine takes no longer


@dataclass(frozen=True)
class ModelAndOutputs:
    """A model, and its outputs for rows that it has not seen; None if there are none."""

    model: Model
    held_out: HeldOut | None


def may_double(asked: Recipe, resolved: Recipe, task: Task, request: Request) -> bool:
    """Whether the number of landmarks was left to the fit, which sums up their features.

    Other losses pass over the rows many times, and a checkpoint continues one fit.
    """
    return (
        is_auto(asked.n_components)
        and takes_landmarks(resolved)
        and resolved.learner is None
        and resolved.n_principal is None
        and RidgeSolver().supports(resolved.loss)
        and not task.has_gaps
        and not request.has_checkpoint
    )


def doubled(
    learned: ModelAndOutputs,
    recipe: Recipe,
    task: Task,
    source: Source,
    groups: np.ndarray | None,
    learn: Callable[[Recipe, Source, np.ndarray | None], ModelAndOutputs],
    progress: Progress,
) -> Model:
    """Return the model, or one of twice, four times, .. as many landmarks.

    Parameters
    ----------
    learned : ModelAndOutputs
        Fitted with the number of landmarks of the recipe.
    recipe : Recipe
        All settings have values.
    task : Task
        The targets of the rows.
    source : Source
        The rows.
    groups : array of shape (n,) or None
        Their groups.
    learn : callable
        Returns what is learned by a recipe, for rows and their groups.
    progress : Progress
        Is told the score of each number of landmarks.
    """
    y = source.labels()
    assert y is not None
    score = task.codec.score(y, scoring_of(recipe.scoring, recipe.is_classifier, y), source.weights)
    most = landmarks_in(_SHARE * (recipe.time_limit or USUAL_SECONDS), source.n_rows)
    most = min(most, source.n_rows // _ROWS_OF_A_LANDMARK)
    check, n = room_for(recipe, source, task, groups), int(recipe.n_components)
    while True:
        is_full = learned.model.features._n_features_out == n  # otherwise rows tell no more of them apart
        before, n = learned, 2 * n
        if n > most or not is_full or before.held_out is None:
            return before.model
        try:
            check(n)
        except MemoryBudgetError:
            return before.model
        recipe = replace(recipe, n_components=n)
        learned = learn(recipe, source, groups)
        places = before.held_out.rows
        if learned.held_out is None or not np.array_equal(learned.held_out.rows, places):
            return before.model
        parts = parts_of_rows(places.size, None if groups is None else groups[places], recipe.seed)
        gain, error = gain_and_error(score, before.held_out.outputs, learned.held_out.outputs, places, parts)
        progress.note(
            f"{score.name} of rows left out: {score(learned.held_out.outputs, places):.4f} by {n:,} landmarks, "
            f"{gain:+.4f} (standard error {error:.4f}) for twice as many"
        )
        if not gain > error:
            return before.model
