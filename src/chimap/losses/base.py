"""The base class of losses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np

from chimap._validation import DataError, check_choice


class Loss(ABC):
    """A convex, differentiable function of a score for a given target.

    Every method takes arrays of targets and scores that broadcast, float32 or float64, and returns an array of their
    broadcast shape. No method overflows where its value is in range. Some losses also have ``conjugate(target, dual)``,
    the convex conjugate sup_s (dual s - value(target, s)), which is infinite outside its domain.

    Attributes
    ----------
    name : str
        Name in the catalogue.
    domain : {"sign", "real"}
        Permitted targets: -1 and 1 for "sign", any finite number for "real".
    curvature : float
        Least Lipschitz constant of the gradient.

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
        """Least Lipschitz constant of the gradient with respect to the score."""

    @abstractmethod
    def value(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return the loss, at least 0.

        Parameters
        ----------
        target : array-like
            Targets y.
        score : array-like
            Scores s, of a shape that broadcasts with the targets.
        """

    @abstractmethod
    def gradient(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return the derivative of the loss with respect to the score.

        Parameters
        ----------
        target : array-like
            Targets y.
        score : array-like
            Scores s, of a shape that broadcasts with the targets.
        """

    def check_targets(self, target: np.ndarray) -> None:
        """Check that all targets are in the domain of the loss.

        Parameters
        ----------
        target : ndarray
            Targets y.

        Raises
        ------
        DataError
            If a target is outside the domain; the message names the first.
        """
        good = np.abs(target) == 1 if self.domain == "sign" else np.isfinite(target)
        if not np.all(good):
            place = int(np.flatnonzero(~np.ravel(good))[0])
            wanted = "-1 or 1" if self.domain == "sign" else "a finite number"
            raise DataError(
                f"target {place} is {np.ravel(target)[place]:g}; the {self.name} loss takes {wanted}. Encode the "
                "labels first, or choose a loss for such targets."
            )


def check_loss(loss: Loss | str, catalogue: dict[str, type[Loss]]) -> Loss:
    """Return a loss object, given the object or the name of a loss with its default parameters.

    Parameters
    ----------
    loss : Loss or str
        The loss or its name.
    catalogue : dict of str to type of Loss
        Loss classes by name.

    Raises
    ------
    ValueError
        If ``loss`` is neither a loss nor a name in the catalogue.

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
