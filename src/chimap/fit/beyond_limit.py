"""More rows than the work allows: the machine of some rows, solved block by block, against landmarks for all of them.

Which of the two is better depends on how much more the left-out rows say, so it is measured: landmarks learn from all
rows but the latest of the sweep, and both are scored on these, which neither has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from chimap._types import is_auto
from chimap._validation import MemoryBudgetError
from chimap.data import Source
from chimap.data.views import ChosenRows
from chimap.engines import Progress
from chimap.fit.collecting import Request
from chimap.fit.doubling import ModelAndOutputs
from chimap.fit.resolve import ChooseGamma, resolve
from chimap.models.model import Model
from chimap.models.predict import outputs_of_source
from chimap.recipe import Recipe
from chimap.recipe.sizes import landmarks_in
from chimap.recipe.task import Task, scoring_of
from chimap.selection.jackknife import parts_of_rows
from chimap.selection.leave_one_out import FEW_ROWS
from chimap.selection.scoring import gain_and_error
from chimap.solvers.blocks import USUAL_SECONDS

_SHARE = 0.5  # of the usual seconds of a fit that landmarks for all rows may take besides


def asks_for_rival(asked: Recipe, model: Model) -> bool:
    """Whether a fitted machine left rows out, and the user named neither features nor a time limit."""
    left_out = model.learned.get("n_unlearned_", 0) > 0
    return left_out and is_auto(asked.features) and asked.time_limit is None


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
    held_out = model.learned["held_out_"]
    latest = model.learned["row_numbers_"][-FEW_ROWS:]
    latest = np.sort(latest[~np.isnan(held_out[latest]).all(axis=1)])
    if not latest.size:
        return model
    y = source.labels()
    assert y is not None
    others = np.setdiff1d(np.arange(source.n_rows), latest)
    rows, of_rows = ChosenRows(source, others, y[others]), None if groups is None else groups[others]
    recipe = raced.unchosen("alpha", of=asked).chosen(
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
