"""How well several tasks, or several targets, are predicted: each on the rows that it is seen in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, balanced_accuracy_score, r2_score, roc_auc_score

from chimap.report._plain import plain


@dataclass(frozen=True, eq=False)
class TaskMetrics:
    """Measures of each task.

    names: of the tasks. measures: arrays (t,) by name: "ROC AUC", "average precision" and "balanced accuracy" of labels
    0 and 1; "R2" and "RMSE" of numbers. NaN where one is not defined. n_seen (t,): rows that have a label.
    n_rows: in all.

    >>> Y, outputs = np.array([[0, 1], [1, np.nan], [1, 0]]), np.array([[-1.0, 1], [1, 2], [2, -1]])
    >>> metrics = task_metrics(Y, outputs, ["a", "b"])
    >>> metrics.mean("ROC AUC"), metrics.n_seen.tolist()
    (1.0, [3, 2])
    """

    names: list[str]
    measures: dict[str, np.ndarray]
    n_seen: np.ndarray
    n_rows: int

    def mean(self, measure: str) -> float:
        """Over the tasks that have it; NaN where none has."""
        values = self.measures[measure]
        there = np.isfinite(values)
        return float(values[there].mean()) if there.any() else float("nan")

    @property
    def first(self) -> str:
        """The measure that leads."""
        return next(iter(self.measures))

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        tasks = [
            {"name": name, "rows": int(self.n_seen[i])}
            | {measure: plain(float(values[i])) for measure, values in self.measures.items()}
            for i, name in enumerate(self.names)
        ]
        means = {measure: plain(self.mean(measure)) for measure in self.measures}
        return {"rows": self.n_rows, "means": means, "tasks": tasks}


def task_metrics(
    Y: np.ndarray, outputs: np.ndarray, names: list[str], is_classification: bool = True
) -> TaskMetrics:
    """Of labels Y (n, t), NaN where missing, and outputs (n, t): scores, positive for label 1, or predicted targets."""
    each = []
    for y, f in zip(Y.T, outputs.T, strict=True):
        seen = ~np.isnan(y)
        measure = _of_labels if is_classification else _of_numbers
        each.append(measure(y[seen], f[seen]))
    measures = {name: np.array([one[name] for one in each]) for name in each[0]}
    return TaskMetrics(names, measures, (~np.isnan(Y)).sum(axis=0), Y.shape[0])


def _of_labels(y: np.ndarray, f: np.ndarray) -> dict[str, float]:
    if np.unique(y).size < 2:
        return dict.fromkeys(("ROC AUC", "average precision", "balanced accuracy"), float("nan"))
    return {
        "ROC AUC": float(roc_auc_score(y, f)),
        "average precision": float(average_precision_score(y, f)),
        "balanced accuracy": float(balanced_accuracy_score(y, f > 0)),
    }


def _of_numbers(y: np.ndarray, f: np.ndarray) -> dict[str, float]:
    if y.size < 2:
        return dict.fromkeys(("R2", "RMSE"), float("nan"))
    return {"R2": float(r2_score(y, f)), "RMSE": float(np.sqrt(np.mean(np.square(y - f))))}
