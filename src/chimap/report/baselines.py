"""Baselines: predictions that do not use the histograms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._types import JSON, ArrayLike
from chimap.report._answers import checked_labels, checked_numbers
from chimap.report._plain import plain


@dataclass(frozen=True)
class Baseline:
    """The result of a prediction that does not use the histograms.

    Parameters
    ----------
    name : str
        What it predicts, such as "always answering “cat”".
    value : float
        Its accuracy (classification) or its root mean squared error (regression), on the same rows as the model.
    """

    name: str
    value: float

    def as_dict(self) -> JSON:
        """Return name and value as JSON types."""
        return {"name": self.name, "value": plain(float(self.value))}


def majority_baseline(y_train: ArrayLike, y_true: ArrayLike) -> Baseline:
    """Return the accuracy of always predicting the most frequent training label.

    Parameters
    ----------
    y_train : array-like of shape (m,)
        Labels of the training rows.
    y_true : array-like of shape (n,)
        Labels of the rows to predict.

    Returns
    -------
    Baseline
        The label and its accuracy on ``y_true``.

    Raises
    ------
    DataError
        If one of the arrays is empty or has more than one label per row.

    Examples
    --------
    >>> majority_baseline(["cat", "cat", "dog"], ["cat", "dog"])
    Baseline(name='always answering “cat”', value=0.5)
    """
    classes, counts = np.unique(checked_labels(y_train, "y_train"), return_counts=True)
    answer = classes[np.argmax(counts)]
    return Baseline(
        f"always answering “{answer}”", float(np.mean(checked_labels(y_true, "y_true") == answer))
    )


def mean_baseline(y_train: ArrayLike, y_true: ArrayLike) -> Baseline:
    """Return the root mean squared error of always predicting the mean of the training targets.

    Parameters
    ----------
    y_train : array-like of shape (m,)
        Targets of the training rows.
    y_true : array-like of shape (n,)
        Targets of the rows to predict.

    Returns
    -------
    Baseline
        The mean and its root mean squared error on ``y_true``.

    Raises
    ------
    DataError
        If one of the arrays is empty, is not one-dimensional, or holds text, NaN or infinity.

    Examples
    --------
    >>> mean_baseline([1.0, 3.0], [1.0, 3.0])
    Baseline(name='always answering the mean, 2', value=1.0)
    """
    answer = checked_numbers(checked_labels(y_train, "y_train"), "y_train").mean()
    error = checked_numbers(checked_labels(y_true, "y_true"), "y_true") - answer
    return Baseline(f"always answering the mean, {answer:.4g}", float(np.sqrt(np.mean(error**2))))
