"""How the held-out score grows with the rows to learn from, from what one fit has in memory anyway."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np

from chimap._validation import DataError
from chimap.model_files import register
from chimap.moments import FoldMoments, Moments
from chimap.selection.tried import TriedRows
from chimap.solvers.ridge import Factor, ridge

_FEWEST = 30  # rows to learn from, and rows to be measured on, below which a score says little
_HALVINGS = (8, 4, 2)


@dataclass(frozen=True)
class LearningCurve:
    """Scores of machines that learned from more and more rows, all on the same rows, which none of them has seen.

    They have the strength and the features of the machine of all rows, the last point.

    Parameters
    ----------
    measure : str
        What the scores are: "accuracy", "r2", or the name of a scorer of scikit-learn; greater is better.
    rows : array (k,)
        Rows to learn from, ascending.
    scores : array (k,)
        On the rows held out.

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
        """What the last step added to the score: about what as large a step more would add at most."""
        return round(float(self.scores[-1] - self.scores[-2]), 12)


def curve_of(measure: str, points: list[tuple[int, float]]) -> LearningCurve | None:
    """Of (rows, score); points without a score are left out, and None is returned where fewer than two are left."""
    kept = [(rows, score) for rows, score in points if np.isfinite(score)]
    if len(kept) < 2:
        return None
    rows, scores = zip(*kept, strict=True)
    return LearningCurve(measure, np.array(rows), np.array(scores))


def score_if_any(score: Callable[[], float]) -> float:
    """A score; NaN where fewer rows have none, for want of a class or of a strength beyond the rounding of their sums.

    A fit does not fail for want of a point of its curve.
    """
    try:
        return score()
    except DataError:
        return float("nan")


def leading_sizes(n_rows: int, starts: np.ndarray | None = None) -> list[int]:
    """An eighth, a quarter and a half of so many rows, as far as they are enough to say something.

    starts: ascending places where groups of rows begin, each taken whole; None where rows stand alone.

    >>> leading_sizes(1000), leading_sizes(40)
    ([125, 250, 500], [])
    """
    sizes = [n_rows // part for part in _HALVINGS]
    if starts is not None:
        sizes = [int(starts[starts <= size].max(initial=0)) for size in sizes]
    return [size for size in dict.fromkeys(sizes) if size >= _FEWEST]


def nested(moments: FoldMoments) -> list[Moments]:
    """Moments of the first part, the first two, and so on: in the memory of the parts, which are no more."""
    return list(accumulate(moments.folds, lambda sum, part: part.merge(sum)))


def growing(moments: FoldMoments) -> Iterator[Moments]:
    """The same of all parts but the last, one after the other in the memory of one; the parts stay."""
    grown = moments.folds[0].copy()
    yield grown
    for part in moments.folds[1:-1]:
        yield grown.merge(part)


def score_growing(
    sums: Iterable[Moments], alpha: float, tried: TriedRows, factor: Factor
) -> list[tuple[int, float]]:
    """(rows, score of the ridge on them for rows that are in none of these sums)."""

    def score(own: Moments) -> float:
        machine, (shift, target_shift) = ridge(own, alpha, factor), own.shifts
        intercept = machine.intercept + shift @ machine.coef - target_shift
        return tried.scored(tried.outputs(machine.coef, np.zeros(shift.size), intercept))

    return [(own.n_rows, score_if_any(partial(score, own))) for own in sums if own.n_rows >= _FEWEST]


register(LearningCurve)
