"""Weights of rows in every sum, and how many independent rows they count as."""

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


def unit_of(weights: np.ndarray | None, counts: np.ndarray | None = None) -> float:
    """Return the weight that counts as one row, so that weights count as (sum w)^2 / sum (w^2 / c) rows in all.

    Weights say how much rows matter: with equal weights it is that weight, and n rows count as n rows; the more weights
    differ, the fewer rows they count as. A row that stands for c equal rows (``counts``, (n,)) counts as these. None is
    1 for all.

    References
    ----------
    Kish, Survey sampling (1965), sec. 8.2, for the effective number of rows.

    >>> equal, unequal = np.array([2.0, 2.0]), np.array([1.0, 3.0])
    >>> unit_of(equal), unit_of(unequal), unit_of(unequal, counts=unequal)
    (2.0, 2.5, 1.0)
    """
    if weights is None:
        return 1.0
    w = of_rows(weights)
    return float((np.square(w) if counts is None else np.square(w) / counts).sum() / w.sum())


def as_counts(weights: np.ndarray, counts: np.ndarray | None = None, groups: np.ndarray | None = None) -> np.ndarray:
    """Return weights (n,) of rows, scaled so that their sum is the number of independent rows, or of groups.

    That number is (sum w)^2 / sum (w^2 / c), see ``unit_of``. Rows of a group are not independent: with ``groups`` (n,)
    it is (sum w)^2 / sum_g (sum of w in g)^2, the number of groups where all have the same weight. Weights (n, t) of
    targets are scaled for each target.

    >>> as_counts(np.array([2.0, 2.0])), as_counts(np.array([5.0, 5.0, 5.0, 5.0]), groups=np.array([0, 0, 1, 1]))
    (array([1., 1.]), array([0.5, 0.5, 0.5, 0.5]))
    """
    if weights.ndim == 2:
        return np.column_stack([as_counts(column, counts, groups) for column in weights.T])
    total = weights.sum()
    if not total:
        return weights
    if groups is not None:
        _, places = np.unique(groups, return_inverse=True)
        return np.asarray(weights * (total / np.square(np.bincount(places, weights)).sum()))
    return np.asarray(weights / unit_of(weights, counts))
