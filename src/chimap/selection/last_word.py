"""The final choice of the ridge strength, by the user's score of rows left out one at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap.selection.gcv_score import GcvScore, GcvScorer
from chimap.solvers.base import Tried

_DOWN = 100  # factor by which the user's score may lower the strength of least squared error


class LastWord:
    """The final choice by the user's score of rows that are left out one by one.

    It is made between the strength of least squared error and two decades below it, as scores of classes favour a
    weaker penalty. A row is left out in closed form:

        y_i - f_-i(x_i) = (y_i - f(x_i)) / (1 - h_i),   h_i = 1/n + (z_i - mean)' (Hc + alpha I)^-1 (z_i - mean)
    """

    def __init__(self, scorer: GcvScorer, tried: Tried):
        self._scorer, self._tried = scorer, tried
        self.name = tried.measure
        self.scores: dict[float, float] = {}
        self._outputs: tuple[float, np.ndarray] | None = None  # at the best strength so far

    def outputs_at(self, alpha: float) -> np.ndarray | None:
        """Return left-out outputs (h, t), less the shift of the targets, at the best strength; None at others."""
        return self._outputs[1] if self._outputs is not None and self._outputs[0] == alpha else None

    def between(self, top: GcvScore, alphas: Sequence[float] | None) -> GcvScore:
        """Return the strength with the best score among some from that of ``top`` down; ties go to the largest."""
        if alphas is not None:
            for alpha in alphas:
                if top.alpha / _DOWN <= alpha <= top.alpha:
                    self._at(float(alpha))
        elif self._at_both(top.alpha, top.alpha / 10):
            lower = self._at(top.alpha / _DOWN) > self._at(top.alpha / 10)
            self._at(top.alpha / 10 ** (1.5 if lower else 0.5))
        else:
            self._at(top.alpha / 10**0.5)
        best = self._best()
        return self._scorer.scores[best] if np.isfinite(self.scores[best]) else top

    def beside(self, top: GcvScore, share: float) -> GcvScore:
        """Return the better of the strength of ``top`` and a share of it; ties go to the larger."""
        self._at(top.alpha)
        self._at(top.alpha * share)
        best = self._best()
        return self._scorer.scores[best] if np.isfinite(self.scores[best]) else top

    def _at_both(self, top: float, weaker: float) -> bool:
        """Whether the weaker strength scores at least as well; begin with the one whose factor is in memory."""
        for alpha in sorted((top, weaker), key=lambda alpha: alpha != self._scorer.factor_of):
            self._at(alpha)
        return self.scores[top] <= self.scores[weaker]

    def _at(self, alpha: float) -> float:
        """Return the score of a strength, -inf if it cannot be solved."""
        if alpha not in self.scores:
            outputs = self._scorer.left_out(self._tried, alpha)
            self.scores[alpha] = -np.inf if outputs is None else self._tried.scored(outputs)
            if outputs is not None and self._best() == alpha:
                self._outputs = alpha, outputs
        return self.scores[alpha]

    def _best(self) -> float:
        """Return the strength of the best score; ties go to the largest."""
        return max(self.scores, key=lambda alpha: (self.scores[alpha], alpha))
