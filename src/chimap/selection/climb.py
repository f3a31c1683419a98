"""Hill climbing on a grid of settings, most of which are never tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from chimap.moments import of_entries

Setting = tuple[int, int]  # (place of the strength, octaves of gamma)

HALF_DECADES = 12  # how far strengths may move from their scale
_LESS = 0.999  # of equal scores, the better one has an error below this share of the other's


@dataclass(frozen=True)
class Scored:
    """The score of a setting, greater is better, and an error that breaks ties."""

    score: float
    error: float

    def beats(self, other: Scored) -> bool:
        """Whether it is better; with equal scores the error must be smaller by more than rounding may explain."""
        return self.score > other.score or (self.score == other.score and self.error < _LESS * other.error)


def climb(
    better: Callable[[Setting, Setting], bool], best: Setting, steps: Sequence[tuple[int, int]]
) -> Setting:
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


def strength_at(place: int, scale: float, alphas: Sequence[float] | None) -> float | None:
    """Return the strength at a place among those given, or in half decades of a scale; None out of range."""
    if alphas is None:
        return scale * 10 ** (place / 2) if abs(place) <= HALF_DECADES else None
    return float(alphas[place]) if 0 <= place < len(alphas) else None


def mean_square(residuals: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the mean square of residuals (m, t), NaN where missing, with weights (m,) or (m, t) or None."""
    is_known = ~np.isnan(residuals)
    entry_weights = is_known if weights is None else is_known * of_entries(weights)
    return float(np.average(np.where(is_known, np.square(residuals), 0.0), weights=entry_weights))
