"""Whether a fit takes columns that it may do without, such as pairs of words beside words: by rows that it leaves out.

Linear ridge on tf-idf rows, the cheapest machine of words, learns from the rows of a split, once with all columns and
once without the optional ones. These are taken where the rows that are left out are predicted better, by more than the
standard error of the difference.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap._formatting import measure_in_words
from chimap._threads import threads
from chimap._types import ArrayLike
from chimap._validation import DataError, MemoryBudgetError
from chimap.data import Source
from chimap.data.views import ChosenColumns, ChosenRows, WithLabels
from chimap.engines import Progress
from chimap.fit.fit import fit_candidate
from chimap.models.predict import outputs_of_source
from chimap.race.rows import held_out_rows
from chimap.recipe import Recipe
from chimap.recipe.task import Task, scoring_of
from chimap.selection.jackknife import deviations_of, error_between, is_behind, parts_of_rows
from chimap.selection.scoring import OutputScore
from chimap.solvers.base import Standing

MOST_ROWS = 20_000  # to learn from: ridge on as many texts takes seconds


def with_settled_columns(source: Source, recipe: Recipe, groups: ArrayLike | None, progress: Progress) -> Source:
    """Return a source with the columns that a fit takes, and the reading that makes them; all others as they are.

    Parameters
    ----------
    source : Source
        The rows and their labels, with optional columns or without.
    recipe : Recipe
        The settings of the fit.
    groups : array of shape (n,) or None
        Groups of the rows, which are left out together.
    progress : Progress
        Informed of the fits, and of the scores.
    """
    if not source.n_optional:
        return source
    columns = source.n_features - source.n_optional
    alone, both = (ChosenColumns(source, range(n)) for n in (columns, source.n_features))
    alone.reading, both.reading = (source.reading.settled(keeps) for keeps in (False, True))
    what = source.reading.optional_name
    with threads(recipe.n_jobs), progress:
        progress.stage(what, 2, "machines")
        try:
            score, (own, wide) = _standings((alone, both), recipe, groups, progress)
        except (DataError, MemoryBudgetError) as error:
            progress.note(f"{what} are not counted, as no texts could be left out: {error}")
            return alone
    takes = is_behind(own, wide, 1.0)
    progress.note(
        f"{what} are {'' if takes else 'not '}counted: {measure_in_words(score.name)} {wide.score:.4f} with them and "
        f"{own.score:.4f} without, ± {error_between(own, wide):.4f}, of texts left out"
    )
    return both if takes else alone


def _standings(
    choices: Sequence[Source], recipe: Recipe, groups: ArrayLike | None, progress: Progress
) -> tuple[OutputScore, list[Standing]]:
    """Return the score, and the standings of linear ridge on the same rows with other columns."""
    task, rows, of_rows = Task.of(choices[0], recipe, groups)
    y = rows.labels()
    assert y is not None
    score = task.codec.score(y, scoring_of(recipe.scoring, recipe.is_classifier, y), rows.weights)
    splits = held_out_rows(np.arange(len(y)), y, of_rows, recipe.is_classifier, recipe.seed)
    scored = np.concatenate([test for _, test in splits])
    parts = parts_of_rows(scored.size, None if of_rows is None else of_rows[scored], recipe.seed)
    ridge = Recipe(
        recipe.estimator,
        False,
        "linear",
        normalize="tf-idf",
        memory=recipe.memory,
        n_jobs=recipe.n_jobs,
        seed=recipe.seed,
    )
    targets, standings = np.asarray(task.codec.encode(y)) if recipe.is_classifier else y, []
    for choice in choices:
        _, rows, _ = Task.of(choice, recipe, groups)
        rows = WithLabels(rows, targets[:, 0] if targets.ndim == 2 and targets.shape[1] == 1 else targets)
        outputs = np.concatenate([_left_out(rows, train[:MOST_ROWS], test, ridge, of_rows) for train, test in splits])
        without = score.without_each(outputs, scored, parts)
        standings.append(Standing(rows.n_rows, score(outputs, scored), deviations_of(without)))
        progress.advance()
    return score, standings


def _left_out(
    rows: Source, train: np.ndarray, test: np.ndarray, recipe: Recipe, groups: np.ndarray | None
) -> np.ndarray:
    """Return the outputs (m, t) for some rows of a machine that has learned from others."""
    y = rows.labels()
    assert y is not None
    train, order = np.sort(train), np.argsort(test)
    of_train = None if groups is None or np.unique(groups[train]).size < 2 else groups[train]
    model = fit_candidate(recipe, ChosenRows(rows, train, y[train]), of_train)
    sorted_outputs = outputs_of_source(model, ChosenRows(rows, test[order], None))
    return sorted_outputs[np.argsort(order)]
