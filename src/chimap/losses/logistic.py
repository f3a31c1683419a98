"""The logistic loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from chimap.losses.base import Loss


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-y s)).

    >>> float(Logistic().value(-1.0, 1e4))
    10000.0
    """

    name: ClassVar[str] = "logistic"
    domain: ClassVar[Literal["sign", "real"]] = "sign"
    curvature: ClassVar[float] = 0.25

    def value(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """log(1 + exp(-y s))."""
        margin = np.multiply(target, score)
        # not logaddexp, which goes element by element: exp of what is never positive cannot overflow
        return np.log1p(np.exp(-np.abs(margin))) + np.maximum(-margin, 0)

    def gradient(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """-y / (1 + exp(y s))."""
        return -target * expit(-np.multiply(target, score))

    def conjugate(self, target: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """a log a + (1 - a) log(1 - a) with a = -y u in [0, 1]."""
        share = -np.multiply(target, dual)
        inside = (share >= 0) & (share <= 1)
        a = np.where(inside, share, 0)
        return np.where(inside, xlogy(a, a) + xlog1py(1 - a, -a), np.inf)
