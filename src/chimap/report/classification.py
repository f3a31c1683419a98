"""Measures of predicted labels, with confidence intervals.

The measures are those of scikit-learn; this module adds the intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    confusion_matrix,
    precision_recall_fscore_support,
    roc_auc_score,
)

from chimap._types import JSON, ArrayLike
from chimap._validation import DataError
from chimap.data.label_kinds import is_text, kind_of
from chimap.report._answers import checked_pair
from chimap.report._plain import plain
from chimap.report.intervals import Interval, normal_quantile, wilson_interval

_UNEQUAL = 3  # rows of the largest class over rows of the smallest, above which accuracy is a poor summary


class ConfusedPair(NamedTuple):
    """The rows of class ``true`` predicted as class ``predicted``: their number and their share of the true class."""

    true: object
    predicted: object
    rows: int
    share: float


@dataclass(frozen=True, eq=False)
class ClassificationMetrics:
    """Measures of predicted labels.

    Parameters
    ----------
    classes : tuple
        The k classes, in the order of all arrays below.
    confusion : ndarray of shape (k, k), int64
        Number of rows of true class i predicted as class j.
    precision : ndarray of shape (k,)
        Share of the rows predicted as a class that are of it; NaN if no row is predicted as the class.
    recall : ndarray of shape (k,)
        Share of the rows of a class that are predicted as it; NaN if no row is of the class.
    f1 : ndarray of shape (k,)
        Harmonic mean of precision and recall; NaN if no row is of the class or predicted as it.
    support : ndarray of shape (k,), int64
        Number of rows of each true class.
    confidence : float, default=0.95
        Confidence of ``interval``.
    auc : float or None, default=None
        For two classes with scores, the probability that a row of the second class scores above a row of the first.
    average_precision : float or None, default=None
        For two classes with scores, the average precision of the rarer class, sum (R_m - R_m-1) P_m.
    """

    classes: tuple[object, ...]
    confusion: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray
    support: np.ndarray
    confidence: float = 0.95
    auc: float | None = None
    average_precision: float | None = None

    @property
    def n_rows(self) -> int:
        """Number of predicted rows."""
        return int(self.support.sum())

    @property
    def is_unequal(self) -> bool:
        """Whether the largest class has over three times the rows of the smallest, so that accuracy says little."""
        return bool(self.support.max() > _UNEQUAL * max(1, self.support.min()))

    @property
    def rarer(self) -> int:
        """Index of the class with the fewest rows; ties go to the last."""
        return int(self.support.size - 1 - np.argmin(self.support[::-1]))

    @property
    def n_correct(self) -> int:
        """Number of rows whose predicted class is the true one."""
        return int(np.trace(self.confusion))

    @property
    def accuracy(self) -> float:
        """Share of the rows that are predicted correctly."""
        return self.n_correct / self.n_rows

    @property
    def interval(self) -> Interval:
        """Wilson's confidence interval of the accuracy."""
        return wilson_interval(self.n_correct, self.n_rows, self.confidence)

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall over the classes that have rows."""
        return float(np.nanmean(self.recall))

    @property
    def macro_f1(self) -> float:
        """Mean F1 over the classes that have rows or were predicted."""
        return float(np.nanmean(self.f1))

    def as_dict(self) -> JSON:
        """Return all measures as JSON types, with None for undefined ratios."""
        columns = zip(self.classes, self.precision, self.recall, self.f1, self.support, strict=True)
        names = ("class", "precision", "recall", "f1", "support")
        return {
            "task": "classification",
            "rows": self.n_rows,
            "correct": self.n_correct,
            "accuracy": self.accuracy,
            "accuracy_interval": list(self.interval),
            "confidence": self.confidence,
            "balanced_accuracy": plain(self.balanced_accuracy),
            "macro_f1": plain(self.macro_f1),
            "auc": self.auc,
            "average_precision": self.average_precision,
            "rarer_class": plain(self.classes[self.rarer]) if self.is_unequal else None,
            "per_class": [dict(zip(names, plain(row), strict=True)) for row in columns],
            "confusion": plain(self.confusion),
        }


def accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Return the share of correct labels, mean(y_true == y_pred).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_pred : array-like of shape (n,)
        Predicted labels.

    Returns
    -------
    float
        The accuracy, from 0 to 1.

    Raises
    ------
    DataError
        If there are no rows or the lengths differ.

    Examples
    --------
    >>> accuracy([0, 1, 1, 0], [0, 1, 0, 0])
    0.75
    """
    y_true, y_pred = checked_pair(y_true, y_pred)
    return float(accuracy_score(y_true, y_pred))


def classification_metrics(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    classes: Sequence[object] | None = None,
    scores: np.ndarray | None = None,
    confidence: float = 0.95,
) -> ClassificationMetrics:
    """Measure predicted labels against true ones.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_pred : array-like of shape (n,)
        Predicted labels.
    classes : sequence or None, default=None
        The classes in the order to report them; classes without rows are kept. None takes all labels that occur,
        sorted.
    scores : ndarray of shape (n,) or None, default=None
        For two classes, scores that are higher for the second; they give ROC AUC and average precision.
    confidence : float, default=0.95
        Confidence of the interval of the accuracy.

    Returns
    -------
    ClassificationMetrics
        The confusion matrix and the measures that follow from it.

    Raises
    ------
    DataError
        If there are no rows, the lengths differ, a label is not among ``classes``, or there are fewer than two
        classes.

    Examples
    --------
    >>> classification_metrics(["a", "b", "b"], ["a", "b", "a"]).confusion.tolist()
    [[1, 0], [1, 1]]
    """
    y_true, y_pred = checked_pair(y_true, y_pred)
    normal_quantile(confidence)
    labels = _classes(y_true, y_pred, classes)
    confusion = confusion_matrix(y_true, y_pred, labels=labels)
    precision, recall, f1, support = precision_recall_fscore_support(
        y_true, y_pred, labels=labels, zero_division=np.nan
    )
    metrics = ClassificationMetrics(
        tuple(labels.tolist()), confusion, precision, recall, f1, support.astype(np.int64), confidence
    )
    if scores is None or not support.all():  # a ranking needs rows of both classes
        return metrics
    rarer_scores = scores if metrics.rarer == 1 else -scores
    return replace(
        metrics,
        auc=float(roc_auc_score(y_true == labels[1], scores)),
        average_precision=float(average_precision_score(y_true == labels[metrics.rarer], rarer_scores)),
    )


def most_confused(metrics: ClassificationMetrics, n: int = 10) -> list[ConfusedPair]:
    """Return the ``n`` off-diagonal cells of the confusion matrix with the most rows, in descending order.

    Parameters
    ----------
    metrics : ClassificationMetrics
        Metrics with the confusion matrix.
    n : int, default=10
        Number of cells.

    Returns
    -------
    list of ConfusedPair
        The pairs of classes with their rows; ties are ordered by descending share of the true class.

    Examples
    --------
    >>> metrics = classification_metrics(["cat", "cat", "dog"], ["cat", "dog", "dog"])
    >>> most_confused(metrics)
    [ConfusedPair(true='cat', predicted='dog', rows=1, share=0.5)]
    """
    wrong = metrics.confusion - np.diag(np.diag(metrics.confusion))
    true, predicted = np.nonzero(wrong)
    counts = wrong[true, predicted]
    shares = counts / metrics.support[true]
    order = np.lexsort((predicted, true, -shares, -counts))[:n]
    return [
        ConfusedPair(
            metrics.classes[true[i]], metrics.classes[predicted[i]], int(counts[i]), float(shares[i])
        )
        for i in order
    ]


def _classes(y_true: np.ndarray, y_pred: np.ndarray, classes: Sequence[object] | None) -> np.ndarray:
    if is_text(y_true) != is_text(y_pred):
        raise DataError(
            f"y_true holds {kind_of(y_true)} and y_pred {kind_of(y_pred)}; pass both as the same kind of label."
        )
    seen = np.union1d(y_true, y_pred)
    labels = seen if classes is None else np.asarray(classes)
    unknown = seen[~np.isin(seen, labels)]
    if unknown.size:
        raise DataError(
            f"Label {unknown[0]!s} occurs in the rows but is not one of the {labels.size} classes; "
            "evaluate on rows of the classes that the model was fitted on."
        )
    if labels.size < 2:
        raise DataError(
            f"All {y_true.size} rows are of one class, {labels[0]!s}, so accuracy says nothing; "
            "evaluate on rows of at least two classes (shuffle before holding out)."
        )
    return labels
