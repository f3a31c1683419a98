"""The logistic loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from chimap.losses.base import Domain, Loss


@dataclass(frozen=True)
class Logistic(Loss):
    """The logistic loss log(1 + exp(-y s)), for targets y of -1 or 1.

    Examples
    --------
    >>> float(Logistic().value(-1.0, 1e4))
    10000.0
    """

    name: ClassVar[str] = "logistic"
    domain: ClassVar[Domain] = "sign"
    curvature: ClassVar[float] = 0.25

    def value(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return log(1 + exp(-y s))."""
        margin = np.multiply(target, score)
        # logaddexp is slower, since it is not vectorised; exp of a number that is never positive cannot overflow.
        return np.log1p(np.exp(-np.abs(margin))) + np.maximum(-margin, 0)

    def gradient(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return -y / (1 + exp(y s))."""
        return -target * expit(-np.multiply(target, score))
