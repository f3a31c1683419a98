"""Downdates of the moments and of the errors when a fold is left out.

For all rows but those of fold f, the scatter is Hc(rest) = Hc - F with F = Hc(f) + c d d' (see ``Fold``), and Vc(rest)
likewise. A product F P costs O(D^2) operations per column, a subtraction O(D^2), and no second matrix is stored.
"""

from __future__ import annotations

import numpy as np

from chimap._validation import DataError
from chimap.moments import Moments


def check_fold(k: int, n_folds: int, n_held: int, n_rows: int) -> None:
    """Raise DataError for a fold that holds no rows, or all of them."""
    if n_held in (0, n_rows):
        raise DataError(
            f"fold {k} of {n_folds} holds {n_held} of {n_rows} rows: too few to hold out. Use fewer folds (selection) "
            "or more rows."
        )


class Fold:
    """The change of the moments when one fold is left out.

    Hc(all) = Hc(rest) + Hc(fold) + c d d', with d = mean(rest) - mean(fold) and c = n_rest n_fold / n (Chan). So the
    matrix of the training rows is that of all rows less F = Hc(fold) + c d d', and likewise for Vc.
    """

    def __init__(self, fold: Moments, whole: Moments):
        self.moments = fold
        self.count = fold.count
        self.sums = fold.feature_sum
        rest = whole.count - fold.count
        # All folds share their shifts, so the sums are about the same point.
        self.gap = (whole.feature_sum - fold.feature_sum) / rest - fold.feature_sum / fold.count
        self.target_gap = (whole.target_sum - fold.target_sum) / rest - fold.target_sum / fold.count
        self.weight = rest * fold.count / whole.count
        self.whole = whole
        self.target_scatter = fold.target_scatter()
        self.train_share = rest / whole.count

    @property
    def cross(self) -> np.ndarray:
        """Vc(fold) of shape (D, t).

        It is made at each access: stored for all folds, it would take most of the memory when there are many targets.
        """
        return self.moments.cross_scatter()

    @property
    def train_cross(self) -> np.ndarray:
        """Vc(rest) of shape (D, t)."""
        whole, fold = self.whole, self.moments
        mean = (whole.target_sum - fold.target_sum) / (whole.count - fold.count)
        by_target = whole.cross.T - fold.cross.T
        by_target -= np.outer(mean, whole.feature_sum - fold.feature_sum)
        return by_target.T

    def product(self, P: np.ndarray) -> np.ndarray:
        """Return F P."""
        return self.moments.scatter_product(P) + self.weight * np.outer(self.gap, self.gap @ P)

    def take_from(self, square: np.ndarray) -> None:
        """Subtract F from the upper triangle of a (D, D) array."""
        # F = H - m m'/n + c d d'; the last two terms are one product of rank two.
        left = np.column_stack([self.sums / self.count, -self.weight * self.gap])
        right = np.vstack([self.sums, self.gap])
        for first, panel in self.moments.features.panels():
            square[first : first + panel.shape[0], first:] += (
                left[first : first + panel.shape[0]] @ right[:, first:] - panel
            )

    def error(self, W: np.ndarray, FW: np.ndarray | None = None) -> float:
        """Return the mean held-out |f(z) - y|^2 of weights W (D, t), given F W if it is known."""
        square = self.moments.scatter_quadratic(W) if FW is None else _inner(W, self._scattered(W, FW))
        linear = _inner(W, self.moments.cross) - float(self.sums @ W @ self.moments.target_sum) / self.count
        within = square - 2 * linear + float(self.target_scatter.sum())
        return within / self.count + float(np.square(self.bias(W)).sum())

    def error_slope(self, W: np.ndarray, FW: np.ndarray) -> np.ndarray:
        """Return the derivative of count times ``error`` in W, (D, t)."""
        return 2 * (self._scattered(W, FW) - self.cross + self.count * np.outer(self.gap, self.bias(W)))

    def bias(self, W: np.ndarray) -> np.ndarray:
        """Return the mean of y - f(z) over the fold, (t,), where the training means set the intercept of f."""
        return self.gap @ W - self.target_gap

    def _scattered(self, W: np.ndarray, FW: np.ndarray) -> np.ndarray:
        """Return Hc(fold) W."""
        return FW - self.weight * np.outer(self.gap, self.gap @ W)


def _inner(A: np.ndarray, B: np.ndarray) -> float:
    return float(np.einsum("ij,ij->", A, B))
