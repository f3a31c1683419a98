"""Whether probabilities mean what they say: how often answers are right, beside how sure they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._types import JSON
from chimap._validation import DataError
from chimap.report._plain import plain

_BANDS = 10  # of probabilities


@dataclass(frozen=True, eq=False)
class Reliability:
    """Answers by how probable they are said to be.

    Parameters
    ----------
    confidence : (n,) probability of each answer, between 0 and 1
    right : (n,) bool, whether it is the truth

    Raises
    ------
    DataError
        For no rows, unequal lengths, and numbers that are no probabilities.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, On calibration of modern neural networks (2017).

    Examples
    --------
    >>> found = Reliability(np.array([0.95, 0.95, 0.55, 0.55]), np.array([True, True, True, False]))
    >>> [(round(said, 2), share, rows) for said, share, rows in found.bands()], round(found.error, 3)
    ([(0.55, 0.5, 2), (0.95, 1.0, 2)], 0.05)
    """

    confidence: np.ndarray
    right: np.ndarray

    def __post_init__(self) -> None:
        shapes = np.shape(self.confidence), np.shape(self.right)
        if shapes[0] != shapes[1] or len(shapes[0]) != 1 or not shapes[0][0]:
            raise DataError(
                f"a probability and an answer a row are needed; got shapes {shapes[0]} and {shapes[1]}."
            )
        if not np.all((self.confidence >= 0) & (self.confidence <= 1 + 1e-6)):
            raise DataError("confidence must lie between 0 and 1: give probabilities.")

    def bands(self) -> list[tuple[float, float, int]]:
        """Mean probability, share of right answers and rows of each tenth of the probabilities that has rows."""
        band = np.minimum((self.confidence * _BANDS).astype(int), _BANDS - 1)
        return [
            (float(self.confidence[own].mean()), float(self.right[own].mean()), int(own.sum()))
            for place in range(_BANDS)
            if (own := band == place).any()
        ]

    @property
    def error(self) -> float:
        """Expected calibration error: mean over rows of |mean probability - share right| of the row's tenth."""
        return sum(rows * abs(said - share) for said, share, rows in self.bands()) / self.right.size

    def as_dict(self) -> JSON:
        """Plain JSON types."""
        names = ("probability", "share_right", "rows")
        return {
            "expected_calibration_error": plain(self.error),
            "bands": [dict(zip(names, band, strict=True)) for band in self.bands()],
        }
