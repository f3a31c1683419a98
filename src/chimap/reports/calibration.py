"""Predicted probabilities against what came true: calibration, and the ROC curve of two classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_curve

from chimap._formatting import plain
from chimap._types import JSON
from chimap._validation import DataError

_BANDS = 10  # equal bands of probabilities


def bands_of(probabilities: np.ndarray, is_so: np.ndarray) -> list[tuple[float, float, int]]:
    """Return mean probability, share of the rows where it is so, and number of rows for each band of 0.1 with rows."""
    bands = np.minimum((probabilities * _BANDS).astype(int), _BANDS - 1)
    return [
        (float(probabilities[rows].mean()), float(is_so[rows].mean()), int(rows.sum()))
        for band in range(_BANDS)
        if (rows := bands == band).any()
    ]


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predictions with their probabilities, to measure calibration.

    Parameters
    ----------
    confidence : ndarray of shape (n,)
        Probability of each predicted class, between 0 and 1.
    right : ndarray of shape (n,), bool
        Whether each prediction is right.

    Raises
    ------
    DataError
        If there are no rows, the lengths differ, or a number is not a probability.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, On calibration of modern neural networks (2017).

    Examples
    --------
    >>> reliability = Reliability(np.array([0.95, 0.95, 0.55, 0.55]), np.array([True, True, True, False]))
    >>> [(round(p, 2), share, rows) for p, share, rows in reliability.bands()], round(reliability.error, 3)
    ([(0.55, 0.5, 2), (0.95, 1.0, 2)], 0.05)
    """

    confidence: np.ndarray
    right: np.ndarray

    def __post_init__(self) -> None:
        shapes = np.shape(self.confidence), np.shape(self.right)
        if shapes[0] != shapes[1] or len(shapes[0]) != 1 or not shapes[0][0]:
            raise DataError(
                f"confidence and right must have one probability and one answer per row, shape (n,); got shapes "
                f"{shapes[0]} and {shapes[1]}."
            )
        if not np.all((self.confidence >= 0) & (self.confidence <= 1 + 1e-6)):
            raise DataError("confidence must lie between 0 and 1; pass probabilities, not scores.")

    def bands(self) -> list[tuple[float, float, int]]:
        """Return mean probability, share of right predictions and number of rows for each band of 0.1 that has rows."""
        return bands_of(self.confidence, self.right)

    @property
    def error(self) -> float:
        """Expected calibration error: mean over rows of |mean probability - share right| in the row's band."""
        return sum(rows * abs(probability - share) for probability, share, rows in self.bands()) / self.right.size

    def as_dict(self) -> JSON:
        """Return the error and the bands as JSON types."""
        names = ("probability", "share_right", "rows")
        return {
            "expected_calibration_error": plain(self.error),
            "bands": [dict(zip(names, band, strict=True)) for band in self.bands()],
        }


@dataclass(frozen=True, eq=False)
class TwoClasses:
    """Labels and scores of rows of two classes, of which one is the positive one.

    Parameters
    ----------
    is_positive : ndarray of shape (n,), bool
        Whether each row is of the positive class.
    scores : ndarray of shape (n,)
        Scores that are higher for the positive class.
    probabilities : ndarray of shape (n,) or None, default=None
        Predicted probabilities of the positive class.
    """

    is_positive: np.ndarray
    scores: np.ndarray
    probabilities: np.ndarray | None = None

    def roc(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ROC curve: the false positive rates and the true positive rates, both ascending."""
        false_positives, true_positives, _ = roc_curve(self.is_positive, self.scores)
        return false_positives, true_positives

    def reliability(self) -> list[tuple[float, float, int]]:
        """Return mean probability, share of the positive class and number of rows for each band of 0.1 with rows."""
        if self.probabilities is None:
            return []
        return bands_of(self.probabilities, self.is_positive)
