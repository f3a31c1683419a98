"""``chimap evaluate``: score a model on a file of rows and labels, on the terminal and as a page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from chimap._errors import InputError
from chimap.cli import flag_values, image_rows, messages, options, outputs, show
from chimap.cli.options import AS_IT_IS, TableOptions, Without

if TYPE_CHECKING:
    import numpy as np

    from chimap.cli.held_out_rows import Chosen
    from chimap.reports import (
        ClassificationMetrics,
        Evaluation,
        Insight,
        RankingMetrics,
        RegressionMetrics,
        SplitScores,
        TaskMetrics,
    )
    from chimap.reports.score import Score


class Evaluated(NamedTuple):
    """A model, the rows it was evaluated on, and its score."""

    model: Any
    chosen: Chosen
    score: Score
    splits: SplitScores | None = None
    insight: Insight | None = None


def page_of(evaluated: Evaluated) -> Evaluation:
    """Return everything that the page and ``--json`` show."""
    from chimap.reports.evaluation import evaluation_of

    chosen = evaluated.chosen
    return evaluation_of(
        evaluated.model,
        chosen.source,
        evaluated.score,
        chosen.which,
        splits=evaluated.splits,
        insight=evaluated.insight,
    )


def evaluate(
    model: options.Model,
    data: options.DataOrImages,
    *,
    labels: options.Labels = None,
    table: Annotated[TableOptions, Without("sample_weight")],
    output: Path | None = None,
    all_rows: bool = False,
    part: image_rows.ImagePart = None,
    splits: int | None = None,
    per_class: int | None = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Score MODEL on the rows and labels of DATA.

    If MODEL was fitted on DATA with --test-fraction or --split, only the held-out rows are scored. For any other file,
    all rows are scored, or with --split its test rows. With --splits, --groups keeps rows that belong together on the
    same side of each split.

    Parameters
    ----------
    output : REPORT
        Write a report as one HTML page.
    all_rows
        Include the rows that the model was trained on.
    splits : N
        Also train the model anew on N random splits of DATA, in memory, and report the mean and standard deviation.
    per_class : N
        Training rows of each class in a split; the rest are test rows. By default, 70 % of the rows are training
        rows.

    \b
    Examples:
      chimap evaluate my.model data.npz
      chimap evaluate my.model test.npz --output report.html
      chimap evaluate my.model rows.npy --labels labels.csv --json
      chimap evaluate my.model samples.csv --labels site --split part
      chimap evaluate my.model samples.csv --labels site --splits 5 --groups subject
      chimap evaluate photos.model photos/ --output report.html
      chimap evaluate photos.model photos/ --splits 5 --per-class 15
    """
    evaluated = measure(
        model,
        data,
        labels,
        output,
        all_rows=all_rows,
        part=part,
        overwrite=overwrite,
        silent=json,
        splits=splits,
        per_class=per_class,
        table=table,
    )
    if json:
        show.as_json(
            {"command": "evaluate", "report": output and str(output), **page_of(evaluated).as_dict()}
        )
        return
    show.facts(f"Evaluated {model} on {data}", summary(evaluated, output))


def measure(
    model: Path,
    data: str,
    labels: str | None,
    output: Path | None,
    *,
    all_rows: bool = False,
    part: str | None = None,
    overwrite: bool = False,
    silent: bool = False,
    splits: int | None = None,
    per_class: int | None = None,
    table: TableOptions = AS_IT_IS,
) -> Evaluated:
    """Predict, compare with the labels, and write the report if ``output`` names a file.

    The path of the report is checked before any work.
    """
    import numpy as np

    from chimap import load
    from chimap._validation import DataError
    from chimap.cli import data_rows, held_out_rows
    from chimap.data.labelling import present
    from chimap.reports import repeated_splits
    from chimap.reports.score import as_answers, score_of, true_answers
    from chimap.reports.splits import check_splits, splits_of

    flag_values.check_least(splits, "--splits")
    flag_values.check_least(per_class, "--per-class")
    if per_class is not None and splits is None:
        raise InputError("--per-class sets how --splits splits the rows: add --splits, or leave it out.")
    if table.groups is not None and per_class is not None:
        raise InputError(
            "--per-class draws rows of each class, but --groups keeps groups whole: leave one of them out."
        )
    if table.split is not None and all_rows:
        raise InputError(
            "--split selects the test rows, but --all-rows takes every row: leave one of them out."
        )
    outputs.check_outputs({"--output": output}, (model, data, labels), overwrite)
    fitted = load(model, kind="model")
    drawn = None if splits is None else splits_of(fitted, splits, per_class, table.groups is not None)

    def check_labels(y: np.ndarray | None, name: str) -> None:
        y_true = as_answers(fitted, present(y, name, fitted), name)
        if drawn is not None and table.groups is None:
            check_splits(fitted, y_true, name, drawn)

    source = data_rows.open_data(
        data, labels, fitted, part=part, silent=silent, check_labels=check_labels, table=table
    )
    groups = held_out_rows.groups_of(source, table)
    if drawn is not None:
        held_out_rows.warn_of_groups(source, table)
    if drawn is not None and groups is not None:
        check_splits(fitted, true_answers(fitted, source), source.name, drawn, groups)
    chosen = held_out_rows.choose_rows(fitted, source, all_rows, table)
    if chosen.warning:
        messages.say("warning", chosen.warning)
    held_out_rows.warn_of_repeats(chosen.training, chosen.source)
    try:
        evaluated = Evaluated(fitted, chosen, score_of(fitted, chosen.source, show.progress(silent)))
    except DataError:
        # names the row of the file, not that of a part of it
        data_rows.check_every_row(source, fitted.precision_)
        raise
    if drawn is not None:
        with show.busy(f"training on {splits} splits"):
            rows, y = source.take(np.arange(source.n_rows)), true_answers(fitted, source)
            evaluated = evaluated._replace(splits=repeated_splits(fitted, rows, y, drawn, groups))
    if output is not None:
        from chimap.reports.insight import insight_of

        with show.busy("drawing the report"):
            evaluated = evaluated._replace(
                insight=insight_of(fitted, chosen.source, evaluated.score, chosen.training)
            )
            page_of(evaluated).save(output, overwrite=overwrite)
        messages.written.append(str(output))
    return evaluated


def summary(evaluated: Evaluated, output: Path | None) -> dict[str, str | None]:
    """Return the lines of the terminal summary of an evaluation."""
    from chimap.reports import TaskMetrics

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
        return head | _task_lines(metrics) | tail
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
    from chimap.reports import ClassificationMetrics

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
    return {**headline, kind: class_of_interest(metrics), **lines}


def _worst_classes(metrics: ClassificationMetrics, n: int = 3) -> str | None:
    """Return the classes with the lowest recall, each with the class that it is most often mistaken for."""
    import numpy as np

    from chimap.reports import most_confused

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
    from chimap.reports import ClassificationMetrics, TaskMetrics

    if isinstance(score.metrics, ClassificationMetrics):
        return f"{show.percent(score.baseline.value)}, {score.baseline.name}"
    if isinstance(score.metrics, TaskMetrics):
        return f"{score.metrics.first} {score.baseline.value:.4g}, {score.baseline.name}"
    return f"RMSE {score.baseline.value:.4g}, {score.baseline.name}"


def score_line(score: Score) -> str:
    """Return the score with its interval and the baseline on one line."""
    from chimap.reports import ClassificationMetrics, TaskMetrics

    metrics = score.metrics
    if isinstance(metrics, TaskMetrics):
        mean = metrics.mean(metrics.first)
        return f"mean {metrics.first} {mean:.3f} over {len(metrics.names)} tasks on {metrics.n_rows:,} rows"
    if isinstance(metrics, ClassificationMetrics):
        low, high = (f"{100 * end:.1f}" for end in metrics.interval)
        if (metrics.is_unequal or metrics.positive is not None) and metrics.auc is not None:
            return (
                f"ROC AUC {metrics.auc:.3f}, average precision {metrics.average_precision:.3f}, balanced accuracy "
                f"{show.percent(metrics.balanced_accuracy)}; {class_of_interest(metrics)}; accuracy "
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


def class_of_interest(metrics: ClassificationMetrics) -> str:
    """Return '12 of 40 rows of class active found (30.0 %), 7 false alarms' for the class that is to be found.

    If it was named as the positive class, the line also has precision, recall and F1 by name.
    """
    k = metrics.of_interest
    n_found, n_rows = int(metrics.confusion[k, k]), int(metrics.support[k])
    line = (
        f"{n_found:,} of {n_rows:,} rows of class {metrics.classes[k]} found ({show.percent(n_found / n_rows)}), "
        f"{int(metrics.confusion[1 - k, k]):,} false alarms"
    )
    if metrics.positive is None:
        return line
    shares = {"precision": metrics.precision[k], "recall": metrics.recall[k], "F1": metrics.f1[k]}
    return f"{line}; " + ", ".join(f"{name} {show.percent(share)}" for name, share in shares.items())


_MOST_TASKS = 20  # tasks shown on the terminal


_SHORT_NAMES = {"average precision": "avg precision", "balanced accuracy": "bal accuracy"}


def _task_lines(metrics: TaskMetrics) -> dict[str, str | None]:
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
        table.append(f"and {len(metrics.names) - _MOST_TASKS} more; --json and --output show all tasks")
    return {"tasks": "\n".join(row.rstrip() for row in table)}
