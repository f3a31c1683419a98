"""What a search for the minimum needs of the rows: a loss and its gradient, summed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from chimap import _blas
from chimap._types import DTypeLike, RowTargets
from chimap.losses.base import Loss

_ROWS = 2048  # whose features are converted to another precision together


@dataclass
class LossSums:
    """Sums over rows: the losses (t,), their gradient in the weights (D, t) and in the intercepts (t,), the rows, each
    as often as its weight says.

    A commutative monoid, as moments are: parts of the rows are added up wherever they lie, and merged.

    Examples
    --------
    >>> one, other = LossSums.empty(2, 1), LossSums.empty(2, 1)
    >>> other.count = 3
    >>> one.merge(other)
    >>> one.count
    3
    """

    values: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    count: float = 0

    @classmethod
    def empty(cls, n_features: int, n_targets: int) -> LossSums:
        """Of no rows."""
        return cls(np.zeros(n_targets), np.zeros((n_features, n_targets)), np.zeros(n_targets))

    def fresh(self) -> LossSums:
        """Empty ones of the same shape."""
        return LossSums.empty(*self.coef.shape)

    def merge(self, other: LossSums) -> None:
        """Add the rows of others."""
        self.values += other.values
        self.coef += other.coef
        self.intercept += other.intercept
        self.count += other.count

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.coef.nbytes

    def release_buffers(self) -> None:
        """Nothing is kept beside the sums."""


@dataclass(frozen=True)
class LossAt:
    """A loss at weights (D, s t) and intercepts (s t,): s solutions side by side, each of which meets all t targets.

    dtype: of scores and products, None for that of the features; sums are in float64.

    Examples
    --------
    >>> from chimap.losses import Square
    >>> at = LossAt(Square(), np.zeros((2, 1)), np.zeros(1))
    >>> sums = at.empty()
    >>> at.add(sums, np.eye(2), np.array([[1.0], [2.0]]))
    >>> sums.values.tolist(), sums.coef.tolist()
    ([2.5], [[-1.0], [-2.0]])
    """

    loss: Loss
    coef: np.ndarray
    intercept: np.ndarray
    dtype: DTypeLike = None

    def empty(self) -> LossSums:
        """Sums of no rows."""
        return LossSums.empty(*self.coef.shape)

    def add(self, sums: LossSums, Z: np.ndarray, Y: RowTargets, weights: np.ndarray | None = None) -> None:
        """Add rows of features Z (rows, D), targets Y (rows, t) and weights (rows,), or (rows, t) of the targets, None
        where all are 1.

        Raises DataError for targets that the loss does not take.
        """
        self.loss.check_targets(np.asarray(Y))
        if self.dtype in (None, Z.dtype):
            self._add(sums, Z, np.asarray(Y), weights)
            return
        for first in range(0, Z.shape[0], _ROWS):
            part = slice(first, first + _ROWS)
            own = None if weights is None else weights[part]
            self._add(sums, Z[part].astype(self.dtype), np.asarray(Y[part]), own)

    def _add(self, sums: LossSums, Z: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> None:
        targets = np.tile(Y, (1, self.intercept.size // Y.shape[1])).astype(Z.dtype, copy=False)
        scores = np.empty((Z.shape[0], self.intercept.size), Z.dtype)
        _blas.multiply(Z, self.coef.astype(Z.dtype, copy=False), scores)
        scores += self.intercept.astype(Z.dtype, copy=False)
        slopes, values = self.loss.gradient(targets, scores), self.loss.value(targets, scores)
        if weights is not None:
            each = weights.astype(Z.dtype, copy=False)
            each = each[:, None] if each.ndim == 1 else np.tile(each, (1, self.intercept.size // Y.shape[1]))
            slopes, values = slopes * each, values * each
        sums.values += values.sum(axis=0, dtype=np.float64)
        gradient = np.empty((slopes.shape[1], Z.shape[1]), Z.dtype)
        _blas.multiply(slopes.T, Z, gradient)
        sums.coef += gradient.T
        sums.intercept += slopes.sum(axis=0, dtype=np.float64)
        sums.count += Z.shape[0] if weights is None else float(weights.sum()) / (weights.size // Z.shape[0])


class FeatureRows(Protocol):
    """Rows that can be passed over again and again, fold by fold."""

    def sums(self, at: LossAt, folds: Sequence[int]) -> LossSums:
        """The sums of a loss over the rows of these folds, features and targets less their shifts."""
        ...
