"""Rows of a fit with their features, whose score of predictions helps choose the strength."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

SCORED_ROWS = 2000  # enough to know a score to a percent
_BLOCK = 512  # rows that are in float64 at the same time


@dataclass(frozen=True)
class ScoredRows:
    """Features and targets of some rows, less the shifts of the moments, and the score of outputs for them.

    Parameters
    ----------
    Z : array of shape (h, D)
        Features less their shift.
    Y : array of shape (h, t)
        Targets less ``target_shift``.
    target_shift : array of shape (t,)
        Shift of the targets.
    score : callable
        Returns the score, greater is better, of outputs (h, t) for these rows.
    measure : str
        Name of the score.
    counted : array of shape (h,) or None, default=None
        Weights of the rows in the score.
    weights : array of shape (h,) or None, default=None
        Weights of the rows in the sums that they are part of.
    units : array of shape (t,) or None, default=None
        Units of the targets, which outputs are multiplied by before they are scored; None for 1.
    """

    Z: np.ndarray
    Y: np.ndarray
    target_shift: np.ndarray
    score: Callable[[np.ndarray], float]
    measure: str
    counted: np.ndarray | None = None
    weights: np.ndarray | None = None
    units: np.ndarray | None = None

    def __len__(self) -> int:
        return int(self.Z.shape[0])

    def outputs(self, coef: np.ndarray, origin: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """Return (z - origin)'coef + intercept, (h, t) float64, for the shifted targets."""
        outputs = np.empty((len(self), coef.shape[1]))
        for block in self.blocks():
            outputs[block] = (self.Z[block].astype(np.float64) - origin) @ coef
        return outputs + intercept

    def scored(self, outputs: np.ndarray) -> float:
        """Return the score of outputs for the shifted targets; -inf if it is not defined."""
        outputs = outputs + self.target_shift
        score = self.score(outputs if self.units is None else outputs * self.units)
        return score if np.isfinite(score) else -np.inf

    def projected(self, basis: np.ndarray) -> ScoredRows:
        """Return the rows in the coordinates of the columns of ``basis`` (D, p)."""
        return replace(self, Z=np.asarray(self.Z @ basis))

    def of_features(self, chosen: np.ndarray) -> ScoredRows:
        """Return the same rows with some of their features, given by index."""
        return replace(self, Z=self.Z[:, chosen])

    def blocks(self) -> Iterator[slice]:
        """Return slices that cover the rows."""
        return (slice(first, first + _BLOCK) for first in range(0, len(self), _BLOCK))
