"""The squared l2 norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap._validation import check_positive
from chimap.penalties.base import Penalty


@dataclass(frozen=True)
class L2(Penalty):
    """The squared l2 norm alpha/2 |w|^2 of ridge regression.

    Parameters
    ----------
    alpha : float
        Positive strength.

    Raises
    ------
    ValueError
        If alpha is not positive.

    Examples
    --------
    >>> L2(2.0).value(np.array([1.0, 2.0])), L2(1.0).prox(np.array([4.0]), step=1.0).tolist()
    (5.0, [2.0])
    """

    alpha: float
    is_smooth: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive(self.alpha, "alpha")

    def value(self, W: np.ndarray) -> float:
        """Return alpha/2 |w|^2."""
        return self.alpha / 2 * float(np.square(W, dtype=np.float64).sum())

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """Return alpha w."""
        return W * float(self.alpha)

    def prox(self, W: np.ndarray, step: float) -> np.ndarray:
        """Return w / (1 + step alpha)."""
        return W / (1 + float(step * self.alpha))
