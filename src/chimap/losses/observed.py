"""A loss over the entries of a matrix of targets that are not missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap.losses.base import Domain, Loss


@dataclass(frozen=True)
class Observed(Loss):
    """A loss for targets that may be missing (NaN): a missing entry costs nothing, and only that entry is left out.

    Parameters
    ----------
    loss : Loss
        The loss of the entries that are not missing.

    Examples
    --------
    >>> from chimap.losses import Square
    >>> Observed(Square()).gradient(np.array([1.0, np.nan]), np.array([3.0, 3.0])).tolist()
    [2.0, 0.0]
    """

    loss: Loss

    name: ClassVar[str] = "observed"
    domain: ClassVar[Domain] = "real"

    @property
    def curvature(self) -> float:
        """Least Lipschitz constant of the gradient, as for ``loss``."""
        return self.loss.curvature

    @property
    def usual_curvature(self) -> float:
        return self.loss.usual_curvature

    def fitted(self, spread: float, mean: float) -> Observed:
        return Observed(self.loss.fitted(spread, mean))

    def begin(self, coef: np.ndarray, at_mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.loss.begin(coef, at_mean)

    def value(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return the loss, or 0 for missing targets."""
        missing = np.isnan(target)
        return np.where(missing, 0, self.loss.value(np.where(missing, 1, target), score)).astype(score.dtype)

    def gradient(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return the gradient of the loss, or 0 for missing targets."""
        missing = np.isnan(target)
        slopes = self.loss.gradient(np.where(missing, 1, target), score)
        return np.where(missing, 0, slopes).astype(score.dtype)

    def check_targets(self, target: np.ndarray) -> None:
        """Check that ``loss`` takes all targets that are not missing."""
        self.loss.check_targets(target[~np.isnan(target)])

    def offsets(self, target: np.ndarray, score: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
        return self.loss.offsets(target, score, weights)


@dataclass(frozen=True)
class ObservedCurvature(Loss):
    """The loss s^2/2 where the target is not missing, whatever its value.

    Its gradient is the product of the scores with the Hessian of the square loss.

    Examples
    --------
    >>> ObservedCurvature().gradient(np.array([5.0, np.nan]), np.array([3.0, 3.0])).tolist()
    [3.0, 0.0]
    """

    name: ClassVar[str] = "observed-curvature"
    domain: ClassVar[Domain] = "real"
    curvature: ClassVar[float] = 1.0

    def value(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return s^2 / 2, or 0 for missing targets."""
        return np.where(np.isnan(target), 0, np.square(score) / 2)

    def gradient(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return s, or 0 for missing targets."""
        return np.where(np.isnan(target), 0, score)

    def check_targets(self, target: np.ndarray) -> None:
        """Accept any targets."""
