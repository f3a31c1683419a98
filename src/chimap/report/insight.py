"""What an evaluation shows beyond the score: linear baseline, learning curve, important bins, worst mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from sklearn.metrics import roc_curve

from chimap._types import JSON
from chimap.report.formatting import plain
from chimap.selection import LearningCurve

_BANDS = 10  # equal bands of probabilities


@dataclass(frozen=True)
class Mistake:
    """A row that is predicted wrongly.

    Parameters
    ----------
    row : str
        Id or number of the row.
    true : object
        Its label or target.
    predicted : object
        Its predicted label or target.
    margin : float
        For classes, the score of the predicted class minus the score of the true one; for numbers, the absolute error.
    """

    row: str
    true: object
    predicted: object
    margin: float


@dataclass(frozen=True, eq=False)
class TwoClasses:
    """Labels and scores of rows of two classes.

    Parameters
    ----------
    of_second : ndarray of shape (n,), bool
        Whether each row is of the second class.
    scores : ndarray of shape (n,)
        Scores that are higher for the second class.
    probabilities : ndarray of shape (n,) or None, default=None
        Predicted probabilities of the second class.
    """

    of_second: np.ndarray
    scores: np.ndarray
    probabilities: np.ndarray | None = None

    def roc(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ROC curve: the false positive rates and the true positive rates, both ascending."""
        false_positives, true_positives, _ = roc_curve(self.of_second, self.scores)
        return false_positives, true_positives

    def reliability(self) -> list[tuple[float, float, int]]:
        """Return mean probability, share of the second class and number of rows for each band of 0.1 that has rows."""
        if self.probabilities is None:
            return []
        bands = np.minimum((self.probabilities * _BANDS).astype(int), _BANDS - 1)
        return [
            (float(self.probabilities[rows].mean()), float(self.of_second[rows].mean()), int(rows.sum()))
            for band in range(_BANDS)
            if (rows := bands == band).any()
        ]


@dataclass(frozen=True, eq=False)
class Insight:
    """What an evaluation shows beyond the score; unknown parts are None or empty.

    Parameters
    ----------
    linear : float or None, default=None
        Score of a linear model on the same rows.
    linear_rows : int or None, default=None
        Number of rows the linear model was fitted on.
    linear_measure : str, default="accuracy"
        Name of that score.
    curve : LearningCurve or None, default=None
        Held-out scores over the number of training rows.
    importance : sequence of tuple of str and float, default=()
        Name and importance of the most important bins.
    mistakes : sequence of Mistake, optional
        The worst mistakes; by default empty.
    two : TwoClasses or None, default=None
        Labels and scores, if there are two classes.
    """

    linear: float | None = None
    linear_rows: int | None = None
    linear_measure: str = "accuracy"
    curve: LearningCurve | None = None
    importance: Sequence[tuple[str, float]] = ()
    mistakes: Sequence[Mistake] = field(default_factory=tuple)
    two: TwoClasses | None = None

    def as_dict(self) -> JSON:
        """Return the insight as JSON types, without the rows of ``two``."""
        return {
            "linear": plain(self.linear),
            "linear_measure": None if self.linear is None else self.linear_measure,
            "learning_curve": self.curve and plain(vars(self.curve)),
            "top_bins": [{"name": name, "importance": value} for name, value in self.importance],
            "worst_mistakes": [plain(vars(mistake)) for mistake in self.mistakes],
        }


def worst_mistakes(
    names: np.ndarray,
    y_true: np.ndarray,
    y_pred: np.ndarray,
    scores: np.ndarray,
    classes: Sequence[object],
    k: int = 10,
) -> list[Mistake]:
    """Return the k misclassified rows with the largest margins, in descending order.

    The margin is the score of the predicted class minus the score of the true class.

    Parameters
    ----------
    names : ndarray of shape (n,)
        Names of the rows.
    y_true : ndarray of shape (n,)
        True labels.
    y_pred : ndarray of shape (n,)
        Predicted labels.
    scores : ndarray of shape (n, n_classes)
        Scores of the classes.
    classes : sequence
        The classes, in the order of the columns of ``scores``.
    k : int, default=10
        Number of rows to return.

    Returns
    -------
    list of Mistake
        At most k mistakes.

    Examples
    --------
    >>> mistakes = worst_mistakes(np.array(["a", "b"]), np.array([0, 1]), np.array([1, 1]), np.eye(2)[[1, 1]], [0, 1])
    >>> [(mistake.row, mistake.margin) for mistake in mistakes]
    [('a', 1.0)]
    """
    column = {name: i for i, name in enumerate(classes)}
    wrong = np.flatnonzero(y_true != y_pred)
    true = np.array([column[y] for y in y_true[wrong].tolist()], dtype=int)
    predicted = np.array([column[y] for y in y_pred[wrong].tolist()], dtype=int)
    margin = scores[wrong, predicted] - scores[wrong, true]
    order = np.argsort(-margin, kind="stable")[:k]
    return [
        Mistake(str(names[wrong[i]]), classes[true[i]], classes[predicted[i]], float(margin[i]))
        for i in order
    ]


def worst_errors(names: np.ndarray, y_true: np.ndarray, y_pred: np.ndarray, k: int = 10) -> list[Mistake]:
    """Return the k rows with the largest absolute errors, in descending order.

    Parameters
    ----------
    names : ndarray of shape (n,)
        Names of the rows.
    y_true : ndarray of shape (n,)
        Targets.
    y_pred : ndarray of shape (n,)
        Predictions.
    k : int, default=10
        Number of rows to return.

    Returns
    -------
    list of Mistake
        At most k rows, whose margin is the absolute error.

    Examples
    --------
    >>> worst = worst_errors(np.array(["a", "b"]), np.array([0.0, 1.0]), np.array([0.5, -1.0]))
    >>> [(mistake.row, mistake.margin) for mistake in worst]
    [('b', 2.0), ('a', 0.5)]
    """
    errors = np.abs(y_pred - y_true)
    order = np.argsort(-errors, kind="stable")[:k]
    return [Mistake(str(names[i]), float(y_true[i]), float(y_pred[i]), float(errors[i])) for i in order]
