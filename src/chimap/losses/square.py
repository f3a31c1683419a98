"""The square loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from chimap.losses.base import Loss


@dataclass(frozen=True)
class Square(Loss):
    """(s - y)^2 / 2: with alpha/2 |w|^2 beside it, the ridge regression of ``solvers.ridge`` at that strength.

    >>> float(Square().value(1.0, 3.0))
    2.0
    """

    name: ClassVar[str] = "square"
    domain: ClassVar[Literal["sign", "real"]] = "real"
    curvature: ClassVar[float] = 1.0

    def value(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """(s - y)^2 / 2."""
        return np.square(np.subtract(score, target)) / 2

    def gradient(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """s - y."""
        return np.subtract(score, target)

    def conjugate(self, target: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """u y + u^2 / 2."""
        return dual * (target + dual / 2)
