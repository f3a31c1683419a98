"""The threshold on the output above which a row is assigned to the second of two classes.

Classifiers choose it after a fit, from the outputs of held-out rows.
"""

from __future__ import annotations

import numbers

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError, ParameterError

WORDS = ("f1", "balanced")


def checked_threshold(threshold: str | float | None) -> None:
    """Raise ValueError unless the threshold is None, one of ``WORDS``, or a cost above 0."""
    if threshold is None or (isinstance(threshold, str) and threshold in WORDS):
        return
    is_number = isinstance(threshold, numbers.Real) and not isinstance(threshold, bool)
    if not (is_number and 0 < float(threshold) < np.inf):
        raise ParameterError(
            "threshold",
            threshold,
            "None, 'f1', 'balanced', or a cost above 0 (of missing a row of the second class, in units of a false "
            "alarm)",
        )


def best_threshold(
    outputs: np.ndarray, is_second: np.ndarray, wanted: str | float, weights: np.ndarray | None = None
) -> float:
    """Return the threshold c for which "f > c is the second class" is best on held-out rows.

        "f1":        2 TP / (2 TP + FP + FN) is largest
        "balanced":  (TP / P + TN / N) / 2 is largest
        a cost:      cost FN + FP is least

    These are sums of weights of rows, and the second class is the positive one. The threshold lies between two
    outputs; among equally good ones it is 0, or the nearest to 0.

    Parameters
    ----------
    outputs : array of shape (m,)
        Outputs of held-out rows.
    is_second : array of bool of shape (m,)
        Whether each row is of the second class.
    wanted : "f1", "balanced" or float
        What is optimised; a number is the cost of missing a row of the second class, in units of a false alarm.
    weights : array of shape (m,) or None, default=None
        Weights of the rows.

    Returns
    -------
    float
        The threshold.

    Raises
    ------
    DataError
        If the rows are of one class.

    Examples
    --------
    >>> f, y = np.array([-2.0, -1.0, -0.5, -0.4]), np.array([False, False, True, True])
    >>> best_threshold(f, y, "f1")
    -0.75
    """
    if is_second.all() or not is_second.any():
        raise DataError(
            Message(
                "{threshold=} is chosen on held-out rows, but the {} that are held out have one class only: too "
                "few rows. Leave {threshold} out.",
                wanted,
                outputs.size,
            )
        )
    w = np.ones(outputs.size) if weights is None else np.asarray(weights, dtype=np.float64)
    order = np.argsort(-outputs, kind="stable")
    f, hits, alarms = outputs[order], (w * is_second)[order], (w * ~is_second)[order]
    true = np.concatenate([[0.0], np.cumsum(hits)])  # entry k is about the k rows of largest output
    false = np.concatenate([[0.0], np.cumsum(alarms)])
    with np.errstate(invalid="ignore"):
        gain = {
            "f1": lambda: 2 * true / (true + false + true[-1]),
            "balanced": lambda: true / true[-1] - false / false[-1],
        }.get(str(wanted), lambda: true * float(wanted) - false)()
    room = max(float(np.ptp(f)), abs(float(f[0])), 1.0)
    above, below = np.append(f[0] + room, f), np.append(f, f[-1] - room)
    possible = above > below
    is_best = possible & (gain >= gain[possible].max() - 1e-12 * w.sum())
    cuts = np.where((below < 0) & (above > 0), 0.0, (above + below) / 2)[is_best]
    return float(cuts[np.argmin(np.abs(cuts))])
