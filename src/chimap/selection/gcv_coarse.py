"""A first search for the ridge strength on half of the features, for an eighth of the price of a factor.

Many features make a factor dear (D^3/3 operations), and a search takes four or five of them. The strength hardly
depends on the number of features, so half of them find where it lies, and how far below it the user's score is best;
with all features it is then confirmed, and moved by one step of Newton if it is off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap.moments import Moments
from chimap.selection.gcv_score import GcvScore, GcvScorer

FROM_FEATURES = 4000  # below, the search takes about as long as what the half would save
CLOSE = 0.25 * float(np.log(10))  # strengths within a quarter of a decade are as good as each other
_MOST_STEP = float(np.log(10))  # of Newton, in ln alpha: beyond a decade its parabola says nothing


@dataclass(frozen=True)
class CoarseChoice:
    """What half of the features say of the strength.

    alpha : the strength of least GCV, for all features.
    curvature : of ln GCV in ln alpha there, above 0.
    share : the strength that the user's score prefers, as a share of alpha.
    """

    alpha: float
    curvature: float
    share: float = 1.0

    def step(self, score: GcvScore) -> float:
        """Return the step of Newton in ln alpha from a score of all features, 0 where it would not matter."""
        step = float(np.clip(-score.slope / self.curvature, -_MOST_STEP, _MOST_STEP))
        return step if abs(step) > CLOSE else 0.0


def half_of(n_features: int) -> np.ndarray:
    """Return every second feature: of random features a sine goes with its cosine, and every block has its half."""
    return np.arange(0, n_features, 2)


def scaled(half: Moments, whole: Moments) -> float:
    """Return by how much a strength of the half grows with all features.

    Half of the random features make half of the kernel, so that their strength is half as large; landmarks make all of
    it with few features, and their strength stays. The root of the ratio of the scatters is within a factor of 1.5 of
    both, which is less than a quarter of a decade.
    """
    ratio = float(whole.scatter_diagonal().sum()) / max(
        float(half.scatter_diagonal().sum()), np.finfo(float).tiny
    )
    return float(np.sqrt(ratio))


def curvature_at(scorer: GcvScorer, alpha: float) -> float:
    """Return the second derivative of ln GCV in ln alpha, of the cubic through the two nearest strengths scored.

    Where the cubic bends down there, the mean of the second derivative between the two takes its place; 0 where only
    one was scored.
    """
    scores = [score for score in scorer.scores.values() if np.isfinite(score.score)]
    if len(scores) < 2:
        return 0.0
    a, b = sorted(scores, key=lambda score: abs(np.log(score.alpha / alpha)))[:2]
    step = float(np.log(b.alpha / a.alpha))
    t = float(np.log(alpha / a.alpha)) / step
    rise = float(np.log(b.score / a.score)) / step
    cubic = ((6 - 12 * t) * rise + (6 * t - 4) * a.slope + (6 * t - 2) * b.slope) / step
    return cubic if cubic > 0 else (b.slope - a.slope) / step
