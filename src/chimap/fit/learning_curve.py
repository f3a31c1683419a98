"""The learning curve of a fit from sums.

``fit.fit`` keeps the sums in parts of an eighth, an eighth, a quarter and a half of the rows, or in folds if rows are
held out to choose. Parts add up to the sums of more and more rows, and ridge on each of these is scored on rows of the
last part.
"""

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

_FEWEST = 240  # rows; a curve of fewer is not worth its parts
_MEASURED = 50  # rows to score at least


def planned(
    recipe: Recipe,
    rows: PreparedRows,
    engine: Engine,
    standing: Standing | None,
    *,
    may_keep: bool,
    has_curve: bool,
) -> tuple[Recipe, PreparedRows, Plan]:
    """Plan the fit, and return the recipe and rows with the folds whose sums are kept apart.

    With ``has_curve`` these are the parts of a learning curve, if no folds are held out to choose and the budget allows
    it. A resumed fit, whose state is ``standing``, keeps the folds that it began with.
    """
    begun = None if standing is None or standing.stage != "learning" else len(standing.moments)
    chunk_rows = None if standing is None else standing.chunk_rows

    def over(folds: RowFolds) -> tuple[Recipe, PreparedRows, Plan]:
        planned_fit = replace(recipe, n_folds=folds.n_folds), replace(rows, folds=folds)
        return *planned_fit, Plan.of(*planned_fit, engine, may_keep=may_keep, chunk_rows=chunk_rows)

    parts = DoublingParts(rows.seed)
    is_free = rows.n_folds == 1 and recipe.objective.needs == "moments"
    if begun == parts.n_folds and is_free:
        return over(parts)
    if begun is None and is_free and has_curve and rows.source.n_rows >= _FEWEST:
        try:
            return over(parts)
        except MemoryBudgetError:
            pass  # the model comes first: do without the curve
    return over(rows.folds)


def learning_curve(
    recipe: Recipe,
    rows: PreparedRows,
    evidence: Evidence,
    learned: Learned,
    sums: Sequence[Moments],
    shown: Scoring,
) -> LearningCurve | None:
    """Return how the score of held-out rows grows with the rows learned from, by ridge on the sums of the fit.

    ``sums`` are moments of more and more rows, the last of all rows, or empty if the moments are folds that were held
    out to choose. ``shown`` is the score, None for accuracy or R^2. The curve is None if the fit has no suitable sums
    or too few rows to score.
    """
    witnesses, moments, last = evidence.witnesses, evidence.moments, rows.n_folds - 1
    chooses_components = isinstance(recipe.n_principal, tuple)
    if (
        recipe.objective.needs != "moments"
        or chooses_components
        or witnesses is None
        or moments is None
        or last < 2
    ):
        return None
    members = np.flatnonzero(rows.folds(0, rows.source.n_rows)[witnesses.rows] == last)
    if members.size < _MEASURED:
        return None
    tried = rows.tried(witnesses.of(members), shown)
    factor = Factor(moments.shift.size, recipe.device)
    points = score_growing(sums[:-1] or growing(moments), learned.solution.alpha, tried, factor)
    if sums and learned.held_out is not None:  # the last point: each of these rows was left out alone
        outputs = learned.held_out.outputs[members]
        points.append((learned.n_rows, score_if_any(partial(tried.score, outputs))))
    return curve_of(tried.measure, points)
