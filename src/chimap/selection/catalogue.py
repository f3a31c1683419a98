"""The catalogue of selection rules, in the order in which ``choose`` tries them: it takes the first that serves."""

from __future__ import annotations

from collections.abc import Callable

from chimap.selection.base import OpenSettings, Selection
from chimap.selection.components import ComponentFolds, PrincipalFolds
from chimap.selection.folds import FoldMachines, Folds, PathFolds
from chimap.selection.gcv import GeneralisedCrossValidation
from chimap.selection.holdout import HeldOutMoments, HoldOut, PathHoldOut
from chimap.selection.leave_one_out import LeavingOut
from chimap.solvers.base import Asked, Problem

RULES: tuple[type[Selection], ...] = (
    LeavingOut,
    FoldMachines,
    PathFolds,
    PathHoldOut,
    PrincipalFolds,
    ComponentFolds,
    HeldOutMoments,
    Folds,
    GeneralisedCrossValidation,
    HoldOut,
)
"""The first rule that serves is taken."""


def rule_of(problem: Problem, open: OpenSettings, asked: Asked, on_score: Callable[[], None]) -> Selection | None:
    """Return the first rule that serves; None if nothing is open, or there are too few rows to hold some out.

    ``on_score`` is called after each score.
    """
    if isinstance(open.alpha, float) and not problem.compares:
        return None
    return next((rule(on_score) for rule in RULES if rule.serves(problem, asked)), None)
