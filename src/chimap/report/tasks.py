"""How well several tasks, or several targets, are predicted: each on the rows that it is seen in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from chimap._types import JSON
from chimap.report._plain import plain

_OF_LABELS = ("ROC AUC", "average precision", "balanced accuracy")
_OF_NUMBERS = ("R2", "RMSE", "MAE")


@dataclass(frozen=True, eq=False)
class TaskMetrics:
    """Measures of each task.

    names: of the tasks. measures: arrays (t,) by name: "ROC AUC", "average precision" and "balanced accuracy" of labels
    0 and 1; "R2", "RMSE" and "MAE" of numbers. NaN where one is not defined. n_seen (t,): rows that have a label.
    n_rows: in all. n_positive (t,): rows of label 1; None of numbers.

    >>> Y, outputs = np.array([[0, 1], [1, np.nan], [1, 0]]), np.array([[-1.0, 1], [1, 2], [2, -1]])
    >>> metrics = task_metrics(Y, outputs, ["a", "b"])
    >>> metrics.mean("ROC AUC"), metrics.n_seen.tolist(), metrics.n_positive.tolist()
    (1.0, [3, 2], [2, 1])
    """

    names: list[str]
    measures: dict[str, np.ndarray]
    n_seen: np.ndarray
    n_rows: int
    n_positive: np.ndarray | None = None

    def mean(self, measure: str) -> float:
        """Over the tasks that have it; NaN where none has."""
        values = self.measures[measure]
        there = np.isfinite(values)
        return float(values[there].mean()) if there.any() else float("nan")

    @property
    def first(self) -> str:
        """The measure that leads."""
        return next(iter(self.measures))

    def weakest_first(self) -> np.ndarray:
        """Places of the tasks by the leading measure, ascending; those that lack it come last."""
        return np.argsort(self.measures[self.first], kind="stable")

    def as_dict(self) -> JSON:
        """Plain JSON types."""
        tasks = [
            {"name": name, "rows": int(self.n_seen[i])}
            | ({} if self.n_positive is None else {"positive": int(self.n_positive[i])})
            | {measure: plain(float(values[i])) for measure, values in self.measures.items()}
            for i, name in enumerate(self.names)
        ]
        kind = "multioutput" if self.n_positive is None else "multilabel"
        means = {measure: plain(self.mean(measure)) for measure in self.measures}
        return {"task": kind, "rows": self.n_rows, "means": means, "tasks": tasks}


def task_metrics(
    Y: np.ndarray, outputs: np.ndarray, names: list[str], is_classification: bool = True
) -> TaskMetrics:
    """Of labels Y (n, t), NaN where missing, and outputs (n, t): scores, positive for label 1, or predicted targets."""
    seen = ~np.isnan(Y)
    wanted, measure = (_OF_LABELS, _of_labels) if is_classification else (_OF_NUMBERS, _of_numbers)
    each = np.full((len(names), len(wanted)), np.nan)
    for j, own in enumerate(seen.T):
        y, f = Y[own, j], outputs[own, j]
        if y.size > 1 and not (is_classification and np.all(y == y[0])):
            each[j] = measure(y, f)
    measures = dict(zip(wanted, each.T, strict=True))
    positive = (Y == 1).sum(axis=0) if is_classification else None
    return TaskMetrics(names, measures, seen.sum(axis=0), Y.shape[0], positive)


def _of_labels(y: np.ndarray, f: np.ndarray) -> tuple[float, ...]:
    return roc_auc_score(y, f), average_precision_score(y, f), balanced_accuracy_score(y, f > 0)


def _of_numbers(y: np.ndarray, f: np.ndarray) -> tuple[float, ...]:
    return r2_score(y, f), root_mean_squared_error(y, f), mean_absolute_error(y, f)
