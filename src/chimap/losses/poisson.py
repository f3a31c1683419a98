"""The Poisson loss of counts, with a logarithmic link."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import xlogy

from chimap._validation import check_positive
from chimap.losses.base import Domain, Loss

if TYPE_CHECKING:
    from chimap._onnx import Value

_LARGEST_SCORE = 60.0  # exp of it is 1e26: beyond, the loss goes on as a parabola, which overflows in no precision
_LEAST_MEAN = 1e-6  # least expected count, relative to the mean of all targets, that a search begins from


@dataclass(frozen=True)
class Poisson(Loss):
    """Half the Poisson deviance of a count y whose expectation is exp(s): exp(s) - y s + y log y - y.

    The score s is the logarithm of the expected count, so effects multiply. Targets are any numbers from 0 on: rates
    with exposures as weights have the same solution as counts.

    Parameters
    ----------
    mean : float, default=1.0
        Mean of the targets, which is the second derivative at the best constant score; searches are scaled by it.

    References
    ----------
    McCullagh and Nelder, Generalized linear models, 1989, chapter 6.

    Examples
    --------
    >>> Poisson().value(2.0, np.log([1.0, 2.0, 4.0])).round(3).tolist()
    [0.386, 0.0, 0.614]
    """

    mean: float = 1.0

    name: ClassVar[str] = "poisson"
    domain: ClassVar[Domain] = "count"
    score_name: ClassVar[str] = "d2_poisson"
    has_parabola: ClassVar[bool] = True
    curvature: ClassVar[float] = float(np.exp(_LARGEST_SCORE))

    def __post_init__(self) -> None:
        check_positive(self.mean, "mean")

    @property
    def usual_curvature(self) -> float:
        """The mean of the targets."""
        return self.mean

    def fitted(self, spread: float, mean: float) -> Poisson:
        """See ``Loss``: the mean."""
        return replace(self, mean=mean) if mean > 0 else self

    def value(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return exp(s) - y s + y log y - y."""
        near, beyond = self._parts(score)
        expected = np.exp(near) * (1 + beyond + np.square(beyond) / 2)
        least = xlogy(target, target) - target
        return np.maximum(expected - np.multiply(target, score) + least, 0)

    def gradient(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return exp(s) - y."""
        near, beyond = self._parts(score)
        return np.subtract(np.exp(near) * (1 + beyond), target)

    def bend(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """See ``Loss``: exp(s), at least so much that a step stays within a few units of the score."""
        return np.exp(np.clip(score, -_LARGEST_SCORE, _LARGEST_SCORE))

    @staticmethod
    def _parts(score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the score up to the largest whose exponential is computed, and what lies beyond it."""
        near = np.minimum(score, np.asarray(score).dtype.type(_LARGEST_SCORE))
        return near, np.subtract(score, near)

    # --- predictions

    def begin(self, coef: np.ndarray, at_mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See ``Loss``: the linear approximation of the logarithm about the mean."""
        least = _LEAST_MEAN * max(self.mean, float(np.max(at_mean, initial=0.0)))
        means = np.maximum(at_mean, least)
        return coef / means, np.log(means)

    def predicted(self, scores: np.ndarray) -> np.ndarray:
        """See ``Loss``: exp(s), the expected count."""
        return np.exp(np.minimum(scores, _LARGEST_SCORE))

    def deviance(self, target: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """See ``Loss``: 2 (y log(y / mu) - y + mu), the unit deviance."""
        least = np.maximum(prediction, np.finfo(np.float64).tiny)
        return np.asarray(2 * (xlogy(target, target) - xlogy(target, least) - target + prediction))

    def measures(self, target: np.ndarray, prediction: np.ndarray) -> dict[str, float]:
        """See ``Loss``: the mean Poisson deviance."""
        return {"mean_poisson_deviance": float(self.deviance(target, prediction).mean())}

    def onnx(self, scores: Value) -> Value:
        """See ``Loss``: exp(s)."""
        return scores.at_most(_LARGEST_SCORE).apply("Exp")

    def distance(self, target: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """See ``Loss``: |y - mu| / sqrt(mu), the size of the Pearson residual."""
        return np.asarray(np.abs(target - prediction) / np.sqrt(prediction))

    def interval(self, prediction: np.ndarray, width: np.ndarray) -> np.ndarray:
        """See ``Loss``: mu - w sqrt(mu) to mu + w sqrt(mu), from 0 on."""
        reach = width * np.sqrt(prediction)
        return np.stack([np.maximum(prediction - reach, 0), prediction + reach], axis=2)
