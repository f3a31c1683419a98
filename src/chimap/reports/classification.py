"""Measures of predicted labels: as numbers, in words, and as sections of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    confusion_matrix,
    precision_recall_fscore_support,
    roc_auc_score,
)

from chimap._formatting import interval_in_words, plain, score_in_words
from chimap._types import JSON, ArrayLike, Scoring
from chimap._validation import DataError
from chimap.data.label_kinds import is_text, label_type
from chimap.reports.measures import (
    Baseline,
    Interval,
    LeadingScore,
    Metrics,
    auc_interval,
    check_confidence,
    checked_pair,
    mean_share_interval,
    share_in_words,
    share_interval,
)
from chimap.reports.ranking import RankingMetrics
from chimap.selection.structures import Measure, Nominal, Structure

_UNEQUAL_RATIO = 3  # rows of the largest class over rows of the smallest, above which accuracy is a poor summary


class ConfusedPair(NamedTuple):
    """The rows of class ``true`` predicted as class ``predicted``: their number and their share of the true class."""

    true: object
    predicted: object
    rows: int
    share: float


@dataclass(frozen=True, eq=False)
class ClassificationMetrics(Metrics):
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
    interval : tuple of float
        Wilson's confidence interval of the accuracy; of rows in groups, see ``measures.share_interval``.
    confidence : float, default=0.95
        Confidence of ``interval``.
    auc : float or None, default=None
        For two classes with scores, the probability that a row of the second class scores above a row of the first.
    auc_interval : tuple of float or None, default=None
        Its confidence interval, see ``measures.auc_interval``; of rows in groups, each class counts its groups.
    balanced_interval : tuple of float or None, default=None
        That of the balanced accuracy, by the intervals of the recalls of classes that have rows.
    average_precision : float or None, default=None
        For two classes with scores, the average precision of the class of interest, sum (R_m - R_m-1) P_m.
    positive : int or None, default=None
        Index of the positive one of two classes, if it was named.
    n_groups : int or None, default=None
        Number of groups of the rows, if they have any.
    structure : Structure, default=Nominal()
        How the classes are related, which says what else is measured.
    asked : LeadingScore or None, default=None
        The score that the fit was asked for.
    """

    classes: tuple[object, ...]
    confusion: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray
    support: np.ndarray
    interval: Interval
    confidence: float = 0.95
    auc: float | None = None
    auc_interval: Interval | None = None
    balanced_interval: Interval | None = None
    average_precision: float | None = None
    positive: int | None = None
    n_groups: int | None = None
    structure: Structure = field(default_factory=Nominal)
    asked: LeadingScore | None = None

    listed: ClassVar[str] = "evaluation of classes"

    @property
    def n_rows(self) -> int:
        """Number of predicted rows."""
        return int(self.support.sum())

    @property
    def is_unequal(self) -> bool:
        """Whether the largest class has over three times the rows of the smallest, so that accuracy says little."""
        return bool(self.support.max() > _UNEQUAL_RATIO * max(1, self.support.min()))

    @property
    def leads_with_auc(self) -> bool:
        """Whether headlines begin with the area under the ROC curve: of two classes, one of which is to be found."""
        return self.auc is not None and (self.is_unequal or self.positive is not None)

    @property
    def rarer(self) -> int:
        """Index of the class with the fewest rows; ties go to the last."""
        return int(self.support.size - 1 - np.argmin(self.support[::-1]))

    @property
    def of_interest(self) -> int:
        """Index of the class that is to be found: the positive one, if it was named, or else the rarer one."""
        return self.rarer if self.positive is None else self.positive

    @property
    def n_correct(self) -> int:
        """Number of rows whose predicted class is the true one."""
        return int(np.trace(self.confusion))

    @property
    def accuracy(self) -> float:
        """Share of the rows that are predicted correctly."""
        return self.n_correct / self.n_rows

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall over the classes that have rows."""
        return float(np.nanmean(self.recall))

    @property
    def macro_f1(self) -> float:
        """Mean F1 over the classes that have rows or were predicted."""
        return float(np.nanmean(self.f1))

    def leading(self, baseline: Baseline | None) -> LeadingScore | None:
        """See ``Metrics``: of classes of unequal size a score that does not depend on the sizes."""
        usual = "roc_auc" if self.leads_with_auc else "balanced_accuracy" if self.is_unequal else "accuracy"
        return self.asked or self.known(usual, baseline)

    def known(self, scoring: Scoring, baseline: Baseline | None) -> LeadingScore | None:
        """See ``Metrics``: accuracies, and the area under the ROC curve of two classes."""
        if scoring == "accuracy":
            return LeadingScore(scoring, self.accuracy, self.interval, None if baseline is None else baseline.value)
        if scoring == "balanced_accuracy" and self.balanced_interval is not None:
            guess = 1 / float(np.count_nonzero(self.support))
            return LeadingScore(scoring, self.balanced_accuracy, self.balanced_interval, guess)
        if scoring == "roc_auc" and self.auc is not None and self.auc_interval is not None:
            return LeadingScore(scoring, self.auc, self.auc_interval, 0.5)
        return None

    @property
    def of_structure(self) -> list[Measure]:
        """What the structure of the classes measures besides."""
        return self.structure.measures(self.confusion)

    def as_dict(self) -> JSON:
        """Return all measures as JSON types, with None for undefined ratios."""
        columns = zip(self.classes, self.precision, self.recall, self.f1, self.support, strict=True)
        names = ("class", "precision", "recall", "f1", "support")
        return {
            "task": "classification",
            "rows": self.n_rows,
            "groups": self.n_groups,
            "correct": self.n_correct,
            "accuracy": self.accuracy,
            "accuracy_interval": list(self.interval),
            "confidence": self.confidence,
            "balanced_accuracy": plain(self.balanced_accuracy),
            "balanced_accuracy_interval": plain(self.balanced_interval),
            "macro_f1": plain(self.macro_f1),
            **{measure.name.replace(" ", "_"): plain(measure.value) for measure in self.of_structure},
            "auc": self.auc,
            "auc_interval": plain(self.auc_interval),
            "average_precision": self.average_precision,
            "rarer_class": plain(self.classes[self.rarer]) if self.is_unequal else None,
            "positive_class": None if self.positive is None else plain(self.classes[self.positive]),
            "per_class": [dict(zip(names, plain(row), strict=True)) for row in columns],
            "confusion": plain(self.confusion),
        }

    def lines(self, ranking: RankingMetrics | None = None) -> dict[str, str | None]:
        """Return the measures in lines of text."""
        return self.asked_line | self._lines(ranking)

    def _lines(self, ranking: RankingMetrics | None) -> dict[str, str | None]:
        accuracy = _with_ends(self.accuracy, self.interval, "accuracy")
        balanced = _with_ends(self.balanced_accuracy, self.balanced_interval, "accuracy")
        mean_precision = None if ranking is None else share_in_words(ranking.mean_average_precision)
        found: dict[str, str | None] = {
            "accuracy": f"{accuracy}, {self.n_correct:,} of {self.rows_in_words} correct",
            **{measure.name: f"{measure.text}, {measure.about}" for measure in self.of_structure},
            "balanced": f"{balanced}, mean accuracy over classes",
            "mAP": mean_precision and f"{mean_precision}, mean average precision",
            "ROC AUC": None if self.auc is None else _with_ends(self.auc, self.auc_interval, "roc_auc"),
            "worst classes": self._worst_classes(),
        }
        if not self.is_unequal and self.positive is None:
            return found
        if self.average_precision is None:
            return {"balanced": found.pop("balanced"), **found}
        precision = (
            f"{score_in_words(self.average_precision, 'average_precision')}, for class {self.classes[self.of_interest]}"
        )
        headline: dict[str, str | None] = {
            "ROC AUC": found.pop("ROC AUC"),
            "average precision": precision,
            "balanced": found.pop("balanced"),
        }
        kind = "rare class" if self.positive is None else "positive"
        return {**headline, kind: self._class_of_interest(), **found}

    def line(self, baseline: Baseline) -> str:
        """Return the leading measures and the baseline on one line."""
        against = f"{baseline.name}: {self.in_words(baseline.value)}"
        accuracy, balanced = share_in_words(self.accuracy), share_in_words(self.balanced_accuracy)
        if self.leads_with_auc:
            return (
                f"{self.asked_first}ROC AUC {self.auc:.3f}, average precision {self.average_precision:.3f}, balanced "
                f"accuracy {balanced}; {self._class_of_interest()}; accuracy {accuracy} on {self.rows_in_words}; "
                f"{against}"
            )
        first = self.asked_first + (f"balanced accuracy {balanced}, " if self.is_unequal else "")
        if len(self.classes) == 2 and self.auc is not None:
            first += f"ROC AUC {self.auc:.3f}, "
        own = [measure for measure in self.of_structure if measure.name not in self.asked_line]
        first += "".join(f"{measure.name} {measure.text}, " for measure in own)
        low, high = (f"{100 * end:.1f}" for end in self.interval)
        return f"{first}accuracy {accuracy} ({low} to {high} at 95 % confidence) on {self.rows_in_words}; {against}"

    def in_words(self, value: float) -> str:
        """Return an accuracy as text."""
        return share_in_words(value)

    def _worst_classes(self, n: int = 3) -> str:
        """Return the classes with the lowest recall, each with the class that it is most often mistaken for."""
        order = [i for i in np.argsort(self.recall, kind="stable") if self.recall[i] < 1][:n]
        # most rows first, so reversed: the last entry stays
        taken_for = {pair.true: pair.predicted for pair in reversed(most_confused(self, self.confusion.size))}
        lines = [
            f"{self.classes[i]}: {share_in_words(self.recall[i])} of {self.support[i]:,} rows correct, "
            f"most often taken for {taken_for[self.classes[i]]}"
            for i in order
        ]
        return "\n".join(lines) or "none: every row is correct"

    def _class_of_interest(self) -> str:
        """Return '12 of 40 rows of class active found (30.0 %), 7 false alarms' for the class that is to be found.

        If it was named as the positive class, the line also has precision, recall and F1 by name.
        """
        k = self.of_interest
        n_found, n_rows = int(self.confusion[k, k]), int(self.support[k])
        line = (
            f"{n_found:,} of {n_rows:,} rows of class {self.classes[k]} found ({share_in_words(n_found / n_rows)}), "
            f"{int(self.confusion[1 - k, k]):,} false alarms"
        )
        if self.positive is None:
            return line
        shares = {"precision": self.precision[k], "recall": self.recall[k], "F1": self.f1[k]}
        return f"{line}; " + ", ".join(f"{name} {share_in_words(share)}" for name, share in shares.items())


def _with_ends(value: float, interval: Interval | None, measure: str) -> str:
    """Return a score with its interval as terminals show it."""
    said = score_in_words(value, measure)
    return said if interval is None else f"{said}  ({interval_in_words(interval, measure)} at 95 % confidence)"


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
    classes: Sequence[object] | np.ndarray | None = None,
    scores: np.ndarray | None = None,
    confidence: float = 0.95,
    positive: object = None,
    groups: np.ndarray | None = None,
    structure: Structure | None = None,
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
    positive : label or None, default=None
        The positive one of two classes, whose average precision is measured; None for the rarer one.
    groups : ndarray of shape (n,) or None, default=None
        The group of each row, such as a subject; the interval counts groups.
    structure : Structure or None, default=None
        How the classes are related, such as ``selection.ordered.OrderedClasses``; they are then measured in its order.

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
    check_confidence(confidence)
    structure = structure or Nominal()
    labels = structure.arranged(_classes(y_true, y_pred, classes))
    structure = structure.of_classes(labels)
    confusion = confusion_matrix(y_true, y_pred, labels=labels)
    precision, recall, f1, support = precision_recall_fscore_support(
        y_true, y_pred, labels=labels, zero_division=np.nan
    )
    metrics = ClassificationMetrics(
        tuple(labels.tolist()),
        confusion,
        precision,
        recall,
        f1,
        support.astype(np.int64),
        share_interval(y_true == y_pred, confidence, groups),
        confidence,
        positive=None if positive is None else labels.tolist().index(positive),
        n_groups=None if groups is None else np.unique(groups).size,
        structure=structure,
        balanced_interval=_balanced_interval(y_true, y_pred, confidence, groups),
    )
    if scores is None or not support.all():  # a ranking needs rows of both classes
        return metrics
    of_interest, auc = metrics.of_interest, float(roc_auc_score(y_true == labels[1], scores))
    each = [y_true == label for label in labels]
    n_first, n_second = (int(of.sum()) if groups is None else np.unique(groups[of]).size for of in each)
    return replace(
        metrics,
        auc=auc,
        auc_interval=auc_interval(auc, n_first, n_second, confidence),
        average_precision=float(
            average_precision_score(y_true == labels[of_interest], scores if of_interest == 1 else -scores)
        ),
    )


def _balanced_interval(
    y_true: np.ndarray, y_pred: np.ndarray, confidence: float, groups: np.ndarray | None
) -> Interval:
    """Return the interval of the mean recall of the classes that have rows."""
    right, each = y_true == y_pred, [y_true == label for label in np.unique(y_true)]
    intervals = [share_interval(right[of], confidence, None if groups is None else groups[of]) for of in each]
    return mean_share_interval(np.array([right[of].mean() for of in each]), intervals)


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
        ConfusedPair(metrics.classes[true[i]], metrics.classes[predicted[i]], int(counts[i]), float(shares[i]))
        for i in order
    ]


def _classes(y_true: np.ndarray, y_pred: np.ndarray, classes: Sequence[object] | np.ndarray | None) -> np.ndarray:
    if is_text(y_true) != is_text(y_pred):
        raise DataError(
            f"y_true holds {label_type(y_true)} and y_pred {label_type(y_pred)}; pass both as the same kind of label."
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


def threshold_in_words(threshold: float, classes: np.ndarray, positive: object = None) -> str:
    """Return '-0.42: scores above it mean active', of the positive class or else of the second.

    >>> threshold_in_words(0.25, np.array(["case", "control"]), "case")
    '0.25: scores below it mean case'
    """
    meant = classes[1] if positive is None else positive
    return f"{threshold:.4g}: scores {'above' if meant == classes[1] else 'below'} it mean {meant}"
