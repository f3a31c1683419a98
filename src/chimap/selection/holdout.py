"""The rules of one held-out fold, fold 0.

``HoldOut`` serves losses that take passes over the rows, for which more folds would be expensive. ``HeldOutMoments``
serves ridge with ``selection="holdout"``: rows are scored from the moments of the other rows and their features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.selection.base import Compared, OpenSettings, Selection, SelectionResult
from chimap.selection.climb import Scored, Setting, climb
from chimap.selection.folds import rough_alpha
from chimap.solvers.base import TrialProblem
from chimap.solvers.from_moments import RidgeProblem
from chimap.solvers.held_out import ScoredRows
from chimap.solvers.ridge import ridge

if TYPE_CHECKING:
    from chimap.solvers.groups import GroupPassesProblem

_HALF_DECADE = 10**0.5  # factor from one strength to the next
_MOST_HALF_DECADES = 10
_PLATEAU = 1e-2  # share of the loss that strengths a decade apart differ by on a plateau
_LEAST_GAIN = 1e-3  # the search ends with a step that gains less than this share of the loss


class HoldOut(Selection):
    """Choose the least loss on the rows of fold 0, with each strength fitted on the other rows.

    A search without given strengths goes from a first one by half decades, down or else up, while the loss falls by a
    thousandth for each step. If there are moments, the first strength is roughly the best one of ridge; where all
    strengths about it are as good, as machines that meet every target are for quantiles, it begins above them.
    """

    rule: ClassVar[str] = "holdout"

    def choose(self, problem: TrialProblem, open: OpenSettings) -> Compared:
        losses: dict[float, float] = {}

        def loss(alpha: float) -> float:
            if alpha not in losses:
                losses[alpha] = problem.trial(alpha)
            return losses[alpha]

        if open.alpha is not None:
            for alpha in sorted(np.atleast_1d(open.alpha).tolist(), reverse=True):
                loss(alpha)
            return Compared(_of_losses(losses), problem)
        first = self._first(problem)

        def at(step: int) -> float:
            return loss(first * _HALF_DECADE**step)

        def is_as_good(setting: Setting, best: Setting) -> bool:
            return setting[0] <= _MOST_HALF_DECADES and abs(at(setting[0]) / at(best[0]) - 1) <= _PLATEAU

        begins = (0, 0)
        if problem.loss is not None and problem.loss.has_plateau:
            begins = climb(is_as_good, begins, [(2, 0)])

        def better(setting: Setting, best: Setting) -> bool:
            before = at(best[0])
            is_in_range = abs(setting[0] - begins[0]) <= _MOST_HALF_DECADES
            return is_in_range and at(setting[0]) < before - _LEAST_GAIN * abs(before)

        climb(better, begins, [(-1 if at(begins[0] - 1) < at(begins[0]) else 1, 0)])
        return Compared(_of_losses(losses), problem)

    def _first(self, problem: TrialProblem) -> float:
        """Return the strength to begin with."""
        if problem.moments is None or problem.loss is None:
            return problem.usual_alpha()
        return rough_alpha(problem.moments, problem.moments.whole(), left_out=[0]) * problem.loss.usual_curvature


def _of_losses(losses: dict[float, float]) -> SelectionResult:
    """Return the losses as a result, which chooses the smallest."""
    alphas = np.array(sorted(losses))
    scores = np.array([losses[alpha] for alpha in alphas])
    # Ties go to the largest: classes that are separated with a margin have no loss whatever the strength.
    chosen = int(np.flatnonzero(scores == scores.min())[-1])
    return SelectionResult("holdout", {"alpha": alphas}, scores[:, None], np.ones(1), chosen, measure="loss")


_MOST_HALF_DECADES_DOWN = 20  # half decades down


class HeldOutMoments(Selection):
    """Choose the best score of predictions for rows of fold 0, with each strength solved from the other rows' moments.

    A search without given strengths goes down by decades from a tenth of the mean scatter of a feature while the score
    improves, and then tries the half decades beside the best. Of equal scores, that with the smaller squared error is
    better.
    """

    rule: ClassVar[str] = "holdout"
    usual_scores: ClassVar[int | None] = 6

    def choose(self, problem: RidgeProblem, open: OpenSettings) -> Compared:
        """See ``Selection``. Raises DataError if every strength is too small."""
        scored_rows, rest = problem.scored_rows, problem.moments.folds[1]
        if scored_rows is None or not len(scored_rows) or not rest.n_rows:
            raise DataError(Message("too few rows to hold some out: give {selection='gcv'}, or {alpha} as one number."))
        scores: dict[float, Scored] = {}

        def at(alpha: float) -> Scored:
            if alpha not in scores:
                scores[alpha] = self._score(problem, scored_rows, alpha)
                self._on_score()
            return scores[alpha]

        if open.alpha is not None:
            for alpha in np.atleast_1d(open.alpha).tolist():
                at(alpha)
        else:
            scale = problem.scale or 1.0

            def better(setting: Setting, best: Setting) -> bool:
                incumbent, is_in_range = at(scale * 10 ** (best[0] / 2)), setting[0] >= -_MOST_HALF_DECADES_DOWN
                return is_in_range and at(scale * 10 ** (setting[0] / 2)).beats(incumbent)

            place, _ = climb(better, (-2, 0), [(-2, 0)])
            for neighbour in (place - 1, place + 1):
                at(scale * 10 ** (neighbour / 2))
        return Compared(_of_scores(scores, scored_rows.measure), problem)

    def _score(self, problem: RidgeProblem, scored_rows: ScoredRows, alpha: float) -> Scored:
        """Return the score and the squared error of a strength; -inf if it is too small."""
        rest = problem.moments.folds[1]
        try:
            solution = ridge(rest, alpha, problem.factor)
        except DataError:
            return Scored(-np.inf, np.inf)
        origin, mean = rest.feature_sum / rest.count, rest.target_sum / rest.count
        outputs = scored_rows.outputs(solution.coef, origin, mean)
        errors = np.square(scored_rows.Y - outputs).sum(axis=1)
        return Scored(scored_rows.scored(outputs), float(np.average(errors, weights=scored_rows.counted)))


def _of_scores(scores: dict[float, Scored], measure: str) -> SelectionResult:
    """Return the scores as a result, which chooses the best; raise DataError if none is finite."""
    alphas = sorted(scores)
    best = alphas[-1]
    for alpha in alphas[-2::-1]:
        best = alpha if scores[alpha].beats(scores[best]) else best
    if not np.isfinite(scores[best].score):
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
        np.array([[scores[alpha].score] for alpha in alphas]),
        np.ones(1),
        alphas.index(best),
        measure,
        greater_is_better=True,
    )


class PathHoldOut(Selection):
    """The rule of one held-out fold along a path of strengths, for losses that take passes over the rows.

    With too few rows to hold some out, the path is followed to its middle.
    """

    rule: ClassVar[str] = "holdout"
    compares_more: ClassVar[bool] = True

    def choose(self, problem: GroupPassesProblem, open: OpenSettings) -> Compared:
        if open.is_fixed or problem.n_folds == 1:
            alphas = open.path_below(problem.largest, problem.smallest)
            alphas = alphas if alphas.size == 1 else alphas[: alphas.size // 2 + 1]
            problem.along(alphas)
            return Compared(None, problem, alpha=float(alphas[-1]))
        losses = problem.search(lambda largest: open.path_below(largest, problem.smallest))
        settings = {"alpha": np.array([point.alpha for point in problem.path])}
        chosen = int(np.argmin(losses))
        result = SelectionResult(self.rule, settings, np.array(losses)[:, None], np.ones(1), chosen, measure="loss")
        return Compared(result, problem)
