"""Measures of several tasks or targets, each over the rows in which its label is known."""

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
    """Measures of each of several tasks or targets.

    Parameters
    ----------
    names : list of str
        Names of the t tasks.
    measures : dict of str to ndarray of shape (t,)
        The measures by name: "ROC AUC", "average precision" and "balanced accuracy" of labels 0 and 1, or "R2", "RMSE"
        and "MAE" of numbers; NaN where a measure is undefined.
    n_seen : ndarray of shape (t,)
        Number of rows with a label or target for each task.
    n_rows : int
        Number of all rows.
    n_positive : ndarray of shape (t,) or None, default=None
        Number of rows of label 1 for each task; None for numbers.

    Examples
    --------
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
        """Return the mean of a measure over the tasks for which it is defined; NaN if there is none.

        Parameters
        ----------
        measure : str
            Name of the measure, a key of ``measures``.
        """
        values = self.measures[measure]
        is_defined = np.isfinite(values)
        return float(values[is_defined].mean()) if is_defined.any() else float("nan")

    @property
    def first(self) -> str:
        """Name of the first, leading measure."""
        return next(iter(self.measures))

    def weakest_first(self) -> np.ndarray:
        """Return the indices of the tasks by ascending leading measure; tasks without it come last."""
        return np.argsort(self.measures[self.first], kind="stable")

    def as_dict(self) -> JSON:
        """Return the measures as JSON types."""
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
    """Measure the outputs of several tasks or targets.

    Parameters
    ----------
    Y : ndarray of shape (n, t)
        Labels 0 and 1, or targets; NaN where one is missing.
    outputs : ndarray of shape (n, t)
        Scores that are positive for label 1, or predicted targets.
    names : list of str
        Names of the t tasks.
    is_classification : bool, default=True
        Whether ``Y`` holds labels rather than targets.

    Returns
    -------
    TaskMetrics
        The measures of each task, over the rows in which it is known.

    Examples
    --------
    >>> Y = np.array([[1.0, 0.0], [3.0, np.nan], [5.0, 4.0]])
    >>> predictions = np.array([[1.0, 0.0], [3.0, 9.0], [5.0, 2.0]])
    >>> task_metrics(Y, predictions, ["sugar", "acid"], is_classification=False).measures["MAE"].tolist()
    [0.0, 1.0]
    """
    seen = ~np.isnan(Y)
    measure_names, measure = (_OF_LABELS, _of_labels) if is_classification else (_OF_NUMBERS, _of_numbers)
    values = np.full((len(names), len(measure_names)), np.nan)
    for j, rows in enumerate(seen.T):
        y, f = Y[rows, j], outputs[rows, j]
        if y.size > 1 and not (is_classification and np.all(y == y[0])):
            values[j] = measure(y, f)
    measures = dict(zip(measure_names, values.T, strict=True))
    positive = (Y == 1).sum(axis=0) if is_classification else None
    return TaskMetrics(names, measures, seen.sum(axis=0), Y.shape[0], positive)


def _of_labels(y: np.ndarray, f: np.ndarray) -> tuple[float, ...]:
    return roc_auc_score(y, f), average_precision_score(y, f), balanced_accuracy_score(y, f > 0)


def _of_numbers(y: np.ndarray, f: np.ndarray) -> tuple[float, ...]:
    return r2_score(y, f), root_mean_squared_error(y, f), mean_absolute_error(y, f)
