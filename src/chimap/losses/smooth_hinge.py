"""The smooth hinge loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap._validation import check_positive
from chimap.losses.base import Domain, Loss


@dataclass(frozen=True)
class SmoothHinge(Loss):
    """The hinge loss max(0, 1 - y s) with a parabola in place of its corner.

    With margin m = y s and width h it is 0 for m >= 1, (1 - m)^2 / (2h) for 1 - h < m < 1, and 1 - m - h/2 below, which
    is the hinge less h/2.

    Parameters
    ----------
    width : float, default=1.0
        Width h of the parabola on the scale of the margin, positive.

    Raises
    ------
    ValueError
        If the width is not positive.

    References
    ----------
    Rennie, Smooth hinge classification (2005), where h = 1. Shalev-Shwartz and Zhang, Stochastic dual coordinate ascent
    (2013), where it is the gamma-smoothed hinge.

    Examples
    --------
    >>> SmoothHinge().value(1.0, np.array([2.0, 0.5, -1.0])).tolist()
    [0.0, 0.125, 1.5]
    """

    width: float = 1.0

    name: ClassVar[str] = "smooth_hinge"
    domain: ClassVar[Domain] = "sign"

    def __post_init__(self) -> None:
        check_positive(self.width, "width")

    @property
    def curvature(self) -> float:
        """Least Lipschitz constant of the gradient, 1 / width."""
        return 1 / float(self.width)

    def value(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return the loss; see the class for its formula."""
        gap = np.maximum(1 - np.multiply(target, score), 0)
        near = np.minimum(gap, self.width)  # (1 - m)^2 / 2h = near^2 / 2h; 1 - m - h/2 = near^2 / 2h + rest
        return np.square(near) / (2 * self.width) + (gap - near)

    def gradient(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return -y min(max(0, 1 - m) / h, 1)."""
        return -target * np.clip((1 - np.multiply(target, score)) / self.width, 0, 1)
