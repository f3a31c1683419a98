"""Weights of rows: how often each row counts in every sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Weights (n,) of the rows of a source from row ``first`` on, or (n, t) of their targets; None if all are 1.

    Like the folds of rows (``RowFolds``), a weight depends only on the place of the row, not on the chunk that holds
    it.

    >>> RowWeights(np.array([2.0, 1.0, 3.0]), first=10)(11, 2)
    array([1., 3.])
    """

    values: np.ndarray | None = None
    first: int = 0

    def __call__(self, first: int, n_rows: int) -> np.ndarray | None:
        """Return the weights (n_rows,) or (n_rows, t) of the rows from ``first`` on, or None."""
        if self.values is None:
            return None
        return self.values[first - self.first : first - self.first + n_rows]


def of_rows(weights: np.ndarray) -> np.ndarray:
    """Return weights (n,) of the rows: unchanged, or the means over targets of weights (n, t).

    >>> of_rows(np.array([[1.0, 3.0], [2.0, 2.0]]))
    array([2., 2.])
    """
    return weights if weights.ndim == 1 else weights.mean(axis=1)


def of_entries(weights: np.ndarray) -> np.ndarray:
    """Return weights as a matrix (n, 1) or (n, t), which multiplies targets (n, t)."""
    return weights if weights.ndim == 2 else weights[:, None]


def rows_by_weight(weights: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Return ascending places (n,) of rows drawn in proportion to their weights (N,), some of them several times.

    A single random number places n equal steps along the sum of the weights, so a row appears n times its share of the
    weights, rounded up or down. A model of the sample then respects the weights: n equal weights give every row once.

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
    """Return weights as numbers of rows, scaled to a mean of 1 if their mean is less.

    Weights with a mean below 1 are taken to be relative: they say only how rows count beside each other.

    >>> as_counts(np.array([0.1, 0.3])), as_counts(np.array([1.0, 3.0]))
    (array([0.5, 1.5]), array([1., 3.]))
    """
    return np.asarray(weights * max(1.0, weights.size / float(weights.sum())))
