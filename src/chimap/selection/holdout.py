"""One fold held out: for losses that take passes over the rows, where more folds would be dear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from chimap.selection.base import Choice, SelectionResult
from chimap.selection.folds import rough_alpha
from chimap.solvers.base import Asked, Needs, Trials

_STEP = 10**0.5  # from a strength to the next that is tried
_MOST_STEPS = 10
_LITTLE = 1e-3  # of the loss: a step that gains less is the last


class HoldOut:
    """The least loss on the rows of fold 0, each strength fitted on the others.

    Without strengths to compare it goes down from a first one by half decades, or up, while the loss falls by a
    thousandth a step. The first is about the best of ridge where there are moments.
    """

    rule: ClassVar[str] = "holdout"
    usual_scores: ClassVar[int | None] = None

    def __init__(self, on_score: Callable[[], None] = lambda: None):
        """Steps are told by the solver: ``on_score`` is not called."""

    @classmethod
    def serves(cls, needs: Needs, n_folds: int, n_rows: int, asked: Asked) -> bool:
        """See ``Selection``."""
        return needs != "moments" and n_folds > 1

    def choose(self, problem: Trials, alphas: Sequence[float] | None) -> Choice:
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

    def _first(self, problem: Trials) -> float:
        if problem.moments is None or problem.loss is None:
            return problem.usual_alpha()
        return rough_alpha(problem.moments, problem.moments.whole(), left_out=[0]) * problem.loss.curvature


def _result(losses: dict[float, float]) -> SelectionResult:
    alphas = np.array(sorted(losses))
    scores = np.array([losses[alpha] for alpha in alphas])
    # of equals the largest: rows that are told apart with room to spare are so whatever the strength
    chosen = int(np.flatnonzero(scores == scores.min())[-1])
    return SelectionResult("holdout", {"alpha": alphas}, scores[:, None], np.ones(1), chosen, measure="loss")
