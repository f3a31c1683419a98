"""The catalogue of selection rules, in the order in which they are tried.

``fit.solving`` calls ``rule_of`` where the strength is open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chimap.selection.base import Selection
from chimap.selection.folds import Folds
from chimap.selection.gcv import GeneralisedCrossValidation
from chimap.selection.holdout import HeldOutMoments, HoldOut
from chimap.solvers.base import Asked, Needs

RULES = (HeldOutMoments, Folds, GeneralisedCrossValidation, HoldOut)
"""The first rule that serves is taken."""


def rule_of(
    needs: Needs, n_folds: int, n_rows: int, asked: Asked, on_score: Callable[[], None]
) -> Selection[Any] | None:
    """Return the first rule that serves a solver with these needs; None if there are too few rows to hold some out.

    ``on_score`` is called after each score.
    """
    for rule in RULES:
        if rule.serves(needs, n_folds, n_rows, asked):
            return rule(on_score)
    return None
