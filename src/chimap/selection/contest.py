"""Whether a sweep over blocks of rows goes on, by machines that cost one pass and are scored on the same rows.

Some rows are watched: no rival learns from them, and the sweep does so last. After each block it has a score s(n) for
them, whose differences have a small error, as the rows stay the same. A line

    s(n) = a + b / sqrt(n)

fitted to the scores of the last two octaves of rows says what the rows that are left would add. The sweep ends where
that does not bring it ahead of the best rival by more than the standard error of their difference; and where it adds
less than the error of what those octaves have added, and would take long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from chimap.selection.jackknife import deviations_of, error_between
from chimap.selection.scoring import OutputScore
from chimap.solvers.base import Standing

OCTAVES = 2  # of rows, whose scores a line is fitted to
SECONDS_WORTH_SAVING = 30.0  # of counted work: a sweep that ends sooner is not ended because it is flat
_FEWEST_POINTS = 3  # scores that tell a flat curve


@dataclass(frozen=True, eq=False)
class Contest:
    """Rivals of a sweep, and the rows that are watched.

    Parameters
    ----------
    places : array of shape (m,)
        Ascending places of the watched rows in the source.
    score : OutputScore
        The score of outputs for rows of the source.
    parts : array of shape (m,)
        The part of each of them, for errors of scores.
    rivals : sequence of Standing
        The standings of the rivals.
    seconds : callable
        Returns the seconds of a sweep over so many rows, by its operations.

    Examples
    --------
    >>> from chimap.selection.scoring import HeldOutScore
    >>> y = np.arange(20.0)
    >>> still = [Standing(n, 0.8, np.zeros(2)) for n in (1000, 2000, 4000)]
    >>> rival = Standing(8000, 0.9, np.zeros(2))
    >>> contest = Contest(np.arange(20), HeldOutScore(y, None), np.arange(20) % 2, [rival], lambda n: n / 100)
    >>> contest.verdict(still, 8000, [])
    'rivals of one pass are ahead'
    >>> contest.verdict([Standing(1000, 0.6, np.zeros(2)), Standing(2000, 0.75, np.zeros(2))], 8000, [])
    ''
    """

    places: np.ndarray
    score: OutputScore
    parts: np.ndarray
    rivals: Sequence[Standing]
    seconds: Callable[[int], float]

    def standing(self, outputs: np.ndarray, n_rows: int) -> Standing:
        """Return the standing of a machine of so many rows, by its outputs (m, t) for the watched rows."""
        return Standing(
            n_rows,
            self.score(outputs, self.places),
            deviations_of(self.score.without_each(outputs, self.places, self.parts)),
        )

    def verdict(self, curve: Sequence[Standing], n_end: int, growth: Sequence[tuple[int, float]]) -> str:
        """Return why a sweep ends that would go on to ``n_end`` rows; empty if it goes on.

        ``curve`` are its standings, the last one now. ``growth`` are rows and scores of machines of fewer rows, on
        other rows, which tell the slope as long as there is one standing.
        """
        now = curve[-1]
        points = [(each.n_rows, each.score) for each in curve if each.n_rows * 2**OCTAVES >= now.n_rows]
        further = gain_to(n_end, points if len(points) > 1 else growth)
        best = max(self.rivals, key=lambda rival: rival.score, default=None)
        if best is not None and now.score - best.score + further <= error_between(now, best):
            return "rivals of one pass are ahead" if best.score > now.score else "rivals of one pass are as good"
        is_long = self.seconds(n_end) - self.seconds(now.n_rows) > SECONDS_WORTH_SAVING
        if is_long and len(points) >= _FEWEST_POINTS and further <= error_between(now, curve[-len(points)]):
            return "more rows add less than an error"
        return ""


def gain_to(n_end: int, points: Sequence[tuple[int, float]]) -> float:
    """Return what a line fitted to scores over 1 / sqrt(rows) adds from the last of them to ``n_end`` rows, at least 0.

    It is infinite for fewer than two points, as these tell nothing.

    >>> round(gain_to(400, [(25, 0.6), (100, 0.7)]), 3), gain_to(400, [(100, 0.7)])
    (0.05, inf)
    """
    known = [(n, score) for n, score in points if np.isfinite(score)]
    if len(known) < 2:
        return float("inf")
    rows, scores = (np.array(column, dtype=np.float64) for column in zip(*known, strict=True))
    slope = np.polyfit(rows**-0.5, scores, 1)[0]
    return max(0.0, float(slope * (n_end**-0.5 - rows[-1] ** -0.5)))
