"""Landmarks that a fit takes only if rows that are left out gain by more than the error of the gain.

Where their number is left to the fit, it doubles as long as they do: how many landmarks are worth their time depends on
the rows. Twice the landmarks take four times the work, so that all fits before the last take a third of its time.

Where a machine in blocks of rows took in some of the rows only, landmarks for all rows are its rival: they learn from
all rows but the latest of the sweep, and both are scored on these, which neither has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from chimap._validation import MemoryBudgetError
from chimap.data import Source
from chimap.data.views import ChosenRows
from chimap.engines import Progress
from chimap.machines.base import Request
from chimap.machines.block_plan import USUAL_SECONDS
from chimap.machines.resolve import ChooseGamma, resolve, room_for
from chimap.machines.sizes import landmarks_in
from chimap.models.model import Model
from chimap.models.predict import outputs_of_source
from chimap.recipe import Recipe
from chimap.recipe.task import Task, scoring_of
from chimap.selection.jackknife import parts_of_rows
from chimap.selection.leave_one_out import FEW_ROWS
from chimap.selection.scoring import gain_and_error
from chimap.solvers.from_moments import RidgeSolver
from chimap.solvers.held_out import HeldOut

_SHARE = 0.25  # of the usual seconds of a fit that the sums of the last doubling, or of the rival, may take
_ROWS_OF_A_LANDMARK = 4  # with fewer rows for each landmark, an exact machine takes no longer


@dataclass(frozen=True)
class ModelAndOutputs:
    """A model, and its outputs for rows that it has not seen; None if there are none."""

    model: Model
    held_out: HeldOut | None


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

    Other losses than the square pass over the rows many times, and several targets of their own have sums of their own:
    their number stays.

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
    has_sums = recipe.learner is None and recipe.n_principal is None and RidgeSolver().supports(recipe.loss)
    if not has_sums or task.has_gaps:
        return learned.model
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


def better_of(
    model: Model,
    asked: Recipe,
    raced: Recipe,
    task: Task,
    source: Source,
    groups: np.ndarray | None,
    learn: Callable[[Recipe, Source, np.ndarray | None], ModelAndOutputs],
    choose_gamma: ChooseGamma,
    progress: Progress,
) -> Model:
    """Return the model, or one with landmarks for all rows if it predicts rows better that neither has seen.

    The model stands where the user named the features, or a time limit.

    Parameters
    ----------
    model : Model
        Fitted block by block on some of the rows.
    asked, raced : Recipe
        The settings that were asked for, and after the race.
    task : Task
        The targets of the rows.
    source : Source
        All rows.
    groups : array of shape (n,) or None
        Their groups.
    learn : callable
        Returns what is learned by a recipe, for rows and their groups.
    choose_gamma : callable
        See ``resolve``.
    progress : Progress
        Is told the two scores.
    """
    if not asked.leaves_open("features") or asked.time_limit is not None:
        return model
    held_out = model.learned["held_out_"]
    latest = model.learned["row_numbers_"][-FEW_ROWS:]
    latest = np.sort(latest[~np.isnan(held_out[latest]).all(axis=1)])
    if not latest.size:
        return model
    y = source.labels()
    assert y is not None
    others = np.setdiff1d(np.arange(source.n_rows), latest)
    rows, of_rows = ChosenRows(source, others, y[others]), None if groups is None else groups[others]
    recipe = raced.without_raced("alpha", of=asked).with_raced(
        features="landmarks", gamma=getattr(model.kernel, "gamma", "mean")
    )
    try:
        recipe = resolve(recipe, rows, task, choose_gamma, of_rows, Request(can_keep=False))
        most = landmarks_in(_SHARE * USUAL_SECONDS, source.n_rows)
        n_components = most if isinstance(recipe.n_components, str) else min(recipe.n_components, most)
        rival = learn(replace(recipe, n_components=n_components), rows, of_rows).model
    except MemoryBudgetError:
        return model  # the machine in blocks stands
    score = task.codec.score(y, scoring_of(asked.scoring, asked.is_classifier, y), source.weights)
    outputs = held_out[latest], outputs_of_source(rival, ChosenRows(source, latest, None))
    parts = parts_of_rows(latest.size, None if groups is None else groups[latest], recipe.seed)
    gain, error = gain_and_error(score, *outputs, latest, parts)
    progress.note(
        f"{score.name} of rows left out: {score(outputs[0], latest):.4f} by {model.learned['n_rows_']:,} rows in "
        f"blocks, {score(outputs[1], latest):.4f} by {rival.features.describe()} for all rows"
    )
    return rival if gain > error else model
