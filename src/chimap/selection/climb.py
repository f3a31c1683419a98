"""Hill climbing on a grid of settings, most of which are never tried."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from chimap.moments import of_entries

Setting = tuple[int, int]  # (place of the strength, octaves of gamma)

HALF_DECADES = 12  # how far strengths may move from their scale
LESS = 0.999  # of equal scores, the better one has an error below this share of the other's


@dataclass(frozen=True)
class Scored:
    """The score of a setting, greater is better, and an error that breaks ties."""

    score: float
    error: float

    def beats(self, other: Scored) -> bool:
        """Whether it is better; with equal scores the error must be smaller by more than rounding may explain."""
        return self.score > other.score or (self.score == other.score and self.error < LESS * other.error)


def climb(better: Callable[[Setting, Setting], bool], best: Setting, steps: Sequence[tuple[int, int]]) -> Setting:
    """Move from a setting to a better one among those a step away, until none is better.

    ``better`` tells whether its first argument is in range and beats the second.

    >>> climb(lambda a, b: abs(a[0] - 5) < abs(b[0] - 5), (0, 0), [(-1, 0), (1, 0)])
    (5, 0)
    """
    while True:
        for step in steps:
            neighbour = best[0] + step[0], best[1] + step[1]
            if better(neighbour, best):
                best = neighbour
                break
        else:
            return best


Trial = TypeVar("Trial", bound=Scored)


class SettingSearch(ABC, Generic[Trial]):
    """A search over the settings of kernel machines, each of which is scored once.

    Parameters
    ----------
    alphas : sequence of float or None
        Strengths to choose from, ascending; None for half decades of the scale.
    octaves : int
        Gamma may be 2^-octaves to 2^octaves times its starting value.
    """

    def __init__(self, alphas: Sequence[float] | None, octaves: int):
        self.alphas, self.octaves = alphas, octaves
        self.trials: dict[Setting, Trial] = {}

    @property
    @abstractmethod
    def scale(self) -> float:
        """The unit of strengths."""

    @abstractmethod
    def scored(self, setting: Setting, alpha: float) -> Trial:
        """Score a setting of this strength; -inf where it cannot be solved."""

    def alpha(self, place: int) -> float | None:
        """Return the strength at a place; None out of range."""
        if self.alphas is None:
            return self.scale * 10 ** (place / 2) if abs(place) <= HALF_DECADES else None
        return float(self.alphas[place]) if 0 <= place < len(self.alphas) else None

    def trial(self, setting: Setting) -> Trial | None:
        """Return the score of a setting; None out of range."""
        alpha = self.alpha(setting[0])
        if alpha is None or abs(setting[1]) > self.octaves:
            return None
        if setting not in self.trials:
            self.trials[setting] = self.scored(setting, alpha)
        return self.trials[setting]

    def better(self, setting: Setting, best: Setting) -> bool:
        """Whether a setting is in range and beats another."""
        # The best so far is tried before the new setting, so that its solution is the one kept.
        incumbent, candidate = self.trial(best), self.trial(setting)
        return candidate is not None and incumbent is not None and candidate.beats(incumbent)

    def downhill(self, begins_at: int) -> Setting:
        """Return the setting to climb from: by decades down from a place, as long as each is better."""
        return climb(self.better, (begins_at, 0), [(-2, 0)])

    def is_solved(self, setting: Setting) -> bool:
        """Whether a setting is in range and has a finite score."""
        trial = self.trial(setting)
        return trial is not None and bool(np.isfinite(trial.score))

    def weakest_solved(self, setting: Setting) -> Setting | None:
        """Return the smallest strength, from that of ``setting`` upwards, that can be solved; None if none can.

        With more rows, a strength that vanishes beside the rounding errors of their matrix may be too small.
        """
        place, octaves = setting
        while self.trial((place, octaves)) is not None:
            if self.is_solved((place, octaves)):
                return place, octaves
            place += 1
        return None


def mean_square(residuals: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the mean square of residuals (m, t), NaN where missing, with weights (m,) or (m, t) or None."""
    is_known = ~np.isnan(residuals)
    entry_weights = is_known if weights is None else is_known * of_entries(weights)
    return float(np.average(np.where(is_known, np.square(residuals), 0.0), weights=entry_weights))
