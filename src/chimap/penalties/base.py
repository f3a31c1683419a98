"""What a penalty is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np


class Penalty(ABC):
    """A convex function of weights W, (D,) or (D, t): the sum over the t columns, each a target by itself.

    is_smooth: whether it has a gradient everywhere; the proximal operator it always has.

    Examples
    --------
    >>> from chimap.penalties import L2
    >>> L2(2.0).value(np.array([3.0])), L2(2.0).prox(np.array([3.0]), step=1.0).tolist()
    (9.0, [1.0])
    """

    is_smooth: ClassVar[bool]

    @abstractmethod
    def value(self, W: np.ndarray) -> float:
        """The penalty, at least 0; summed in float64."""

    @abstractmethod
    def prox(self, W: np.ndarray, step: float) -> np.ndarray:
        """argmin_V |V - W|^2 / 2 + step value(V), for step > 0; of the dtype of W."""

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """The gradient, where the penalty is smooth; of the dtype of W. Raises TypeError where it is not."""
        raise TypeError(f"{type(self).__name__} has no gradient at zero weights: use prox in its place.")
