"""The squared hinge loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap.losses.base import Domain, Loss


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """The squared hinge loss max(0, 1 - y s)^2 of support vector machines.

    It has no factor 1/2, unlike the square loss, as in scikit-learn: with the penalty alpha/2 |w|^2, scikit-learn's C
    is 1 / alpha.

    Examples
    --------
    >>> float(SquaredHinge().value(1.0, -1.0))
    4.0
    """

    name: ClassVar[str] = "squared_hinge"
    domain: ClassVar[Domain] = "sign"
    curvature: ClassVar[float] = 2.0

    def value(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return max(0, 1 - y s)^2."""
        return np.square(np.maximum(1 - np.multiply(target, score), 0))

    def gradient(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return -2 y max(0, 1 - y s)."""
        return -2 * target * np.maximum(1 - np.multiply(target, score), 0)
