"""Means, and scatter about them, from sums over rows."""

from __future__ import annotations

import numpy as np

from chimap import _threads
from chimap._validation import DataError
from chimap.moments.symmetric import PANEL, Symmetric


class Scatter:
    """Means and scatter about them, computed from sums about a shift.

    With n the count, and z and y the features and targets less their shifts, Hc = sum zz' - (sum z)(sum z)'/n, and
    likewise for the targets; the shifts cancel.
    """

    count: float
    n_features: int
    n_targets: int
    shift: np.ndarray | None
    target_shift: np.ndarray | None
    feature_sum: np.ndarray  # (D,), less the shift
    target_sum: np.ndarray  # (t,), less the shift
    features: Symmetric  # sum zz', (D, D)
    target_squares: np.ndarray  # (t,)

    @property
    def cross(self) -> np.ndarray:
        """Sum zy', (D, t)."""
        raise NotImplementedError

    @property
    def mean(self) -> np.ndarray:
        """Mean features, (D,)."""
        return self.shifts[0] + self.feature_sum / (self.count or 1)

    @property
    def target_mean(self) -> np.ndarray:
        """Mean targets, (t,)."""
        return self.shifts[1] + self.target_sum / (self.count or 1)

    def check_rows(self) -> None:
        """Raise DataError if there are no rows to solve for weights from."""
        if self.count == 0:
            raise DataError("no rows: the moments are empty. Update them with rows before the fit.")

    @property
    def shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """Shifts of the features (D,) and of the targets (t,); zeros as long as none are set."""
        shift = np.zeros(self.n_features) if self.shift is None else self.shift
        target = np.zeros(self.n_targets) if self.target_shift is None else self.target_shift
        return shift, target

    def scatter_into(self, square: np.ndarray) -> None:
        """Write Hc = sum (z - mean)(z - mean)' into the upper triangle of an array.

        Parameters
        ----------
        square : ndarray of shape (D, D)
            The float64 array to fill.
        """
        scaled = self.feature_sum / (self.count or 1)
        panels = list(self.features.panels())

        def fill(chosen: slice) -> None:
            for first, panel in panels[chosen]:
                rows = slice(first, first + panel.shape[0])
                block = square[rows, first:]
                np.multiply(self.feature_sum[rows, None], scaled[first:], out=block)
                np.subtract(panel, block, out=block)

        # All threads share this: most of the time goes to the operating system's clearing of new pages.
        _threads.over_rows(len(panels), self.n_features * PANEL, fill)

    def scatter_product(self, B: np.ndarray) -> np.ndarray:
        """Return Hc B, an array of shape (D, columns).

        Parameters
        ----------
        B : ndarray of shape (D, columns)
            Right-hand factor.
        """
        return self.features @ B - np.outer(self.feature_sum, (self.feature_sum @ B) / (self.count or 1))

    def scatter_quadratic(self, B: np.ndarray) -> float:
        """Return tr(B' Hc B), with half the work of ``scatter_product``.

        Parameters
        ----------
        B : ndarray of shape (D, columns)
            Factor on both sides.
        """
        return self.features.quadratic(B) - float(np.square(self.feature_sum @ B).sum()) / (self.count or 1)

    def scatter_diagonal(self) -> np.ndarray:
        """Return the diagonal of Hc, (D,): the scatter of each feature."""
        return self.features.diagonal() - self.feature_sum**2 / (self.count or 1)

    def cross_scatter(self) -> np.ndarray:
        """Return Vc = sum (z - mean)(y - mean)', (D, t), with contiguous columns."""
        by_target = np.outer(self.target_sum / -(self.count or 1), self.feature_sum)
        by_target += self.cross.T
        return by_target.T

    def target_scatter(self) -> np.ndarray:
        """Return sum (y - mean)^2 of each target, (t,)."""
        return self.target_squares - self.target_sum**2 / (self.count or 1)

    def covariance(self) -> np.ndarray:
        """Return the covariance Hc / n, (D, D) float64."""
        square = np.zeros((self.n_features, self.n_features))
        self.scatter_into(square)
        upper = np.triu(square)
        return (upper + np.triu(upper, 1).T) / (self.count or 1)
