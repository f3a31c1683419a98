"""How good predicted labels are, and how sure of that their number lets us be.

What scikit-learn measures is taken from scikit-learn; the intervals are added here.
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
from chimap.report._answers import checked_pair
from chimap.report._plain import plain
from chimap.report.intervals import Interval, normal_quantile, wilson_interval

_UNEQUAL = 3  # times the rows of the smallest class that the largest may have before accuracy says little


class ConfusedPair(NamedTuple):
    """Rows of class ``true`` that were taken for ``predicted``: how many, and their share of the class."""

    true: object
    predicted: object
    rows: int
    share: float


@dataclass(frozen=True, eq=False)
class ClassificationMetrics:
    """Counts of right and wrong answers, and what follows from them.

    classes: the k classes, in the order of every array below.
    confusion: rows of true class i answered as class j, (k, k) int64.
    precision, recall, f1: of each class, (k,); NaN where nothing was predicted as, or nothing is, the class.
    support: rows of each true class, (k,) int64.
    confidence: of ``interval``.
    auc: of two classes, the probability that a row of the second scores above one of the first; None without scores.
    average_precision: of two classes, that of the rarer one, sum (R_m - R_m-1) P_m; None without scores.
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
        """Rows that were predicted."""
        return int(self.support.sum())

    @property
    def is_unequal(self) -> bool:
        """Whether the largest class has over three times the rows of the smallest: accuracy then says little."""
        return bool(self.support.max() > _UNEQUAL * max(1, self.support.min()))

    @property
    def rarer(self) -> int:
        """Place of the class with the fewest rows; of equals the last."""
        return int(self.support.size - 1 - np.argmin(self.support[::-1]))

    @property
    def n_correct(self) -> int:
        """Rows whose predicted class is the true one."""
        return int(np.trace(self.confusion))

    @property
    def accuracy(self) -> float:
        """Share of the rows that are right."""
        return self.n_correct / self.n_rows

    @property
    def interval(self) -> Interval:
        """Wilson's interval of the accuracy."""
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
        """Plain JSON types; None where a ratio is not defined."""
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
    """Share of equal labels: mean(y_true == y_pred), both (n,). DataError for no rows or unequal lengths.

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
    """Measure predicted against true labels, both (n,).

    ``classes`` fixes the order and adds classes without rows; by default all labels that occur, sorted. ``scores``
    (n,), of two classes: the higher, the more the second.
    DataError for no rows, unequal lengths, labels outside ``classes``, or fewer than two classes in all.

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
    if scores is None or not support.all():  # of one class alone there is nothing to rank
        return metrics
    towards = scores if metrics.rarer == 1 else -scores
    return replace(
        metrics,
        auc=float(roc_auc_score(y_true == labels[1], scores)),
        average_precision=float(average_precision_score(y_true == labels[metrics.rarer], towards)),
    )


def most_confused(metrics: ClassificationMetrics, n: int = 10) -> list[ConfusedPair]:
    """The ``n`` cells off the diagonal with the most rows, most first (of equals the larger share)."""
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
    if y_true.dtype.kind in "US" and y_pred.dtype.kind not in "USO":
        raise DataError(f"y_true holds text and y_pred {y_pred.dtype}; give both as the same kind of label.")
    seen = np.union1d(y_true, y_pred)
    labels = seen if classes is None else np.asarray(classes)
    unknown = seen[~np.isin(seen, labels)]
    if unknown.size:
        raise DataError(
            f"Label {unknown[0]!s} occurs in the rows but not among the {labels.size} classes; "
            "evaluate on rows of the classes that the model was fitted on."
        )
    if labels.size < 2:
        raise DataError(
            f"All {y_true.size} rows are of one class, {labels[0]!s}, so accuracy says nothing; "
            "evaluate on rows of two classes or more (shuffle before holding out)."
        )
    return labels
