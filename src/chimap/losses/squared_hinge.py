"""The squared hinge loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from chimap.losses.base import Loss


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """max(0, 1 - y s)^2, of support vector machines.

    Whole where the square loss is halved, as scikit-learn has it: with alpha/2 |w|^2 beside it, its C is
    1 / strength.

    >>> float(SquaredHinge().value(1.0, -1.0))
    4.0
    """

    name: ClassVar[str] = "squared_hinge"
    domain: ClassVar[Literal["sign", "real"]] = "sign"
    curvature: ClassVar[float] = 2.0

    def value(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """max(0, 1 - y s)^2."""
        return np.square(np.maximum(1 - np.multiply(target, score), 0))

    def gradient(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """-2 y max(0, 1 - y s)."""
        return -2 * target * np.maximum(1 - np.multiply(target, score), 0)

    def conjugate(self, target: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """u y + u^2 / 4 where y u <= 0."""
        product = np.multiply(target, dual)
        return np.where(product <= 0, product + np.square(dual) / 4, np.inf)
