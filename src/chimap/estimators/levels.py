"""Makes the scores of different classes comparable."""

from __future__ import annotations

import numpy as np

from chimap._errors import InputError
from chimap._validation import DataError, check_positive


def kth_highest(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the k-th highest score of each class; minus it, every class has k rows at 0 or above.

    Classes that are learned separately, each against all others, have scores of different spread, and then the wrong
    class may have the largest score. Subtracting puts the k-th highest score of every class at the same level, whatever
    the labels of the rows, so the rows may be those to classify. The best k is near the number of rows per class.

    Parameters
    ----------
    scores : array of shape (n, t)
        Scores.
    k : int
        Rank, from 1 to n.

    Returns
    -------
    ndarray of shape (t,)
        The k-th highest scores.

    Raises
    ------
    ValueError
        If k exceeds the number of rows.
    DataError
        If the scores are not a matrix.

    References
    ----------
    Li, Lebanon and Sminchisescu, A linear approximation to the chi2 kernel, sec. 7.3 (k = 500).

    Examples
    --------
    >>> kth_highest(np.array([[3.0, 0.1], [2.0, 0.3], [1.0, 0.2]]), k=2).tolist()
    [2.0, 0.2]
    """
    check_positive(k, "k", integer=True)
    scores = np.asarray(scores)
    if scores.ndim != 2:
        raise DataError(f"scores must be (rows, classes); got an array of shape {scores.shape}.")
    if k > scores.shape[0]:
        raise InputError(f"k={k}, but there are {scores.shape[0]} rows of scores; use a smaller k.")
    place = scores.shape[0] - k
    return np.partition(scores, place, axis=0)[place]
