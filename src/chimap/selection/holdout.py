"""The rule of one held-out fold, for losses that take passes over the rows: more folds would be expensive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from chimap.selection.base import Choice, SelectionResult
from chimap.selection.folds import rough_alpha
from chimap.solvers.base import Asked, Needs, TrialProblem

_STEP = 10**0.5  # factor from one strength to the next
_MOST_STEPS = 10
_LITTLE = 1e-3  # the search ends with a step that gains less than this share of the loss


class HoldOut:
    """Choose the least loss on the rows of fold 0, with each strength fitted on the other rows.

    A search without given strengths goes from a first one by half decades, down or else up, while the loss falls by a
    thousandth for each step. If there are moments, the first strength is roughly the best one of ridge.
    """

    rule: ClassVar[str] = "holdout"
    usual_scores: ClassVar[int | None] = None

    def __init__(self, on_score: Callable[[], None] = lambda: None):
        """Ignore ``on_score``: the solver reports its own steps."""

    @classmethod
    def serves(cls, needs: Needs, n_folds: int, n_rows: int, asked: Asked) -> bool:
        """See ``Selection``."""
        return needs != "moments" and n_folds > 1

    def choose(self, problem: TrialProblem, alphas: Sequence[float] | None) -> Choice:
        """See ``Selection``."""
        losses: dict[float, float] = {}

        def loss(alpha: float) -> float:
            if alpha not in losses:
                losses[alpha] = problem.trial(alpha)
            return losses[alpha]

        if alphas is not None:
            for alpha in sorted(alphas, reverse=True):
                loss(float(alpha))
            return _result(losses), None
        first = self._first(problem)

        def at(step: int) -> float:
            return loss(first * _STEP**step)

        direction = -1 if at(-1) < at(0) else 1
        for k in range(_MOST_STEPS):
            before = at(direction * k)
            if at(direction * (k + 1)) >= before - _LITTLE * abs(before):
                break
        return _result(losses), None

    def _first(self, problem: TrialProblem) -> float:
        """Return the strength to begin with."""
        if problem.moments is None or problem.loss is None:
            return problem.usual_alpha()
        return rough_alpha(problem.moments, problem.moments.whole(), left_out=[0]) * problem.loss.curvature


def _result(losses: dict[float, float]) -> SelectionResult:
    """Return the losses as a result, which chooses the smallest."""
    alphas = np.array(sorted(losses))
    scores = np.array([losses[alpha] for alpha in alphas])
    # Ties go to the largest: classes that are separated with a margin have no loss whatever the strength.
    chosen = int(np.flatnonzero(scores == scores.min())[-1])
    return SelectionResult("holdout", {"alpha": alphas}, scores[:, None], np.ones(1), chosen, measure="loss")
