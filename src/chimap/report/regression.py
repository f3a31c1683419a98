"""Measures of predicted numbers, with confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import (
    mean_absolute_error,
    mean_squared_error,
)

from chimap._types import JSON, ArrayLike
from chimap.report._answers import NAMES, checked_numbers, checked_pair
from chimap.report._plain import plain
from chimap.report.intervals import Interval, mean_interval, normal_quantile


@dataclass(frozen=True, eq=False)
class RegressionMetrics:
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

    @property
    def n_rows(self) -> int:
        """Number of predicted rows."""
        return self.targets.size

    @property
    def residuals(self) -> np.ndarray:
        """Prediction - target, (n,): positive where the prediction is too high."""
        return self.predictions - self.targets

    def as_dict(self) -> JSON:
        """Return the measures as JSON types, with None for undefined numbers."""
        names = ("r2", "r2_interval", "rmse", "rmse_interval", "mae", "mae_interval", "confidence")
        head = {"task": "regression", "rows": self.n_rows}
        return head | {name: plain(getattr(self, name)) for name in names}


def regression_metrics(
    y_true: ArrayLike, y_pred: ArrayLike, *, confidence: float = 0.95
) -> RegressionMetrics:
    """Measure predicted numbers against true ones.

    The intervals are normal approximations for means over rows, without resampling. With z the normal quantile and s
    the standard deviation over the rows, the interval of MAE is mean(|e|) +- z s / sqrt(n), and the interval of RMSE
    goes between the square roots of the ends of the interval of mean(e^2). R2 is a ratio of two means, so its interval
    comes from the delta method, with s the standard deviation of
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
        checked_numbers(y, name) for y, name in zip(checked_pair(y_true, y_pred), NAMES, strict=True)
    )
    z = normal_quantile(confidence)
    error, spread = y_pred - y_true, (y_true - y_true.mean()) ** 2
    variance = spread.mean()
    mse = mean_squared_error(y_true, y_pred)
    r2 = 1 - mse / variance if variance > 0 else np.nan
    lower, upper = mean_interval(error**2, z)
    r2_rows = 1 - (error**2 - (1 - r2) * (spread - variance)) / variance if variance > 0 else error * np.nan
    r2_lower, r2_upper = mean_interval(r2_rows, z)
    mae_lower, mae_upper = mean_interval(np.abs(error), z)
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
    )
