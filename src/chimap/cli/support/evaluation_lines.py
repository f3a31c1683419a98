"""The lines that the terminal shows for an evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from chimap.cli.support import show, tasks
from chimap.cli.support.score_lines import rare_class

if TYPE_CHECKING:
    from chimap.cli.support.evaluated import Evaluated
    from chimap.cli.support.score import Score
    from chimap.report import ClassificationMetrics, RankingMetrics, RegressionMetrics, SplitScores


def summary(evaluated: Evaluated, output: Path | None) -> dict[str, str | None]:
    """Return the lines of the terminal summary of an evaluation."""
    from chimap.report import TaskMetrics

    metrics, score = evaluated.score.metrics, evaluated.score
    left_out = evaluated.chosen.source.n_left_out
    which = evaluated.chosen.which + (f"; {left_out:,} without a label are left out" if left_out else "")
    head: dict[str, str | None] = {"rows": which}
    tail: dict[str, str | None] = {
        "splits": None if evaluated.splits is None else _splits_lines(evaluated.splits),
        "baseline": _baseline_line(score),
        "time": f"{show.duration(score.seconds)}, {metrics.n_rows / max(score.seconds, 1e-9):,.0f} rows/s",
        "peak memory": show.size(show.peak_memory()),
        "report": None if output is None else str(output),
    }
    if isinstance(metrics, TaskMetrics):
        return head | tasks.lines(metrics) | tail
    lines = _metric_lines(metrics, score.ranking)
    if score.reliability is not None:
        off = show.percent(score.reliability.error)
        lines["probabilities"] = f"off by {off} on average (expected calibration error)"
    return head | lines | tail


def _splits_lines(splits: SplitScores) -> str:
    """Return one line for each score, such as 'accuracy 64.2 % ± 0.8' or 'RMSE 0.1234 ± 0.0056'."""
    lines = []
    for name, mean, deviation in splits.rows():
        in_words = f"{name.lower()} {show.percent(mean)}" if splits.are_shares else f"{name} {mean:.4g}"
        spread = f"{100 * deviation:.1f}" if splits.are_shares else f"{deviation:.2g}"
        lines.append(in_words + ("" if deviation != deviation else f" ± {spread}"))
    return "\n".join(lines)


def _metric_lines(
    metrics: ClassificationMetrics | RegressionMetrics, ranking: RankingMetrics | None
) -> dict[str, str | None]:
    from chimap.report import ClassificationMetrics

    if not isinstance(metrics, ClassificationMetrics):
        sizes = {"R²": (metrics.r2, metrics.r2_interval), "RMSE": (metrics.rmse, metrics.rmse_interval)}
        sizes["MAE"] = (metrics.mae, metrics.mae_interval)
        sure = "at 95 % confidence"
        return {n: f"{v:.4g}  ({low:.4g} to {high:.4g} {sure})" for n, (v, (low, high)) in sizes.items()}
    low, high = (f"{100 * end:.1f}" for end in metrics.interval)
    accuracy = f"{show.percent(metrics.accuracy)}  ({low} to {high} at 95 % confidence)"
    lines: dict[str, str | None] = {
        "accuracy": f"{accuracy}, {metrics.n_correct:,} of {metrics.n_rows:,} correct",
        "balanced": f"{show.percent(metrics.balanced_accuracy)}, mean accuracy over classes",
        "mAP": None
        if ranking is None
        else f"{show.percent(ranking.mean_average_precision)}, mean average precision",
        "ROC AUC": None if metrics.auc is None else f"{metrics.auc:.4f}",
        "worst classes": _worst_classes(metrics),
    }
    if not metrics.is_unequal:
        return lines
    if metrics.average_precision is None:
        return {"balanced": lines.pop("balanced"), **lines}
    precision = f"{metrics.average_precision:.4f}, for class {metrics.classes[metrics.rarer]}"
    headline: dict[str, str | None] = {
        "ROC AUC": lines.pop("ROC AUC"),
        "average precision": precision,
        "balanced": lines.pop("balanced"),
    }
    return {**headline, "rare class": rare_class(metrics), **lines}


def _worst_classes(metrics: ClassificationMetrics, n: int = 3) -> str | None:
    """Return the classes with the lowest recall, each with the class that it is most often mistaken for."""
    import numpy as np

    from chimap.report import most_confused

    order = [i for i in np.argsort(metrics.recall, kind="stable") if metrics.recall[i] < 1][:n]
    # most rows first, so reversed: the last entry stays
    pairs = most_confused(metrics, metrics.confusion.size)
    taken_for = {pair.true: pair.predicted for pair in reversed(pairs)}
    lines = [
        f"{metrics.classes[i]}: {show.percent(metrics.recall[i])} of {metrics.support[i]:,} rows correct, "
        f"most often taken for {taken_for[metrics.classes[i]]}"
        for i in order
    ]
    return "\n".join(lines) or "none: every row is correct"


def _baseline_line(score: Score) -> str:
    from chimap.report import ClassificationMetrics, TaskMetrics

    if isinstance(score.metrics, ClassificationMetrics):
        return f"{show.percent(score.baseline.value)}, {score.baseline.name}"
    if isinstance(score.metrics, TaskMetrics):
        return f"{score.metrics.first} {score.baseline.value:.4g}, {score.baseline.name}"
    return f"RMSE {score.baseline.value:.4g}, {score.baseline.name}"
