"""``chimap evaluate``: how good a model is on a file of rows and labels, on the terminal and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from chimap.cli.support import (
    data_rows,
    errors,
    flag_values,
    held_out_rows,
    image_options,
    options,
    outputs,
    show,
    tasks,
)
from chimap.cli.support.score_lines import rare_class

if TYPE_CHECKING:
    import numpy as np

    from chimap.cli.support.held_out_rows import Chosen
    from chimap.cli.support.score import Score
    from chimap.report import (
        ClassificationMetrics,
        Evaluation,
        Insight,
        RankingMetrics,
        RegressionMetrics,
        SplitScores,
    )


class Evaluated(NamedTuple):
    """A model, the rows it was tried on, and how it did."""

    model: Any
    chosen: Chosen
    score: Score
    splits: SplitScores | None = None
    insight: Insight | None = None


def evaluate(
    model: options.Model,
    data: options.DataOrImages,
    labels: options.Labels = None,
    id: options.Id = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    missing: options.Missing = None,
    transpose: options.Transpose = False,
    groups: options.Groups = None,
    split: options.Split = None,
    output: Annotated[Path | None, options.output("REPORT", "Write a report, one page of HTML.")] = None,
    all_rows: Annotated[
        bool, typer.Option("--all-rows", help="Also take the rows that the model was trained on.")
    ] = False,
    part: image_options.ImagePart = None,
    splits: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Also train the model anew on N random splits of DATA, in memory, and give mean and "
            "deviation.",
            show_default=False,
        ),
    ] = None,
    per_class: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Training rows of each class in a split, the others to test on; without it, 70 % of the "
            "rows.",
            show_default=False,
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Measure MODEL on the rows and labels of DATA.

    On the file that it was fitted on, with --test-fraction or --split, it takes the rows that were held out; of other
    files all rows, or with --split those that are test. --groups keeps rows that belong together on one side of
    --splits.

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
    found = measure(
        model, data, labels, output, all_rows=all_rows, part=part, overwrite=overwrite, silent=json,
        splits=splits, per_class=per_class,
        table=data_rows.Table(id, columns, exclude, missing, transpose, groups, split),
    )  # fmt: skip
    if json:
        show.as_json({"command": "evaluate", "report": output and str(output), **page_of(found).as_dict()})
        return
    show.facts(f"Evaluated {model} on {data}", summary(found, output))


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
    table: data_rows.Table = data_rows.AS_IT_IS,
) -> Evaluated:
    """Predict and compare, and write the page if ``output`` names one; its path is checked before the work."""
    from chimap import load
    from chimap._validation import DataError
    from chimap.cli.support.score import check_answers, check_splits, repeated, score, splitter
    from chimap.report import write_report

    flag_values.check_least(splits, "--splits")
    flag_values.check_least(per_class, "--per-class")
    if per_class is not None and splits is None:
        raise ValueError("--per-class says how rows are split; give --splits, too.")
    if table.groups is not None and per_class is not None:
        raise ValueError(
            "--per-class takes rows of each class, and --groups whole groups: leave one of them out."
        )
    if table.split is not None and all_rows:
        raise ValueError("--split takes the test rows, and --all-rows all of them: leave one of them out.")
    outputs.check_outputs({"--output": output}, (model, data, labels), overwrite)
    fitted = load(model, kind="model")
    drawn = None if splits is None else splitter(fitted, splits, per_class, table.groups is not None)

    def check_labels(y: np.ndarray | None, name: str) -> None:
        given = data_rows.present(y, name)
        check_answers(fitted, given, name)
        if drawn is not None and table.groups is None:
            check_splits(fitted, given, name, drawn)

    source = data_rows.open_data(
        data, labels, fitted, part=part, silent=silent, check_labels=check_labels, table=table
    )
    groups = held_out_rows.groups_of(source, table)
    if drawn is not None:
        held_out_rows.warn_of_groups(source, table)
    if drawn is not None and groups is not None:
        check_splits(fitted, data_rows.labels_of(source), source.name, drawn, groups)
    chosen = held_out_rows.choose_rows(fitted, source, all_rows, table)
    if chosen.warning:
        errors.say("warning", chosen.warning)
    try:
        found = Evaluated(fitted, chosen, score(fitted, chosen.source, show.progress(silent)))
    except DataError:
        data_rows.check_every_row(source, fitted.precision)  # names the row of the file rather than of a part
        raise
    if drawn is not None:
        found = found._replace(splits=repeated(fitted, source, drawn, groups))
    if output is not None:
        from chimap.cli.support.insights import insight_of

        with show.busy("drawing the report"):
            found = found._replace(insight=insight_of(fitted, chosen.source, found.score, chosen.training))
            write_report(page_of(found), output, overwrite=overwrite)
        errors.written.append(str(output))
    return found


def page_of(found: Evaluated) -> Evaluation:
    """All that the page and ``--json`` show."""
    from chimap.report import Evaluation

    model, source = found.model, found.chosen.source
    fitted = getattr(
        model, "exact_", model
    )  # of a compiled model the one that it was made from, if it is there
    training = getattr(model, "training_", None) or {}
    seconds = {f"fit: {name}": time for name, time in getattr(fitted, "stage_seconds_", {}).items()}
    data = {
        "file": source.name.partition(",")[0],
        "rows": source.n_rows,
        "which rows": found.chosen.which,
        "rows left out, without a label": source.n_left_out or None,
        "bins": source.n_features,
        "rows trained on": getattr(fitted, "n_rows_", None),
        "trained on": training.get("file"),
        "trained at": training.get("date"),
    }
    return Evaluation(
        title=f"{model.describe()['kernel']} on {data['file']}",
        model_name=type(model).__name__,
        data={name: value for name, value in data.items() if value is not None},
        metrics=found.score.metrics,
        baseline=found.score.baseline,
        curve=None if fitted is None else strength_curve(fitted),
        components=None if fitted is None else component_scores(fitted),
        stages=seconds | {"predict": found.score.seconds},
        settings=model.get_params(deep=False) if fitted is None else _settings(fitted),
        ranking=found.score.ranking,
        examples=_examples(found),
        splits=found.splits,
        insight=found.insight,
    )


def _examples(found: Evaluated) -> Any:
    """Images that were confused and that classes rank first, where the rows are of images; else None."""
    from chimap.cli.support.image_models import images_of
    from chimap.report import examples

    score, images = found.score, images_of(found.chosen.source)
    if score.ranking is None or score.outcome is None or images is None:
        return None
    return examples(score.metrics, score.ranking, *score.outcome, read=images.read)  # type: ignore[arg-type]


def summary(found: Evaluated, output: Path | None) -> dict[str, str | None]:
    """The facts of an evaluation, in words."""
    from chimap.report import TaskMetrics

    metrics, score = found.score.metrics, found.score
    left_out = found.chosen.source.n_left_out
    which = found.chosen.which + (f"; {left_out:,} left out, without a label" if left_out else "")
    head: dict[str, str | None] = {"rows": which}
    tail: dict[str, str | None] = {
        "splits": None if found.splits is None else _splits_lines(found.splits),
        "baseline": _baseline_line(score),
        "time": f"{show.duration(score.seconds)}, {metrics.n_rows / max(score.seconds, 1e-9):,.0f} rows/s",
        "peak memory": show.size(show.peak_memory()),
        "report": None if output is None else str(output),
    }
    if isinstance(metrics, TaskMetrics):
        return head | tasks.lines(metrics) | tail
    return head | _metric_lines(metrics, score.ranking) | tail


def _splits_lines(splits: SplitScores) -> str:
    """A line a score, 'accuracy 64.2 % ± 0.8' or 'RMSE 0.1234 ± 0.0056'."""
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
        "accuracy": f"{accuracy}, {metrics.n_correct:,} of {metrics.n_rows:,} right",
        "balanced": f"{show.percent(metrics.balanced_accuracy)}, the mean over classes",
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
    precision = f"{metrics.average_precision:.4f}, of {metrics.classes[metrics.rarer]}"
    led: dict[str, str | None] = {
        "ROC AUC": lines.pop("ROC AUC"),
        "average precision": precision,
        "balanced": lines.pop("balanced"),
    }
    return {**led, "rare class": rare_class(metrics), **lines}


def _worst_classes(metrics: ClassificationMetrics, n: int = 3) -> str | None:
    """The classes of which most rows are missed, with what they are taken for."""
    import numpy as np

    from chimap.report import most_confused

    order = [i for i in np.argsort(metrics.recall, kind="stable") if metrics.recall[i] < 1][:n]
    pairs = most_confused(metrics, metrics.confusion.size)  # most rows first: the last to enter stays
    taken_for = {pair.true: pair.predicted for pair in reversed(pairs)}
    lines = [
        f"{metrics.classes[i]}: {show.percent(metrics.recall[i])} of {metrics.support[i]:,} rows right, "
        f"most often taken for {taken_for[metrics.classes[i]]}"
        for i in order
    ]
    return "\n".join(lines) or "none: every row is right"


def _baseline_line(score: Score) -> str:
    from chimap.report import ClassificationMetrics, TaskMetrics

    if isinstance(score.metrics, ClassificationMetrics):
        return f"{show.percent(score.baseline.value)}, {score.baseline.name}"
    if isinstance(score.metrics, TaskMetrics):
        return f"{score.metrics.first} {score.baseline.value:.4g}, {score.baseline.name}"
    return f"RMSE {score.baseline.value:.4g}, {score.baseline.name}"


def strength_curve(model: Any) -> Any:
    """How the strength was chosen, or None where it was given."""
    from chimap.report import StrengthCurve

    return StrengthCurve.of(model.selection_, isinstance(model.alpha, str))


def component_scores(model: Any) -> Any:
    """How the number of principal components was chosen, or None where it was given."""
    from chimap.report import ComponentScores

    return ComponentScores.of(model.selection_)


def _settings(model: Any) -> dict[str, Any]:
    """The parameters of the estimator, with what was learned for those that say how to learn it."""
    given = model.get_params(deep=False)
    left_out = ("verbose", "kernel", "gamma", "alpha", "map")
    learned = {
        "kernel": model.kernel_.name,
        "gamma": getattr(model.kernel_, "gamma", None),
        "alpha": model.alpha_,
        "features": model.coef_.shape[1],
    }
    return learned | {name: value for name, value in given.items() if name not in left_out}
