"""The learning curve of a fit from sums: they are kept in parts, which add up to those of more and more rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from chimap._types import Scoring
from chimap._validation import MemoryBudgetError
from chimap.engines import Engine
from chimap.fit.checkpoint import Standing
from chimap.fit.plan import Plan
from chimap.fit.recipe import Recipe
from chimap.fit.rows import PreparedRows
from chimap.fit.solving import Learned
from chimap.moments import DoublingParts, Moments, RowFolds
from chimap.selection.learning_curve import LearningCurve, curve_of, growing, score_growing, score_if_any
from chimap.solvers.base import Evidence
from chimap.solvers.ridge import Factor

_FEWEST = 240  # rows whose parts are worth a curve
_MEASURED = 50  # rows held out at least


def planned(
    recipe: Recipe,
    rows: PreparedRows,
    engine: Engine,
    standing: Standing | None,
    *,
    may_keep: bool,
    has_curve: bool,
) -> tuple[Recipe, PreparedRows, Plan]:
    """Recipe and rows with the folds whose sums are kept apart, and what that takes.

    has_curve: whether they are to be parts for a learning curve where none are held out to choose and the budget allows
    it; a fit that goes on has those that it was begun with. standing: of such a fit, or None.
    """
    begun = None if standing is None or standing.stage != "learning" else len(standing.moments)
    chunk_rows = None if standing is None else standing.chunk_rows

    def over(folds: RowFolds) -> tuple[Recipe, PreparedRows, Plan]:
        own = replace(recipe, n_folds=folds.n_folds), replace(rows, folds=folds)
        return *own, Plan.of(*own, engine, may_keep=may_keep, chunk_rows=chunk_rows)

    parts = DoublingParts(rows.seed)
    is_free = rows.n_folds == 1 and recipe.objective.needs == "moments"
    if begun == parts.n_folds and is_free:
        return over(parts)
    if begun is None and is_free and has_curve and rows.source.n_rows >= _FEWEST:
        try:
            return over(parts)
        except MemoryBudgetError:
            pass  # the model alone is what was asked for first
    return over(rows.folds)


def learning_curve(
    recipe: Recipe,
    rows: PreparedRows,
    evidence: Evidence,
    learned: Learned,
    sums: Sequence[Moments],
    shown: Scoring,
) -> LearningCurve | None:
    """How the score of rows that are held out grows with those that are learned from: of ridge on sums that are there
    anyway; None where there are none.

    sums: of more and more rows, the last of all; none where the parts are folds that were held out to choose.
    shown: the score, None for accuracy or R^2.
    """
    seen, moments, last = evidence.witnesses, evidence.moments, rows.n_folds - 1
    chooses_components = isinstance(recipe.n_principal, tuple)
    if (
        recipe.objective.needs != "moments"
        or chooses_components
        or seen is None
        or moments is None
        or last < 2
    ):
        return None
    members = np.flatnonzero(rows.folds(0, rows.source.n_rows)[seen.rows] == last)
    if members.size < _MEASURED:
        return None
    tried = rows.tried(seen.of(members), shown)
    factor = Factor(moments.shift.size, recipe.device)
    points = score_growing(sums[:-1] or growing(moments), learned.solution.alpha, tried, factor)
    if sums and learned.held_out is not None:  # with each of these rows left out alone
        outputs = learned.held_out.outputs[members]
        points.append((learned.n_rows, score_if_any(partial(tried.score, outputs))))
    return curve_of(tried.measure, points)
