"""Sums of a loss and its gradient over rows, the input of iterative solvers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from chimap import _arrays, _blas
from chimap._types import DTypeLike
from chimap.losses.base import Loss
from chimap.moments import Targets

_ROWS = 2048  # rows whose features are converted to another precision at once


@dataclass
class LossSums:
    """Sums over rows of a loss and its gradient; each row counts as often as its weight says.

    They are a commutative monoid, as moments are: sums over parts of the rows are computed anywhere, and then merged.

    Parameters
    ----------
    values : ndarray of shape (t,)
        Sum of the loss of each target.
    coef : ndarray of shape (D, t)
        Gradient in the weights.
    intercept : ndarray of shape (t,)
        Gradient in the intercepts.
    count : float, default=0
        Sum of the weights of the rows.

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
        """Return the sums over no rows.

        Parameters
        ----------
        n_features : int
            Number of features D.
        n_targets : int
            Number of targets t.
        """
        return cls(np.zeros(n_targets), np.zeros((n_features, n_targets)), np.zeros(n_targets))

    def fresh(self) -> LossSums:
        """Return the sums over no rows, of the same shape."""
        return LossSums.empty(*self.coef.shape)

    def merge(self, other: LossSums) -> None:
        """Add other sums in place.

        Parameters
        ----------
        other : LossSums
            Sums over other rows.
        """
        self.values += other.values
        self.coef += other.coef
        self.intercept += other.intercept
        self.count += other.count

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.coef.nbytes

    def release_buffers(self) -> None:
        """Do nothing: there are no buffers besides the sums."""


@dataclass(frozen=True)
class LossAt:
    """A loss at given weights (D, s t) and intercepts (s t,): s solutions side by side, each for all t targets.

    Parameters
    ----------
    loss : Loss
        The loss.
    coef : ndarray of shape (D, s t)
        Weights.
    intercept : ndarray of shape (s t,)
        Intercepts.
    dtype : dtype, default=None
        Precision of scores and products; None for that of the features. Sums are in float64.

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
        """Return the sums over no rows."""
        return LossSums.empty(*self.coef.shape)

    def add(self, sums: LossSums, Z: np.ndarray, Y: Targets, weights: np.ndarray | None = None) -> None:
        """Add rows to the sums.

        Parameters
        ----------
        sums : LossSums
            Sums to add to, in place.
        Z : ndarray of shape (rows, D)
            Features.
        Y : array-like of shape (rows, t)
            Targets.
        weights : ndarray of shape (rows,) or (rows, t), default=None
            Weights of the rows, or of their targets; None if all are 1.

        Raises
        ------
        DataError
            If a target is outside the domain of the loss.
        """
        self.loss.check_targets(np.asarray(Y))
        if self.dtype in (None, Z.dtype):
            self._add(sums, Z, np.asarray(Y), weights)
            return
        for chunk in _arrays.slices(Z.shape[0], _ROWS):
            chunk_weights = None if weights is None else weights[chunk]
            self._add(sums, Z[chunk].astype(self.dtype), np.asarray(Y[chunk]), chunk_weights)

    def _add(self, sums: LossSums, Z: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> None:
        targets = np.tile(Y, (1, self.intercept.size // Y.shape[1])).astype(Z.dtype, copy=False)
        scores = np.empty((Z.shape[0], self.intercept.size), Z.dtype)
        _blas.multiply(Z, self.coef.astype(Z.dtype, copy=False), scores)
        scores += self.intercept.astype(Z.dtype, copy=False)
        slopes, values = self.loss.gradient(targets, scores), self.loss.value(targets, scores)
        if weights is not None:
            row_weights = weights.astype(Z.dtype, copy=False)
            row_weights = (
                row_weights[:, None]
                if row_weights.ndim == 1
                else np.tile(row_weights, (1, self.intercept.size // Y.shape[1]))
            )
            slopes, values = slopes * row_weights, values * row_weights
        sums.values += values.sum(axis=0, dtype=np.float64)
        gradient = np.empty((slopes.shape[1], Z.shape[1]), Z.dtype)
        _blas.multiply(slopes.T, Z, gradient)
        sums.coef += gradient.T
        sums.intercept += slopes.sum(axis=0, dtype=np.float64)
        sums.count += Z.shape[0] if weights is None else float(weights.sum()) / (weights.size // Z.shape[0])


class FeatureRows(Protocol):
    """Protocol for rows that can be read again and again, fold by fold.

    Parameters
    ----------
    *args, **kwargs
        Not used: a protocol is not constructed.
    """

    def sums(self, at: LossAt, folds: Sequence[int]) -> LossSums:
        """Return the sums of a loss over the rows of the given folds.

        Parameters
        ----------
        at : LossAt
            The loss at given weights. Features and targets are taken less their shifts.
        folds : sequence of int
            Folds whose rows are summed.
        """
        ...
