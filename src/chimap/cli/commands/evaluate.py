"""``chimap evaluate``: score a model on a file of rows and labels, on the terminal and as a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from chimap._errors import InputError
from chimap.cli import flag_values, image_rows, messages, options, outputs, show
from chimap.cli.options import AS_IT_IS, TableOptions, Without

if TYPE_CHECKING:
    import numpy as np

    from chimap.reports import Evaluation


def evaluate(
    model: options.Model,
    data: options.DataOrImages,
    *,
    labels: options.Labels = None,
    table: Annotated[TableOptions, Without("sample_weight", "covariates")],
    output: Path | None = None,
    all_rows: bool = False,
    part: image_rows.ImagePart = None,
    splits: str | None = None,
    per_class: int | None = None,
    permutations: int | None = None,
    unassigned: float | None = None,
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
    splits : N | leave-one-group-out
        Also train the model anew on N random splits of DATA, in memory, and report the mean and standard deviation. Or
        leave out one group of --groups at a time, such as a study, and report the score of each, with that of models
        trained within it.
    per_class : N
        Training rows of each class in a split; the rest are test rows. By default, 70 % of the rows are training
        rows.
    permutations : N
        With --splits leave-one-group-out, also permute the labels N times within each group: how often do they score as
        well?
    unassigned : SHARE
        Also count the rows that are like none of the classes, and score the others, as chimap predict --unassigned
        would label them.

    \b
    Examples:
      chimap evaluate my.model data.npz
      chimap evaluate cells.model new.h5ad --labels cell_type --unassigned 0.05
      chimap evaluate my.model test.npz --output report.html
      chimap evaluate my.model rows.npy --labels labels.csv --json
      chimap evaluate my.model samples.csv --labels site --split part
      chimap evaluate my.model samples.csv --labels site --splits 5 --groups subject
      chimap evaluate my.model samples.csv --splits leave-one-group-out --groups study --permutations 200
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
        permutations=permutations,
        unassigned=unassigned,
        table=table,
    )
    if json:
        show.as_json({"command": "evaluate", "report": output and str(output), **evaluated.as_dict()})
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
    splits: str | None = None,
    per_class: int | None = None,
    permutations: int | None = None,
    unassigned: float | None = None,
    table: TableOptions = AS_IT_IS,
) -> Evaluation:
    """Predict, compare with the labels, and write the report if ``output`` names a file.

    The path of the report is checked before any work.
    """
    import numpy as np

    from chimap import load
    from chimap._validation import DataError
    from chimap.cli import data_rows
    from chimap.data.labels import present
    from chimap.reports import repeated_splits, report
    from chimap.reports.score import as_answers, true_answers
    from chimap.reports.splits import check_splits, splits_of
    from chimap.reports.studies import check_studies, study_scores

    by_study = splits == flag_values.LEAVE_ONE_GROUP_OUT
    n_splits = None if by_study else flag_values.number_of_splits(splits)
    if by_study and table.groups is None:
        raise InputError(
            "--splits leave-one-group-out needs groups: name their column with --groups, such as --groups study."
        )
    if permutations is not None and not by_study:
        raise InputError(
            "--permutations permutes labels within groups: add --splits leave-one-group-out --groups COLUMN, or leave "
            "--permutations out."
        )
    flag_values.check_least(permutations, "--permutations")
    flag_values.check_least(per_class, "--per-class")
    if per_class is not None and n_splits is None:
        raise InputError("--per-class sets how --splits splits the rows: add --splits 5, or leave it out.")
    if table.groups is not None and per_class is not None:
        raise InputError(
            "--per-class draws rows of each class, but --groups keeps groups whole: leave one of them out."
        )
    if table.split is not None and all_rows:
        raise InputError("--split selects the test rows, but --all-rows takes every row: leave one of them out.")
    outputs.check_outputs({"--output": output}, (model, data, labels), overwrite)
    fitted = load(model, kind="model")
    by_structure = table.splits_by_structure(fitted.reading_)
    by_group = table.groups is not None or by_structure
    drawn = None if n_splits is None else splits_of(fitted, n_splits, per_class, by_group)

    def check_labels(y: np.ndarray | None, name: str) -> None:
        y_true = as_answers(fitted, present(y, name, fitted), name)
        if drawn is not None and not by_group:
            check_splits(fitted, y_true, name, drawn)

    source = data_rows.open_data(data, labels, fitted, part=part, silent=silent, check_labels=check_labels, table=table)
    groups = data_rows.groups_of(source, table)
    if drawn is not None:
        data_rows.warn_of_groups(source, table)
    if drawn is not None and groups is not None:
        check_splits(fitted, true_answers(fitted, source), source.name, drawn, groups)
    if by_study and source.covariates is not None:
        raise InputError(
            "--splits leave-one-group-out takes counts alone, but the model was fitted with --covariates: use "
            "--splits 5, or fit it without them."
        )
    if by_study:
        check_studies(fitted, true_answers(fitted, source), groups, permutations or 0, source.name)
    chosen = data_rows.choose_rows(fitted, source, all_rows, table)
    if chosen.warning:
        messages.say("warning", chosen.warning)
    data_rows.warn_of_repeats(chosen.training, chosen.source)
    try:
        evaluated = report(
            fitted,
            chosen.source,
            training=chosen.training,
            which=chosen.which,
            insight=output is not None,
            unassigned=unassigned,
            progress=show.progress(silent),
        )
    except DataError:
        # names the row of the file, not that of a part of it
        data_rows.check_every_row(source, fitted.precision_)
        raise
    if drawn is not None or by_study:
        rows, y = source.take(np.arange(source.n_rows)), true_answers(fitted, source)
        if source.covariates is None and "covariates" in fitted.get_params(deep=False):  # of weight 0
            fitted.set_params(covariates=None)
    if drawn is not None:
        with show.busy(f"training on {splits} splits"):
            evaluated = replace(evaluated, splits=repeated_splits(fitted, rows, y, drawn, groups, source.covariates))
    if by_study:
        assert groups is not None
        found = study_scores(fitted, rows, y, groups, permutations=permutations or 0, progress=show.progress(silent))
        evaluated = replace(evaluated, studies=found)
    if output is not None:
        with show.busy("drawing the report"):
            evaluated.save(output, overwrite=overwrite)
        messages.written.append(str(output))
    return evaluated


def summary(evaluated: Evaluation, output: Path | None) -> dict[str, str | None]:
    """Return the lines of the terminal summary of an evaluation."""
    seconds = evaluated.stages["predict"]
    return evaluated.summary() | {
        "time": f"{show.duration(seconds)}, {evaluated.metrics.n_rows / max(seconds, 1e-9):,.0f} rows/s",
        "peak memory": show.size(show.peak_memory()),
        "report": None if output is None else str(output),
    }
