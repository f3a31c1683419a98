"""Repeated random splits: how much a score depends on which rows a model was trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from chimap import _arrays
from chimap.report._plain import plain
from chimap.report.metrics import classification_metrics
from chimap.report.ranking import ranking_metrics

NAMES = {
    "accuracy": "Accuracy",
    "class_rate": "Class recognition rate",
    "mean_average_precision": "Mean average precision",
}


@dataclass(frozen=True, eq=False)
class SplitScores:
    """Scores of a model that was trained anew on each of s splits, (s,) each.

    accuracy: share of the test rows that are right. class_rate: mean recall over the classes.
    mean_average_precision: of the scores. n_train, n_test: rows, of the first split.
    """

    accuracy: np.ndarray
    class_rate: np.ndarray
    mean_average_precision: np.ndarray
    n_train: int
    n_test: int

    def rows(self) -> list[tuple[str, float, float]]:
        """(name, mean, standard deviation over the splits; NaN of a single one) of each score."""
        found = [(name, getattr(self, key)) for key, name in NAMES.items()]
        return [(n, float(v.mean()), float(v.std(ddof=1)) if v.size > 1 else float("nan")) for n, v in found]

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        scores = {
            key: {"mean": mean, "deviation": plain(deviation), "splits": plain(getattr(self, key))}
            for key, (_, mean, deviation) in zip(NAMES, self.rows(), strict=True)
        }
        return {"n_splits": self.accuracy.size, "n_train": self.n_train, "n_test": self.n_test, **scores}


def repeated_splits(estimator: Any, X: Any, y: Any, splits: Any, groups: Any = None) -> SplitScores:
    """Train a copy of the estimator on each split, and score it on the rest.

    estimator: a classifier with ``decision_function``. X: rows (n, bins), dense or CSR. y: labels (n,). splits: a
    splitter of scikit-learn, such as ``PerClassSplits(15)`` or ``StratifiedShuffleSplit()``. groups (n,): of rows that
    the splitter, and the choice of settings within a split, keep together; or None.

    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> from chimap.data import PerClassSplits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = HistogramClassifier("chi2", alpha=1.0)
    >>> found = repeated_splits(model, X, y, PerClassSplits(30, n_splits=3, random_state=0))
    >>> found.n_train, bool(found.class_rate.mean() > 0.9), bool(found.class_rate.std() < 0.03)
    (300, True, True)
    """
    y = np.asarray(y)
    scores, sizes = [], []
    for train, test in splits.split(X, y, groups):
        together = {} if groups is None else {"groups": groups[train]}
        model = clone(estimator).fit(_arrays.take_rows(X, train), y[train], **together)
        outputs = np.asarray(model.decision_function(_arrays.take_rows(X, test)))
        if outputs.ndim == 1:
            outputs = np.stack([-outputs, outputs], axis=1)
        answers = model.classes_[outputs.argmax(axis=1)]
        metrics = classification_metrics(y[test], answers, classes=model.classes_)
        ranking = ranking_metrics(y[test], outputs, metrics.classes)
        scores.append((metrics.accuracy, metrics.balanced_accuracy, ranking.mean_average_precision))
        sizes.append((len(train), len(test)))
    accuracy, class_rate, mean_ap = np.array(scores).T
    return SplitScores(accuracy, class_rate, mean_ap, *sizes[0])
