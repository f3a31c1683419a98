"""The learning curve of a fit from sums.

A collector of sums keeps them in parts of an eighth, an eighth, a quarter and a half of the rows, or in folds if rows
are held out to choose. Parts add up to the sums of more and more rows, and ridge on each of these is scored on rows of
the last part.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from chimap._types import Scoring
from chimap.fit.method import Method
from chimap.fit.rows import PreparedRows
from chimap.moments import Moments
from chimap.selection.choose import ChosenSolution
from chimap.selection.learning_curve import LearningCurve, curve_of, growing, score_growing, score_if_any
from chimap.solvers.base import Evidence
from chimap.solvers.ridge import Factor

DOUBLING_ROWS = 240  # a curve of fewer rows is not worth its parts
_MEASURED = 50  # rows to score at least


def learning_curve(
    method: Method,
    rows: PreparedRows,
    evidence: Evidence,
    learned: ChosenSolution,
    sums: Sequence[Moments],
    shown: Scoring,
) -> LearningCurve | None:
    """Return how the score of held-out rows grows with the rows learned from, by ridge on the sums of the fit.

    ``sums`` are moments of more and more rows, the last of all rows, or empty if the moments are folds that were held
    out to choose. ``shown`` is the score, None for accuracy or R^2. The curve is None if the fit has no suitable sums
    or too few rows to score.
    """
    witnesses, moments, last = evidence.witnesses, evidence.moments, rows.n_folds - 1
    chooses_components = isinstance(method.n_principal, tuple)
    if chooses_components or witnesses is None or moments is None or last < 2:
        return None
    members = np.flatnonzero(rows.folds(0, rows.source.n_rows)[witnesses.rows] == last)
    if members.size < _MEASURED:
        return None
    scored_rows = rows.scored(witnesses.of(members), shown)
    factor = Factor(moments.shift.size, method.recipe.device)
    points = score_growing(sums[:-1] or growing(moments), learned.solution.alpha, scored_rows, factor)
    if sums and learned.held_out is not None:  # the last point: each of these rows was left out alone
        outputs = learned.held_out.outputs[np.searchsorted(learned.held_out.rows, witnesses.rows[members])]
        points.append((learned.n_rows, score_if_any(partial(scored_rows.score, outputs))))
    return curve_of(scored_rows.measure, points)
