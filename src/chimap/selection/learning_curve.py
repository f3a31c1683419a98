"""How the held-out score grows with the rows to learn from, computed from what a fit has in memory anyway.

``fit.learning_curve`` uses it for fits from sums, and ``leave_one_out`` for fits that keep every row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np

from chimap._validation import DataError
from chimap.model_files import register
from chimap.moments import FoldMoments, Moments
from chimap.solvers.held_out import ScoredRows
from chimap.solvers.ridge import Factor, ridge

_FEWEST = 30  # rows to learn from, or to score; with fewer, a score is mostly noise
_HALVINGS = (8, 4, 2)


@dataclass(frozen=True)
class LearningCurve:
    """Scores of machines that learned from more and more rows, on the same rows, which none of them has seen.

    All machines have the strength and the features of the machine of all rows, which is the last point.

    Parameters
    ----------
    measure : str
        Name of the score: "accuracy", "r2", or a scorer of scikit-learn; greater is better.
    rows : array of shape (k,)
        Rows to learn from, ascending.
    scores : array of shape (k,)
        Scores on the held-out rows.

    Examples
    --------
    >>> LearningCurve("accuracy", np.array([250, 500, 1000]), np.array([0.7, 0.8, 0.85])).last_gain
    0.05
    """

    measure: str
    rows: np.ndarray
    scores: np.ndarray

    @property
    def last_gain(self) -> float:
        """Gain in score of the last step: about the most that another step of the same size would add."""
        return round(float(self.scores[-1] - self.scores[-2]), 12)


def curve_of(measure: str, points: Sequence[tuple[int, float]]) -> LearningCurve | None:
    """Return the curve of (rows, score) points, without those that have no score; None if fewer than two are left."""
    kept = [(rows, score) for rows, score in points if np.isfinite(score)]
    if len(kept) < 2:
        return None
    rows, scores = zip(*kept, strict=True)
    return LearningCurve(measure, np.array(rows), np.array(scores))


def score_if_any(score: Callable[[], float]) -> float:
    """Return ``score()``, or NaN if it raises DataError.

    A subset of the rows may lack a class, or need a larger strength for its matrix to be positive definite in floating
    point. A fit should not fail because its curve lacks a point.
    """
    try:
        return score()
    except DataError:
        return float("nan")


def leading_sizes(n_rows: int, starts: np.ndarray | None = None) -> list[int]:
    """Return an eighth, a quarter and a half of the rows, as far as these are enough for a score.

    ``starts`` are the ascending places where groups of rows begin, each taken whole; None for single rows.

    >>> leading_sizes(1000), leading_sizes(40)
    ([125, 250, 500], [])
    """
    sizes = [n_rows // divisor for divisor in _HALVINGS]
    if starts is not None:
        sizes = [int(starts[starts <= size].max(initial=0)) for size in sizes]
    return [size for size in dict.fromkeys(sizes) if size >= _FEWEST]


def nested(moments: FoldMoments) -> list[Moments]:
    """Return the moments of the first fold, the first two, and so on; they overwrite the moments of the folds."""
    return list(accumulate(moments.folds, lambda sum, part: part.merge(sum)))


def growing(moments: FoldMoments) -> Iterator[Moments]:
    """Yield the moments of the first fold, the first two, and so on, without the last fold.

    All are one object, which each step updates. The moments of the folds do not change.
    """
    grown = moments.folds[0].copy()
    yield grown
    for part in moments.folds[1:-1]:
        yield grown.merge(part)


def score_growing(
    sums: Iterable[Moments], alpha: float, scored_rows: ScoredRows, factor: Factor
) -> list[tuple[int, float]]:
    """Return (rows, score) for the moments of each subset that has enough rows.

    Ridge is solved from the moments and scored on ``scored_rows``, rows that no subset contains.
    """

    def score(moments: Moments) -> float:
        machine, (shift, target_shift) = ridge(moments, alpha, factor), moments.shifts
        intercept = machine.intercept + shift @ machine.coef - target_shift
        return scored_rows.scored(scored_rows.outputs(machine.coef, np.zeros(shift.size), intercept))

    return [(moments.n_rows, score_if_any(partial(score, moments))) for moments in sums if moments.n_rows >= _FEWEST]


register(LearningCurve)
