"""Measures in lines of text, as terminals show them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from chimap._formatting import NARROW_SPACE, percent
from chimap.reports.measures import Baseline, ClassificationMetrics, RegressionMetrics, TaskMetrics, most_confused
from chimap.reports.ranking import RankingMetrics
from chimap.reports.score import Score
from chimap.reports.splits import SplitScores


def _percent(share: float) -> str:
    return percent(share).replace(NARROW_SPACE, " ")


def threshold_in_words(threshold: float, classes: np.ndarray, positive: object = None) -> str:
    """Return '-0.42: scores above it mean active', of the positive class or else of the second.

    >>> threshold_in_words(0.25, np.array(["case", "control"]), "case")
    '0.25: scores below it mean case'
    """
    meant = classes[1] if positive is None else positive
    return f"{threshold:.4g}: scores {'above' if meant == classes[1] else 'below'} it mean {meant}"


def splits_lines(splits: SplitScores) -> str:
    """Return one line for each score, such as 'accuracy 64.2 % ± 0.8' or 'RMSE 0.1234 ± 0.0056'."""
    lines = []
    for name, mean, deviation in splits.rows():
        in_words = f"{name.lower()} {_percent(mean)}" if splits.are_shares else f"{name} {mean:.4g}"
        spread = f"{100 * deviation:.1f}" if splits.are_shares else f"{deviation:.2g}"
        lines.append(in_words + ("" if deviation != deviation else f" ± {spread}"))
    return "\n".join(lines)


def metric_lines(
    metrics: ClassificationMetrics | RegressionMetrics, ranking: RankingMetrics | None
) -> dict[str, str | None]:
    """Return the measures by name, the most telling first; None for those that are not defined."""
    if not isinstance(metrics, ClassificationMetrics):
        sizes = {"R²": (metrics.r2, metrics.r2_interval), "RMSE": (metrics.rmse, metrics.rmse_interval)}
        sizes["MAE"] = (metrics.mae, metrics.mae_interval)
        sure = "at 95 % confidence"
        of_loss: dict[str, str | None] = {_OF_LOSS[name]: f"{value:.4g}" for name, value in metrics.of_loss.items()}
        return of_loss | {n: f"{v:.4g}  ({low:.4g} to {high:.4g} {sure})" for n, (v, (low, high)) in sizes.items()}
    low, high = (f"{100 * end:.1f}" for end in metrics.interval)
    accuracy = f"{_percent(metrics.accuracy)}  ({low} to {high} at 95 % confidence)"
    lines: dict[str, str | None] = {
        "accuracy": f"{accuracy}, {metrics.n_correct:,} of {metrics.n_rows:,} correct",
        "balanced": f"{_percent(metrics.balanced_accuracy)}, mean accuracy over classes",
        "mAP": None if ranking is None else f"{_percent(ranking.mean_average_precision)}, mean average precision",
        "ROC AUC": None if metrics.auc is None else f"{metrics.auc:.4f}",
        "worst classes": _worst_classes(metrics),
    }
    if not metrics.is_unequal and metrics.positive is None:
        return lines
    if metrics.average_precision is None:
        return {"balanced": lines.pop("balanced"), **lines}
    precision = f"{metrics.average_precision:.4f}, for class {metrics.classes[metrics.of_interest]}"
    headline: dict[str, str | None] = {
        "ROC AUC": lines.pop("ROC AUC"),
        "average precision": precision,
        "balanced": lines.pop("balanced"),
    }
    kind = "rare class" if metrics.positive is None else "positive"
    return {**headline, kind: _class_of_interest(metrics), **lines}


def _worst_classes(metrics: ClassificationMetrics, n: int = 3) -> str | None:
    """Return the classes with the lowest recall, each with the class that it is most often mistaken for."""
    order = [i for i in np.argsort(metrics.recall, kind="stable") if metrics.recall[i] < 1][:n]
    # most rows first, so reversed: the last entry stays
    pairs = most_confused(metrics, metrics.confusion.size)
    taken_for = {pair.true: pair.predicted for pair in reversed(pairs)}
    lines = [
        f"{metrics.classes[i]}: {_percent(metrics.recall[i])} of {metrics.support[i]:,} rows correct, "
        f"most often taken for {taken_for[metrics.classes[i]]}"
        for i in order
    ]
    return "\n".join(lines) or "none: every row is correct"


_OF_LOSS = {
    "d2": "D²",
    "mean_poisson_deviance": "Poisson deviance",
    "mean_pinball_loss": "pinball loss",
    "share_below": "share below",
}


def baseline_line(metrics: ClassificationMetrics | RegressionMetrics | TaskMetrics, baseline: Baseline) -> str:
    """Return the score of the baseline with what it does."""
    if isinstance(metrics, ClassificationMetrics):
        return f"{_percent(baseline.value)}, {baseline.name}"
    if isinstance(metrics, TaskMetrics):
        return f"{metrics.first} {baseline.value:.4g}, {baseline.name}"
    return f"RMSE {baseline.value:.4g}, {baseline.name}"


def score_line(score: Score) -> str:
    """Return the score with its interval and the baseline on one line."""
    metrics = score.metrics
    if isinstance(metrics, TaskMetrics):
        mean = metrics.mean(metrics.first)
        return f"mean {metrics.first} {mean:.3f} over {len(metrics.names)} {metrics.kind} on {metrics.n_rows:,} rows"
    if isinstance(metrics, ClassificationMetrics):
        low, high = (f"{100 * end:.1f}" for end in metrics.interval)
        if (metrics.is_unequal or metrics.positive is not None) and metrics.auc is not None:
            return (
                f"ROC AUC {metrics.auc:.3f}, average precision {metrics.average_precision:.3f}, balanced accuracy "
                f"{_percent(metrics.balanced_accuracy)}; {_class_of_interest(metrics)}; accuracy "
                f"{_percent(metrics.accuracy)} on {metrics.n_rows:,} rows; {score.baseline.name}: "
                f"{_percent(score.baseline.value)}"
            )
        first = f"balanced accuracy {_percent(metrics.balanced_accuracy)}, " if metrics.is_unequal else ""
        if len(metrics.classes) == 2 and metrics.auc is not None:
            first += f"ROC AUC {metrics.auc:.3f}, "
        return (
            f"{first}accuracy {_percent(metrics.accuracy)} ({low} to {high} at 95 % confidence) on "
            f"{metrics.n_rows:,} rows; {score.baseline.name}: {_percent(score.baseline.value)}"
        )
    first = "".join(f"{_OF_LOSS[name]} {value:.3g}, " for name, value in metrics.of_loss.items())
    return (
        f"{first}R² {metrics.r2:.3f}, RMSE {metrics.rmse:.4g}, MAE {metrics.mae:.4g} on {metrics.n_rows:,} rows; "
        f"{score.baseline.name}: RMSE {score.baseline.value:.4g}"
    )


def _class_of_interest(metrics: ClassificationMetrics) -> str:
    """Return '12 of 40 rows of class active found (30.0 %), 7 false alarms' for the class that is to be found.

    If it was named as the positive class, the line also has precision, recall and F1 by name.
    """
    k = metrics.of_interest
    n_found, n_rows = int(metrics.confusion[k, k]), int(metrics.support[k])
    line = (
        f"{n_found:,} of {n_rows:,} rows of class {metrics.classes[k]} found ({_percent(n_found / n_rows)}), "
        f"{int(metrics.confusion[1 - k, k]):,} false alarms"
    )
    if metrics.positive is None:
        return line
    shares = {"precision": metrics.precision[k], "recall": metrics.recall[k], "F1": metrics.f1[k]}
    return f"{line}; " + ", ".join(f"{name} {_percent(share)}" for name, share in shares.items())


_MOST_TASKS = 20  # tasks shown on the terminal


_SHORT_NAMES = {"average precision": "avg precision", "balanced accuracy": "bal accuracy"}


def task_lines(metrics: TaskMetrics) -> dict[str, str | None]:
    """Return the measures as a small table: their means, then one line for each task."""
    heads = [f"{_SHORT_NAMES.get(name, name):>8}" for name in metrics.measures]
    names = metrics.names[:_MOST_TASKS]
    width = max(map(len, (*names, "mean")))

    def line(name: str, cells: Iterable[str], rows: str) -> str:
        numbers = (f"{cell:>{len(head)}}" for head, cell in zip(heads, cells, strict=True))
        return "  ".join((f"{name:<{width}}", *numbers, f"{rows:>7}"))

    table = [line("", heads, "rows")]
    table.append(line("mean", (f"{metrics.mean(name):#.4g}" for name in metrics.measures), ""))
    for i, name in enumerate(names):
        values = (f"{by_task[i]:#.4g}" for by_task in metrics.measures.values())
        table.append(line(name, values, f"{metrics.n_seen[i]:,}"))
    if len(metrics.names) > _MOST_TASKS:
        table.append(f"and {len(metrics.names) - _MOST_TASKS} more; the page and the JSON show all {metrics.kind}")
    return {metrics.kind: "\n".join(row.rstrip() for row in table)}
