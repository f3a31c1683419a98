"""Weights of rows: how often each counts in every sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Weights (n,) of the rows from row ``first`` of a source on, or (n, t) of their targets; None where every row
    counts once.

    As the folds of rows (``RowFolds``) they depend on the place of a row alone, whatever chunk it comes in.

    >>> RowWeights(np.array([2.0, 1.0, 3.0]), first=10)(11, 2)
    array([1., 3.])
    """

    values: np.ndarray | None = None
    first: int = 0

    def __call__(self, first: int, n_rows: int) -> np.ndarray | None:
        """Weights (n_rows,) or (n_rows, t) of the rows from ``first`` on, or None."""
        if self.values is None:
            return None
        return self.values[first - self.first : first - self.first + n_rows]


def of_rows(weights: np.ndarray) -> np.ndarray:
    """Weights (n,) of rows: as they are, or the means of those of their targets (n, t).

    >>> of_rows(np.array([[1.0, 3.0], [2.0, 2.0]]))
    array([2., 2.])
    """
    return weights if weights.ndim == 1 else weights.mean(axis=1)


def of_entries(weights: np.ndarray) -> np.ndarray:
    """The same as a matrix (n, 1) or (n, t), that multiplies targets (n, t)."""
    return weights if weights.ndim == 2 else weights[:, None]


def rows_by_weight(weights: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Ascending places (n,) of rows drawn in proportion to their weights (N,), some of them several times.

    One draw places n equal steps along the sum of the weights: a row of n times its share comes so many times, rounded
    up or down. So whatever is learned from a sample has the weights in it: n equal weights give every row once.

    References
    ----------
    Kitagawa, Monte Carlo filter and smoother for non-Gaussian nonlinear state space models (1996), for the resampling.

    >>> rows_by_weight(np.array([1.0, 0.5, 2.5]), 8, seed=0)
    array([0, 0, 1, 2, 2, 2, 2, 2])
    """
    ends = np.cumsum(weights, dtype=np.float64)
    steps = (np.random.default_rng(seed).random() + np.arange(n)) * (ends[-1] / n)
    return np.minimum(np.searchsorted(ends, steps, side="right"), weights.size - 1)


def as_counts(weights: np.ndarray) -> np.ndarray:
    """Weights as numbers of rows: those that average less than one say what rows count beside each other alone, and are
    brought to a mean of one.

    >>> as_counts(np.array([0.1, 0.3])), as_counts(np.array([1.0, 3.0]))
    (array([0.5, 1.5]), array([1., 3.]))
    """
    return np.asarray(weights * max(1.0, weights.size / float(weights.sum())))
