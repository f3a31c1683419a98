"""The base class of losses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np

from chimap._validation import DataError, check_choice

if TYPE_CHECKING:
    from chimap._onnx import Value

Domain = Literal["sign", "real", "count"]
"""Targets that a loss takes: -1 and 1, any finite number, or any number from 0 on."""

_WANTED = {"sign": "-1 or 1", "real": "a finite number", "count": "a number from 0 on"}


class Loss(ABC):
    """A convex, differentiable function of a score for a given target.

    Every method takes arrays of targets and scores that broadcast, float32 or float64, and returns an array of their
    broadcast shape. No method overflows where its value is in range.

    Attributes
    ----------
    name : str
        Name in the catalogue.
    domain : {"sign", "real", "count"}
        Permitted targets: -1 and 1 for "sign", any finite number for "real", any number from 0 on for "count".
    curvature : float
        Least Lipschitz constant of the gradient.
    usual_curvature : float
        Second derivative near the minimum, by which searches are scaled.
    score_name : str
        Name of the score of predictions, 1 less their share of the ``deviance`` of the best constant.
    has_plateau : bool
        Whether machines that meet every target they learn from have the same loss on others, whatever the strength.
    has_parabola : bool
        Whether parabolas of ``bend`` lead to the minimum, so that a kernel matrix is solved by ridge, iterated.
    n_scores : int
        Scores of a target.

    Examples
    --------
    >>> from chimap.losses import Logistic
    >>> Logistic().value(np.array([1.0, -1.0]), np.array([2.0, 2.0])).round(3).tolist()
    [0.127, 2.127]
    """

    name: ClassVar[str]
    domain: ClassVar[Domain]
    score_name: ClassVar[str] = "r2"
    has_plateau: ClassVar[bool] = False
    has_parabola: ClassVar[bool] = False

    @property
    def n_scores(self) -> int:
        """Scores of a target."""
        return 1

    @property
    def usual_curvature(self) -> float:
        """Second derivative near the minimum, by which searches are scaled; the largest one if it is not known."""
        return self.curvature

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
        if self.domain == "count":
            good = good & (target >= 0)
        if not np.all(good):
            place = int(np.flatnonzero(~np.ravel(good))[0])
            raise DataError(
                f"target {place} is {np.ravel(target)[place]:g}; the {self.name} loss takes {_WANTED[self.domain]}. "
                "Encode the labels first, or choose a loss for such targets."
            )

    def fitted(self, spread: float, mean: float) -> Self:
        """Return the loss with what is open in it set for targets of this standard deviation and mean.

        Parameters
        ----------
        spread : float
            Standard deviation of the targets.
        mean : float
            Their mean.
        """
        return self

    def of_score(self, place: int) -> Loss:
        """Return the loss of one of the scores of a target.

        Parameters
        ----------
        place : int
            Number of the score, from 0.
        """
        return self

    def bend(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return the second derivative of a parabola that stands for the loss near these scores, above 0.

        Parameters
        ----------
        target, score : array-like
            As in ``value``.
        """
        return np.full(np.broadcast(target, score).shape, self.usual_curvature)

    def second_derivative(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return the second derivative of the loss, by which a row is left out; ``bend`` where that is near enough.

        Parameters
        ----------
        target, score : array-like
            As in ``value``.
        """
        return self.bend(target, score)

    # --- from scores to predictions

    @property
    def score_names(self) -> list[str] | None:
        """Names of the scores of a target, if there are several."""
        return None

    def measures(self, target: np.ndarray, prediction: np.ndarray) -> dict[str, float]:
        """Return further measures of predictions (n,) by name: those that the loss is about.

        Parameters
        ----------
        target : ndarray of shape (n,)
            Targets.
        prediction : ndarray of shape (n,)
            Predictions.
        """
        return {}

    def onnx(self, scores: Value) -> Value:
        """Return ``predicted`` for scores in a graph of ONNX.

        Parameters
        ----------
        scores : Value
            Scores, (n, t).
        """
        return scores

    def begin(self, coef: np.ndarray, at_mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and scores at the mean row that a search begins from, given those of least squares.

        Parameters
        ----------
        coef : ndarray of shape (D, t)
            Weights.
        at_mean : ndarray of shape (t,)
            Outputs at the mean row, which are the mean targets.
        """
        return coef, at_mean

    def predicted(self, scores: np.ndarray) -> np.ndarray:
        """Return the predictions for scores (n, t), of the same shape.

        Parameters
        ----------
        scores : ndarray of shape (n, t)
            Scores, in the units of the data.
        """
        return scores

    def constant(self, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the constant predictions (n_scores,) of least deviance for targets (n,): the mean.

        Parameters
        ----------
        target : ndarray of shape (n,)
            Targets.
        weights : ndarray of shape (n,)
            Weights of the rows.
        """
        return np.atleast_1d(np.average(target, weights=weights))

    def deviance(self, target: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """Return what predictions (n, t) are off by, 0 for perfect ones: (y - p)^2.

        Parameters
        ----------
        target : ndarray of shape (n, t)
            Targets, in the units of the data.
        prediction : ndarray of shape (n, t)
            Predictions.
        """
        return np.asarray(np.square(target - prediction))

    def distance(self, target: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """Return how far targets are from predictions, by which intervals are made: |y - p|, (n, t).

        Parameters
        ----------
        target, prediction : ndarray of shape (n, t)
            As in ``deviance``.
        """
        return np.asarray(np.abs(target - prediction))

    def offsets(self, target: np.ndarray, score: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
        """Return what is added to scores so that what they are off by is as usual for rows not learned from.

        None for losses that leave scores as they are.

        Parameters
        ----------
        target : ndarray of shape (m, t)
            Targets of rows that were held out; NaN where one is missing.
        score : ndarray of shape (m, s t)
            Scores of machines that have not seen them.
        weights : ndarray of shape (m,) or (m, t)
            How many independent rows each counts as.

        Returns
        -------
        ndarray of shape (s t,), or None
            The offsets.
        """
        return None

    def interval(self, prediction: np.ndarray, width: np.ndarray) -> np.ndarray:
        """Return the ends (n, t, 2) of the targets whose ``distance`` is at most a width.

        Parameters
        ----------
        prediction : ndarray of shape (n, t)
            Predictions.
        width : ndarray of shape (t,)
            Largest distance.
        """
        return np.stack([prediction - width, prediction + width], axis=2)


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
