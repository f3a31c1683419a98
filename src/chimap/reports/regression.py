"""Measures of predicted numbers, as numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from sklearn.metrics import mean_absolute_error, mean_squared_error

from chimap._formatting import interval_in_words, plain, score_in_words
from chimap._types import JSON, ArrayLike, Scoring
from chimap.losses import Loss
from chimap.reports.measures import (
    Baseline,
    Interval,
    LeadingScore,
    Metrics,
    check_confidence,
    checked_numbers,
    checked_pair,
    mean_interval,
)
from chimap.reports.ranking import RankingMetrics
from chimap.selection.scoring import explained

_OF_LOSS = {
    "d2": "D²",
    "mean_poisson_deviance": "Poisson deviance",
    "mean_pinball_loss": "pinball loss",
    "share_below": "share below",
}


@dataclass(frozen=True, eq=False)
class RegressionMetrics(Metrics):
    """Measures of predicted numbers, each with its confidence interval.

    Parameters
    ----------
    targets : ndarray of shape (n,), float64
        The targets y, for the figures; ``as_dict`` leaves them out.
    predictions : ndarray of shape (n,), float64
        The predictions, for the figures; ``as_dict`` leaves them out.
    r2 : float
        R² = 1 - mean(e^2) / mean((y - mean(y))^2) with e = prediction - target; NaN for constant targets.
    rmse : float
        Root mean squared error, in the unit of the target.
    mae : float
        Mean absolute error, in the unit of the target.
    r2_interval : tuple of float
        Interval of ``r2``; NaN for fewer than two rows.
    rmse_interval : tuple of float
        Interval of ``rmse``; NaN for fewer than two rows.
    mae_interval : tuple of float
        Interval of ``mae``; NaN for fewer than two rows.
    confidence : float, default=0.95
        Confidence of the intervals.
    of_loss : dict of str to float, default={}
        What the loss of the model is about: "d2", the share of the deviance that is explained, and the mean Poisson
        deviance, or the mean pinball loss and the share of the targets up to the quantile.
    n_groups : int or None, default=None
        Number of groups of the rows, if they have any.
    asked : LeadingScore or None, default=None
        The score that the fit was asked for.
    """

    targets: np.ndarray
    predictions: np.ndarray
    r2: float
    rmse: float
    mae: float
    r2_interval: Interval
    rmse_interval: Interval
    mae_interval: Interval
    confidence: float = 0.95
    of_loss: dict[str, float] = field(default_factory=dict)
    n_groups: int | None = None
    asked: LeadingScore | None = None

    listed: ClassVar[str] = "evaluation of numbers"

    @property
    def n_rows(self) -> int:
        """Number of predicted rows."""
        return self.targets.size

    @property
    def residuals(self) -> np.ndarray:
        """Prediction - target, (n,): positive where the prediction is too high."""
        return self.predictions - self.targets

    def leading(self, baseline: Baseline | None) -> LeadingScore | None:
        """See ``Metrics``: R² unless another was asked for."""
        return self.asked or self.known("r2", baseline)

    def known(self, scoring: Scoring, baseline: Baseline | None) -> LeadingScore | None:
        """See ``Metrics``: R², and minus the errors."""
        if scoring == "r2":
            return LeadingScore(scoring, self.r2, self.r2_interval, 0.0)
        if scoring == "neg_root_mean_squared_error":
            low, high = self.rmse_interval
            return LeadingScore(scoring, -self.rmse, (-high, -low), None if baseline is None else -baseline.value)
        if scoring == "neg_mean_absolute_error":
            low, high = self.mae_interval
            return LeadingScore(scoring, -self.mae, (-high, -low), None)
        return None

    def as_dict(self) -> JSON:
        """Return the measures as JSON types, with None for undefined numbers."""
        names = ("r2", "r2_interval", "rmse", "rmse_interval", "mae", "mae_interval", "confidence")
        head = {"task": "regression", "rows": self.n_rows, "groups": self.n_groups}
        return head | plain(self.of_loss) | {name: plain(getattr(self, name)) for name in names}

    def lines(self, ranking: RankingMetrics | None = None) -> dict[str, str | None]:
        """Return the measures in lines of text."""
        r2 = f"{score_in_words(self.r2, 'r2')}  ({interval_in_words(self.r2_interval, 'r2')} at 95 % confidence)"
        sizes = {"RMSE": (self.rmse, self.rmse_interval), "MAE": (self.mae, self.mae_interval)}
        of_loss: dict[str, str | None] = {_OF_LOSS[name]: f"{value:.4g}" for name, value in self.of_loss.items()}
        return (
            self.asked_line
            | of_loss
            | {"R²": r2}
            | {
                name: f"{value:.4g}  ({low:.4g} to {high:.4g} at 95 % confidence)"
                for name, (value, (low, high)) in sizes.items()
            }
        )

    def line(self, baseline: Baseline) -> str:
        """Return the leading measures and the baseline on one line."""
        first = self.asked_first + "".join(f"{_OF_LOSS[name]} {value:.3g}, " for name, value in self.of_loss.items())
        return (
            f"{first}R² {self.r2:.3f}, RMSE {self.rmse:.4g}, MAE {self.mae:.4g} on {self.rows_in_words}; "
            f"{baseline.name}: {self.in_words(baseline.value)}"
        )

    def in_words(self, value: float) -> str:
        """Return a root mean squared error as text."""
        return f"RMSE {value:.4g}"


def regression_metrics(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    confidence: float = 0.95,
    loss: Loss | None = None,
    groups: np.ndarray | None = None,
) -> RegressionMetrics:
    """Measure predicted numbers against true ones.

    The intervals are Student's, of means over rows, without resampling: see ``measures.mean_interval``. That of MAE is
    that of mean(|e|), and that of RMSE goes between the square roots of the ends of the interval of mean(e^2). R2 is a
    ratio of two means, so its interval comes from the delta method, as that of a mean of
    (e^2 - (1 - R2) (y - mean(y))^2) / mean((y - mean(y))^2). The ends are clipped to the possible values: RMSE and MAE
    at 0, R2 at 1.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Targets.
    y_pred : array-like of shape (n,)
        Predictions.
    confidence : float, default=0.95
        Confidence of the intervals.
    loss : Loss or None, default=None
        The loss of the model, whose measures are added if it has its own.
    groups : ndarray of shape (n,) or None, default=None
        The group of each row, such as a subject; the intervals count groups.

    Returns
    -------
    RegressionMetrics
        The measures with their intervals.

    Raises
    ------
    DataError
        If there are no rows, the lengths differ, or a number is not finite.

    Examples
    --------
    >>> round(regression_metrics([1.0, 2.0, 3.0], [1.5, 2.0, 2.5]).r2, 3)
    0.75
    """
    y_true, y_pred = (
        checked_numbers(y, name) for y, name in zip(checked_pair(y_true, y_pred), ("y_true", "y_pred"), strict=True)
    )
    check_confidence(confidence)
    error, spread = y_pred - y_true, (y_true - y_true.mean()) ** 2
    variance = spread.mean()
    mse = mean_squared_error(y_true, y_pred)
    r2 = 1 - mse / variance if variance > 0 else np.nan
    lower, upper = mean_interval(error**2, confidence, groups)
    r2_rows = 1 - (error**2 - (1 - r2) * (spread - variance)) / variance if variance > 0 else error * np.nan
    r2_lower, r2_upper = mean_interval(r2_rows, confidence, groups)
    mae_lower, mae_upper = mean_interval(np.abs(error), confidence, groups)
    return RegressionMetrics(
        targets=y_true,
        predictions=y_pred,
        r2=float(r2),
        rmse=float(np.sqrt(mse)),
        mae=float(mean_absolute_error(y_true, y_pred)),
        r2_interval=(r2_lower, float(np.minimum(r2_upper, 1.0))),
        rmse_interval=(float(np.sqrt(np.maximum(lower, 0.0))), float(np.sqrt(upper))),
        mae_interval=(float(np.maximum(mae_lower, 0.0)), mae_upper),
        confidence=confidence,
        of_loss={} if loss is None else measures_of_loss(loss, y_true, y_pred),
        n_groups=None if groups is None else np.unique(groups).size,
    )


def measures_of_loss(loss: Loss, y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return the measures of a loss that has its own, D^2 first."""
    measures = loss.measures(y, predicted)
    return {"d2": explained(loss, y, predicted[:, None]), **measures} if measures else {}
