"""One-line scores, as commands print them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chimap.cli.support import show

if TYPE_CHECKING:
    from chimap.cli.support.score import Score
    from chimap.report import ClassificationMetrics


def score_line(score: Score) -> str:
    """Return the score with its interval and the baseline on one line."""
    from chimap.report import ClassificationMetrics, TaskMetrics

    metrics = score.metrics
    if isinstance(metrics, TaskMetrics):
        mean = metrics.mean(metrics.first)
        return f"mean {metrics.first} {mean:.3f} over {len(metrics.names)} tasks on {metrics.n_rows:,} rows"
    if isinstance(metrics, ClassificationMetrics):
        low, high = (f"{100 * end:.1f}" for end in metrics.interval)
        if metrics.is_unequal and metrics.auc is not None:
            return (
                f"ROC AUC {metrics.auc:.3f}, average precision {metrics.average_precision:.3f}, balanced accuracy "
                f"{show.percent(metrics.balanced_accuracy)}; {rare_class(metrics)}; accuracy "
                f"{show.percent(metrics.accuracy)} on {metrics.n_rows:,} rows; {score.baseline.name}: "
                f"{show.percent(score.baseline.value)}"
            )
        first = f"balanced accuracy {show.percent(metrics.balanced_accuracy)}, " if metrics.is_unequal else ""
        if len(metrics.classes) == 2 and metrics.auc is not None:
            first += f"ROC AUC {metrics.auc:.3f}, "
        return (
            f"{first}accuracy {show.percent(metrics.accuracy)} ({low} to {high} at 95 % confidence) on "
            f"{metrics.n_rows:,} rows; {score.baseline.name}: {show.percent(score.baseline.value)}"
        )
    return (
        f"R² {metrics.r2:.3f}, RMSE {metrics.rmse:.4g}, MAE {metrics.mae:.4g} on {metrics.n_rows:,} rows; "
        f"{score.baseline.name}: RMSE {score.baseline.value:.4g}"
    )


def rare_class(metrics: ClassificationMetrics) -> str:
    """Return '12 of 40 rows of class active found (30.0 %), 7 false alarms' for the rarer of two classes."""
    rare = metrics.rarer
    n_found, n_rows = int(metrics.confusion[rare, rare]), int(metrics.support[rare])
    return (
        f"{n_found:,} of {n_rows:,} rows of class {metrics.classes[rare]} found ({show.percent(n_found / n_rows)}), "
        f"{int(metrics.confusion[1 - rare, rare]):,} false alarms"
    )
