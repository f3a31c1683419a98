"""Scores of classes made comparable."""

from __future__ import annotations

import numpy as np

from chimap._validation import DataError, check_positive


def kth_highest(scores: np.ndarray, k: int) -> np.ndarray:
    """The k-th highest score of each class, (t,), of scores (n, t); less it, every class has k rows at 0 or above.

    Classes that are learned one by one, each against all others, give scores of different spread: the largest wins
    where it should not. Subtracting puts the k-th highest of all classes at one level, whatever the labels of the rows,
    so that the rows may be those to be classified. k is best near the rows that a class has among them.

    Raises ValueError for k beyond the number of rows, DataError for scores of another shape.

    Source: Li, Lebanon and Sminchisescu, A linear approximation to the chi2 kernel, sec. 7.3 (k = 500).

    >>> kth_highest(np.array([[3.0, 0.1], [2.0, 0.3], [1.0, 0.2]]), k=2).tolist()
    [2.0, 0.2]
    """
    check_positive(k, "k", integer=True)
    scores = np.asarray(scores)
    if scores.ndim != 2:
        raise DataError(f"scores must be (rows, classes); got an array of shape {scores.shape}.")
    if k > scores.shape[0]:
        raise ValueError(f"k={k}, but there are {scores.shape[0]} rows of scores; use a smaller k.")
    place = scores.shape[0] - k
    return np.partition(scores, place, axis=0)[place]
