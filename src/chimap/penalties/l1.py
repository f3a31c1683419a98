"""The l1 norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap._validation import check_positive
from chimap.penalties.base import Penalty


@dataclass(frozen=True)
class L1(Penalty):
    """The l1 norm alpha |w|_1 of the LASSO, under which few features are used.

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
    >>> L1(1.0).value(np.array([1.0, -2.0])), L1(1.0).prox(np.array([3.0, -0.5]), step=1.0).tolist()
    (3.0, [2.0, -0.0])
    """

    alpha: float
    is_smooth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive(self.alpha, "alpha")

    def value(self, W: np.ndarray) -> float:
        """Return alpha |w|_1."""
        return self.alpha * float(np.abs(W).sum(dtype=np.float64))

    def prox(self, W: np.ndarray, step: float) -> np.ndarray:
        """Return sign(w) max(0, |w| - step alpha)."""
        return np.copysign(np.maximum(np.abs(W) - float(step * self.alpha), 0), W)
