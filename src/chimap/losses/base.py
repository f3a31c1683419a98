"""What a loss is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np

from chimap._validation import DataError, check_choice


class Loss(ABC):
    """A convex, differentiable function of a score for a given target.

    Every function takes arrays target and score that broadcast, float32 or float64, and gives the like of them; none
    overflows where its own value is in range. Some losses also give ``conjugate(target, dual)``, the convex conjugate
    sup_s (dual s - value(target, s)), infinite outside its domain.

    name: in the catalogue. domain: what targets may be: "sign" is -1 and 1, "real" any finite number. curvature: the
    least Lipschitz constant of the gradient.

    Examples
    --------
    >>> from chimap.losses import Logistic
    >>> Logistic().value(np.array([1.0, -1.0]), np.array([2.0, 2.0])).round(3).tolist()
    [0.127, 2.127]
    """

    name: ClassVar[str]
    domain: ClassVar[Literal["sign", "real"]]

    @property
    @abstractmethod
    def curvature(self) -> float:
        """The least Lipschitz constant of the gradient in the score."""

    @abstractmethod
    def value(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """The loss, at least 0."""

    @abstractmethod
    def gradient(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Its derivative in the score."""

    def check_targets(self, target: np.ndarray) -> None:
        """Refuse targets outside the domain. Raises DataError naming the first."""
        good = np.abs(target) == 1 if self.domain == "sign" else np.isfinite(target)
        if not np.all(good):
            place = int(np.flatnonzero(~np.ravel(good))[0])
            wanted = "-1 or 1" if self.domain == "sign" else "a finite number"
            raise DataError(
                f"target {place} is {np.ravel(target)[place]:g}; the {self.name} loss takes {wanted}. Encode the "
                "labels first, or choose a loss for such targets."
            )


def check_loss(loss: Loss | str, catalogue: dict[str, type[Loss]]) -> Loss:
    """A loss, or the one of a name with its usual parameters. Raises ValueError for other values.

    Examples
    --------
    >>> from chimap.losses import CATALOGUE
    >>> check_loss("logistic", CATALOGUE)
    Logistic()
    """
    if isinstance(loss, Loss):
        return loss
    check_choice(loss, "loss", tuple(catalogue))
    return catalogue[loss]()
