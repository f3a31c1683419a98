"""The square loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap.losses.base import Domain, Loss


@dataclass(frozen=True)
class Square(Loss):
    """The square loss (s - y)^2 / 2.

    With the penalty alpha/2 |w|^2 it gives the ridge regression of ``solvers.ridge`` with that alpha.

    Examples
    --------
    >>> float(Square().value(1.0, 3.0))
    2.0
    """

    name: ClassVar[str] = "square"
    domain: ClassVar[Domain] = "real"
    curvature: ClassVar[float] = 1.0

    def value(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return (s - y)^2 / 2."""
        return np.square(np.subtract(score, target)) / 2

    def gradient(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return s - y."""
        return np.subtract(score, target)
