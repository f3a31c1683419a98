"""Measures of several tasks or targets, or of several quantiles of a target, as numbers and in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from chimap._formatting import interval_in_words, measure_in_words, plain, score_in_words
from chimap._types import JSON
from chimap.losses import Loss
from chimap.reports.measures import Baseline, Interval, LeadingScore, Metrics, auc_interval, check_confidence
from chimap.reports.ranking import RankingMetrics
from chimap.reports.regression import measures_of_loss, regression_metrics

_MOST_TASKS = 20  # tasks shown on the terminal
_SHORT_NAMES = {"average precision": "avg precision", "balanced accuracy": "bal accuracy"}
_MEASURES_OF_LABELS = ("ROC AUC", "average precision", "balanced accuracy")
_MEASURES_OF_NUMBERS = ("R2", "RMSE", "MAE")


@dataclass(frozen=True, eq=False)
class TaskMetrics(Metrics):
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
    kind : str, default="tasks"
        What they are, in words: "tasks", or the "quantiles" of one target.
    intervals : ndarray of shape (t, 2) or None, default=None
        Confidence intervals of the leading measure; NaN where it is undefined, and None where they are not known.
    confidence : float, default=0.95
        Confidence of the intervals.
    n_groups : int or None, default=None
        Number of groups of the rows, where intervals count groups.
    asked : LeadingScore or None, default=None
        The mean score that the fit was asked for.

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
    kind: str = "tasks"
    intervals: np.ndarray | None = None
    confidence: float = 0.95
    n_groups: int | None = None
    asked: LeadingScore | None = None

    listed: ClassVar[str] = "evaluation of tasks"

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
    def interval(self) -> Interval | None:
        """Confidence interval of the mean of the leading measure, None if it is not known.

        Its ends are the means of those of the tasks: the widest that there can be, as the errors of tasks on the same
        rows go together.
        """
        if self.intervals is None or not np.isfinite(self.intervals).any():
            return None
        low, high = np.nanmean(self.intervals, axis=0)
        return float(low), float(high)

    @property
    def first(self) -> str:
        """Name of the first, leading measure."""
        return next(iter(self.measures))

    @property
    def noun(self) -> str:
        """What one of them is, for a page: "task" of labels, "target" of numbers."""
        return "target" if self.n_positive is None else "task"

    def leading(self, baseline: Baseline | None) -> LeadingScore:
        """See ``Metrics``: the mean of the leading measure where no other was asked for."""
        guess, ends = None if baseline is None else baseline.value, self.interval or (np.nan, np.nan)
        measure = f"mean {self.first.lower().replace(' ', '_')}"
        return self.asked or LeadingScore(measure, self.mean(self.first), ends, guess)

    def weakest_first(self) -> np.ndarray:
        """Return the indices of the tasks by ascending leading measure; tasks without it come last."""
        return np.argsort(self.measures[self.first], kind="stable")

    def as_dict(self) -> JSON:
        """Return the measures as JSON types."""
        tasks = [
            {"name": name, "rows": int(self.n_seen[i])}
            | ({} if self.n_positive is None else {"positive": int(self.n_positive[i])})
            | {measure: plain(float(values[i])) for measure, values in self.measures.items()}
            | ({} if self.intervals is None else {f"{self.first}_interval": plain(self.intervals[i].tolist())})
            for i, name in enumerate(self.names)
        ]
        kind = "multioutput" if self.n_positive is None else "multilabel"
        means = {measure: plain(self.mean(measure)) for measure in self.measures}
        found = {"task": kind, "rows": self.n_rows, "groups": self.n_groups, "means": means, "tasks": tasks}
        ends = self.interval
        return found if ends is None else {**found, f"{self.first}_interval": list(ends), "confidence": self.confidence}

    def lines(self, ranking: RankingMetrics | None = None) -> dict[str, str | None]:
        """Return a small table of text: the means, then one line for each task."""
        heads = [f"{_SHORT_NAMES.get(name, name):>8}" for name in self.measures]
        names = self.names[:_MOST_TASKS]
        width = max(map(len, (*names, "mean")))

        def line(name: str, cells: Iterable[str], rows: str) -> str:
            numbers = (f"{cell:>{len(head)}}" for head, cell in zip(heads, cells, strict=True))
            return "  ".join((f"{name:<{width}}", *numbers, f"{rows:>7}"))

        table = [line("", heads, "rows")]
        table.append(line("mean", (f"{self.mean(name):#.4g}" for name in self.measures), ""))
        for i, name in enumerate(names):
            values = (f"{by_task[i]:#.4g}" for by_task in self.measures.values())
            table.append(line(name, values, f"{self.n_seen[i]:,}"))
        if len(self.names) > _MOST_TASKS:
            table.append(f"and {len(self.names) - _MOST_TASKS} more; the page and the JSON show all {self.kind}")
        listed = self.asked_line | {self.kind: "\n".join(row.rstrip() for row in table)}
        if (ends := self.interval) is None:
            return listed
        of = f"{interval_in_words(ends, self.first)} at {100 * self.confidence:g} % confidence"
        mean = f"{score_in_words(self.mean(self.first), self.first)}  ({of}) on {self.rows_in_words}"
        return {f"mean {measure_in_words(self.first)}": mean, **listed}

    def line(self, baseline: Baseline) -> str:
        """Return the leading score on one line."""
        lead = self.leading(baseline)
        name = measure_in_words(lead.measure)
        return f"{name} {lead.in_words} over {len(self.names)} {self.kind} on {self.rows_in_words}"

    def in_words(self, value: float) -> str:
        """Return a value of the leading measure as text."""
        return f"{self.first} {value:.4g}"


def task_metrics(
    Y: np.ndarray,
    outputs: np.ndarray,
    names: list[str],
    is_classification: bool = True,
    groups: np.ndarray | None = None,
    confidence: float = 0.95,
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
    groups : ndarray of shape (n,) or None, default=None
        The group of each row, such as a subject; the intervals count groups.
    confidence : float, default=0.95
        Confidence of the intervals.

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
    check_confidence(confidence)
    seen = ~np.isnan(Y)
    measure_names, measure = (
        (_MEASURES_OF_LABELS, _of_labels) if is_classification else (_MEASURES_OF_NUMBERS, _of_numbers)
    )
    values, intervals = np.full((len(names), len(measure_names)), np.nan), np.full((len(names), 2), np.nan)
    for j, rows in enumerate(seen.T):
        y, f = Y[rows, j], outputs[rows, j]
        if y.size > 1 and not (is_classification and np.all(y == y[0])):
            values[j] = measure(y, f)
            of_rows = np.arange(y.size) if groups is None else groups[rows]
            intervals[j] = _interval(y, f, values[j, 0], of_rows, confidence, is_classification)
    measures = dict(zip(measure_names, values.T, strict=True))
    positive = (Y == 1).sum(axis=0) if is_classification else None
    n_groups = None if groups is None else np.unique(groups).size
    return TaskMetrics(
        names,
        measures,
        seen.sum(axis=0),
        Y.shape[0],
        positive,
        intervals=intervals,
        confidence=confidence,
        n_groups=n_groups,
    )


def _interval(
    y: np.ndarray, f: np.ndarray, score: float, groups: np.ndarray, confidence: float, is_classification: bool
) -> Interval:
    """Return the interval of the area under the ROC curve, or of R2, of rows in groups."""
    if not is_classification:
        return regression_metrics(y, f, confidence=confidence, groups=groups).r2_interval
    n_first, n_second = (np.unique(groups[y == label]).size for label in (0, 1))
    return auc_interval(score, n_first, n_second, confidence)


def _of_labels(y: np.ndarray, f: np.ndarray) -> tuple[float, ...]:
    return roc_auc_score(y, f), average_precision_score(y, f), balanced_accuracy_score(y, f > 0)


def _of_numbers(y: np.ndarray, f: np.ndarray) -> tuple[float, ...]:
    return r2_score(y, f), root_mean_squared_error(y, f), mean_absolute_error(y, f)


def quantile_metrics(y: np.ndarray, predicted: np.ndarray, loss: Loss) -> TaskMetrics:
    """Measure predicted quantiles (n, q) of the targets (n,), one after the other.

    The measures are the share of the pinball loss that is explained, the mean pinball loss, and the share of the
    targets up to each quantile.

    >>> from chimap.losses import Quantile
    >>> y = np.arange(10.0)
    >>> metrics = quantile_metrics(y, np.tile([0.5, 8.5], (10, 1)), Quantile((0.1, 0.9)))
    >>> metrics.measures["share below"].tolist()
    [0.1, 0.9]
    """
    losses = [loss.of_score(place) for place in range(loss.n_scores)]
    found = [measures_of_loss(one, y, predicted[:, place]) for place, one in enumerate(losses)]
    names = {"D2": "d2", "pinball loss": "mean_pinball_loss", "share below": "share_below"}
    measures = {name: np.array([values[key] for values in found]) for name, key in names.items()}
    n_seen = np.full(loss.n_scores, y.size)
    return TaskMetrics(loss.score_names or [], measures, n_seen, y.size, kind="quantiles")
