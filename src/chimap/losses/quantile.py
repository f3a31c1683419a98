"""The loss of quantile regression, with a rounded corner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import expit

from chimap._validation import ParameterError, check_positive
from chimap.losses.base import Domain, Loss

if TYPE_CHECKING:
    from chimap._onnx import Value

USUAL_WIDTH = 0.05  # of the corner, in standard deviations of the targets: quantiles move by its square
# Density of the targets at a quantile, times their deviation, which the second derivative is on average: that of a
# normal target is .4 at the median and .18 at the 90 % quantile.
_USUAL_DENSITY = 0.3


@dataclass(frozen=True)
class Quantile(Loss):
    """The pinball loss max(q r, (q - 1) r) of the residual r = y - s, with a rounded corner of width h.

    It is q r + h log(1 + exp(-r / h)): the expectation of the pinball loss where a logistic noise of scale h is added
    to the target. Its minimum is the quantile q of the target, up to h^2 times the slope of the density there.

    Parameters
    ----------
    quantile : float or sequence of float, default=0.5
        The quantile q between 0 and 1, or several, ascending: each is an output of its own.
    width : float or None, default=None
        Width h of the corner, in units of the targets; None is 0.05 of their standard deviation.

    Raises
    ------
    ValueError
        If a quantile is not between 0 and 1, several do not ascend, or the width is not positive.

    References
    ----------
    Koenker and Bassett, Regression quantiles, 1978. He, Pan, Tan and Zhou, Smoothed quantile regression with
    large-scale inference, 2023, for the smoothing.

    Examples
    --------
    >>> Quantile(0.9, width=1e-3).value(0.0, np.array([-1.0, 0.0, 1.0])).round(3).tolist()
    [0.9, 0.001, 0.1]
    """

    quantile: float | Sequence[float] = 0.5
    width: float | None = None

    name: ClassVar[str] = "quantile"
    domain: ClassVar[Domain] = "real"
    score_name: ClassVar[str] = "d2_pinball"
    has_parabola: ClassVar[bool] = True
    has_plateau: ClassVar[bool] = True

    def __post_init__(self) -> None:
        levels = np.atleast_1d(np.asarray(self.quantile, dtype=object))
        are_numbers = all(isinstance(q, float | int) and not isinstance(q, bool) and 0 < q < 1 for q in levels)
        if levels.ndim != 1 or not levels.size or not are_numbers or (np.diff(levels.astype(float)) <= 0).any():
            raise ParameterError("quantile", self.quantile, "a number between 0 and 1, or several that ascend")
        if self.width is not None:
            check_positive(self.width, "width")

    @property
    def levels(self) -> np.ndarray:
        """The quantiles, (q,)."""
        return np.atleast_1d(np.asarray(self.quantile, dtype=np.float64))

    @property
    def n_scores(self) -> int:
        """See ``Loss``: one for each quantile."""
        return int(self.levels.size)

    @property
    def curvature(self) -> float:
        """Least Lipschitz constant of the gradient, 1 / (4 h)."""
        return 1 / (4 * self._h)

    @property
    def usual_curvature(self) -> float:
        """The density of a target at its quantile, if the corner has the usual share of its deviation."""
        return _USUAL_DENSITY * USUAL_WIDTH / self._h

    @property
    def _h(self) -> float:
        return USUAL_WIDTH if self.width is None else float(self.width)

    def fitted(self, spread: float, mean: float) -> Quantile:
        """See ``Loss``: the width, unless it is given."""
        return replace(self, width=USUAL_WIDTH * spread) if self.width is None else self

    def of_score(self, place: int) -> Quantile:
        """See ``Loss``: that of one quantile."""
        return replace(self, quantile=float(self.levels[place]))

    def _of_columns(self, values: np.ndarray) -> np.ndarray:
        """Return the quantile of each column of scores (.., s q), which repeat all quantiles; (1,) for one."""
        levels = self.levels.astype(values.dtype if values.dtype.kind == "f" else np.float64)
        return levels if levels.size == 1 else np.tile(levels, values.shape[-1] // levels.size)

    def value(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return q r + h log(1 + exp(-r / h))."""
        r = np.subtract(target, score)
        # The corner adds at most h log 2 to the larger of q r and (q - 1) r.
        corner = self._h * np.log1p(np.exp(-np.abs(r) / self._h))
        return self._pinball(r) + corner

    def gradient(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return 1 / (1 + exp(r / h)) - q."""
        r = np.subtract(target, score)
        return expit(-r / self._h) - self._of_columns(r)

    def bend(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """See ``Loss``: tanh(r / 2h) / (2 r), of the parabola that touches the loss at both signs of r."""
        half = np.abs(np.subtract(target, score)) / (2 * self._h)
        ratio = np.divide(np.tanh(half), half, out=np.ones_like(half), where=half > 0)
        return np.asarray(ratio * self.curvature)

    def second_derivative(self, target: np.ndarray, score: np.ndarray) -> np.ndarray:
        """See ``Loss``: p (1 - p) / h with p = 1 / (1 + exp(r / h))."""
        share = np.subtract(target, score) / self._h
        return np.asarray(expit(share) * expit(-share) / self._h)

    def _pinball(self, r: np.ndarray) -> np.ndarray:
        levels = self._of_columns(r)
        return np.maximum(levels * r, (levels - 1) * r)

    # --- predictions

    def offsets(self, target: np.ndarray, score: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """See ``Loss``: the quantiles of the residuals, so that each quantile has its share of new rows below it.

        A machine that fits its own rows closely has too many new rows beyond its outer quantiles. The i-th smallest of
        m residuals counts as their quantile i / (m + 1).

        References
        ----------
        Gneiting, Balabdaoui and Raftery, Probabilistic forecasts, calibration and sharpness, 2007. Hyndman and Fan,
        Sample quantiles in statistical packages, 1996.
        """
        residuals, weights = target - score, np.broadcast_to(weights.T, target.T.shape).T
        offsets = np.zeros(score.shape[1])
        for place, level in enumerate(np.broadcast_to(self._of_columns(score), score.shape[1])):
            of_column, w = residuals[:, place], weights[:, place % weights.shape[1]]
            order = np.argsort(of_column, kind="stable")[: int((~np.isnan(of_column)).sum())]
            if order.size:
                reached = np.cumsum(w[order])
                offsets[place] = np.interp(level, reached / (reached[-1] + 1), of_column[order])
        return offsets

    def predicted(self, scores: np.ndarray) -> np.ndarray:
        """See ``Loss``: several quantiles ascend, as those of a distribution do; where scores cross they are sorted."""
        return scores if self.n_scores == 1 else np.sort(scores, axis=1)

    def constant(self, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """See ``Loss``: the quantiles of the targets."""
        order = np.argsort(target, kind="stable")
        reached = np.cumsum(weights[order]) / weights.sum()
        places = np.searchsorted(reached, self.levels * (1 - 1e-12))
        return np.asarray(target[order][np.minimum(places, target.size - 1)])

    def deviance(self, target: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """See ``Loss``: the pinball loss, whose corner is sharp."""
        return self._pinball(np.asarray(target - prediction, dtype=np.float64))

    @property
    def score_names(self) -> list[str] | None:
        """See ``Loss``: "quantile_0.9"."""
        return None if self.n_scores == 1 else [f"quantile_{level:g}" for level in self.levels]

    def measures(self, target: np.ndarray, prediction: np.ndarray) -> dict[str, float]:
        """See ``Loss``: the mean pinball loss, and the share of the targets up to the quantile."""
        share = float((target <= prediction).mean())
        return {"mean_pinball_loss": float(self.deviance(target, prediction).mean()), "share_below": share}

    def onnx(self, scores: Value) -> Value:
        """See ``Loss``: sorted."""
        return scores if self.n_scores == 1 else (scores * -1.0).descending(self.n_scores) * -1.0

    def distance(self, target: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """See ``Loss``: how far the target is outside the outermost quantiles, below 0 inside; |r| for one quantile."""
        if self.n_scores == 1:
            return np.asarray(np.abs(target - prediction))
        low, high = prediction[:, :1], prediction[:, -1:]
        return np.asarray(np.maximum(low - target[:, :1], target[:, :1] - high))

    def interval(self, prediction: np.ndarray, width: np.ndarray) -> np.ndarray:
        """See ``Loss``: the outermost quantiles, moved outwards by what held-out rows ask for.

        References
        ----------
        Romano, Patterson and Candes, Conformalized quantile regression, 2019.
        """
        if self.n_scores == 1:
            return super().interval(prediction, width)
        low, high = prediction[:, :1] - width, prediction[:, -1:] + width
        middle = (low + high) / 2  # a negative width may turn the ends round
        return np.stack([np.minimum(low, middle), np.maximum(high, middle)], axis=2)
