"""The rule for ridge that scores held-out rows: from the moments of the other rows and the features of these.

It serves ``selection="holdout"``; the rows of fold 0 are the ones held out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.selection.base import Choice, SelectionResult
from chimap.solvers.base import Asked, Needs, Tried
from chimap.solvers.from_moments import RidgeProblem
from chimap.solvers.ridge import ridge

_MOST_STEPS = 20  # half decades down
_LESS = 0.999  # of two strengths with the same score, the error of the better one is below this share of the other's


class HeldOutMoments:
    """Choose the best score of predictions for rows of fold 0, with each strength solved from the other rows' moments.

    A search without given strengths goes down by decades from a tenth of the mean scatter of a feature while the score
    improves, and then tries the half decades beside the best. Of equal scores, that with the smaller squared error is
    better.
    """

    rule: ClassVar[str] = "holdout"
    usual_scores: ClassVar[int | None] = 6

    def __init__(self, on_score: Callable[[], None] = lambda: None):
        self._on_score = on_score

    @classmethod
    def serves(cls, needs: Needs, n_folds: int, n_rows: int, asked: Asked) -> bool:
        """See ``Selection``."""
        return needs == "moments" and asked == "holdout" and n_folds == 2

    def choose(self, problem: RidgeProblem, alphas: Sequence[float] | None) -> Choice:
        """See ``Selection``. Raises DataError if every strength is too small."""
        tried, rest = problem.tried, problem.moments.folds[1]
        if tried is None or not len(tried) or not rest.n_rows:
            raise DataError(
                Message("too few rows to hold some out: give {selection='gcv'}, or {alpha} as one number.")
            )
        scores: dict[float, tuple[float, float]] = {}

        def at(alpha: float) -> tuple[float, float]:
            """Return (score, minus the squared error) of a strength."""
            if alpha not in scores:
                scores[alpha] = self._score(problem, tried, alpha)
                self._on_score()
            return scores[alpha]

        if alphas is not None:
            for alpha in alphas:
                at(float(alpha))
        else:
            scale = problem.scale or 1.0
            step = -2
            while step > -_MOST_STEPS and _beats(
                at(scale * 10 ** (step / 2 - 1)), at(scale * 10 ** (step / 2))
            ):
                step -= 2
            for neighbour in (step - 1, step + 1):
                at(scale * 10 ** (neighbour / 2))
        return _result(scores, tried.measure), None

    def _score(self, problem: RidgeProblem, tried: Tried, alpha: float) -> tuple[float, float]:
        """Return (score, minus the squared error) of a strength; -inf if it is too small."""
        rest = problem.moments.folds[1]
        try:
            solution = ridge(rest, alpha, problem.factor)
        except DataError:
            return -np.inf, -np.inf
        origin, mean = rest.feature_sum / rest.count, rest.target_sum / rest.count
        outputs = tried.outputs(solution.coef, origin, mean)
        errors = np.square(tried.Y - outputs).sum(axis=1)
        return tried.scored(outputs), -float(np.average(errors, weights=tried.counted))


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether one pair of (score, minus squared error) is better than another, by more than rounding."""
    return one[0] > other[0] or (one[0] == other[0] and -one[1] < _LESS * -other[1])


def _result(scores: dict[float, tuple[float, float]], measure: str) -> SelectionResult:
    """Return the scores as a result, which chooses the best; raise DataError if none is finite."""
    alphas = sorted(scores)
    best = alphas[-1]
    for alpha in alphas[-2::-1]:
        best = alpha if _beats(scores[alpha], scores[best]) else best
    if not np.isfinite(scores[best][0]):
        raise DataError(
            Message(
                "none of {alpha=!s} is large enough: the features are linearly dependent to rounding. Give larger "
                "ones, or {alpha='auto'}.",
                alphas,
            )
        )
    return SelectionResult(
        HeldOutMoments.rule,
        {"alpha": np.array(alphas)},
        np.array([[scores[alpha][0]] for alpha in alphas]),
        np.ones(1),
        alphas.index(best),
        measure,
        greater_is_better=True,
    )
