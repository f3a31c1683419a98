"""``chimap evaluate``: score a model on a file of rows and labels, on the terminal and as a page."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from chimap._errors import InputError
from chimap.cli import flag_values, messages, outputs, show
from chimap.cli.options import AS_IT_IS, TableOptions, check_forward
from chimap.cli.parser import Without

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator
    from sklearn.model_selection import BaseCrossValidator

    from chimap._types import JSON
    from chimap.data import Source
    from chimap.data.forward import ForwardSplits
    from chimap.engines import Progress
    from chimap.models.predictor import Predictor
    from chimap.reports import Evaluation


@dataclasses.dataclass(frozen=True)
class EvaluateSettings:
    """The options of ``chimap evaluate`` that set which rows are scored, and by which models.

    Parameters
    ----------
    all_rows
        Also score the rows that the model was trained on.
    splits : N | forward | leave-one-group-out, common
        Also train anew on N random parts of DATA, or forward in --time, or without each group of --groups in turn. The
        mean and the standard deviation of the scores are reported. forward trains on rows before each of five cuts, and
        scores those up to the next; forward:3 makes three. With leave-one-group-out, such as one study at a time, the
        score of each group stands beside that of models trained within it.
    time : COLUMN
        Column with the time of each row, for --splits forward: numbers, or dates such as 2024-03-09. Rows of one time
        stay together, and a group of --groups is as late as its last row. It is not a bin.
    per_class : N
        With --splits N: training rows of each class; the others are test rows. By default 70 % of the rows are training
        rows.
    permutations : N
        With --splits leave-one-group-out: shuffle the labels N times within each group, and count how often that scores
        as well.
    table : FILE
        With --splits leave-one-group-out: also write the scores of the groups as a table (.csv).
    unassigned : SHARE, common
        Count rows that are like no class, and score the others; 0.05 is usual. chimap predict --unassigned would label
        these rows.
    """

    all_rows: bool = False
    part: str | None = None
    splits: str | None = None
    time: str | None = None
    per_class: int | None = None
    permutations: int | None = None
    table: Path | None = None
    unassigned: float | None = None

    @property
    def by_study(self) -> bool:
        """Whether each group is left out in turn."""
        return self.splits == "leave-one-group-out"

    @property
    def is_forward(self) -> bool:
        """Whether the splits go forward in time."""
        return self.splits is not None and self.splits.partition(":")[0] == "forward"

    @property
    def n_splits(self) -> int | None:
        """The number of splits; None for none, or the usual ones. Raise InputError for other text of --splits."""
        if self.splits in (None, "forward") or self.by_study:
            return None
        given = str(self.splits).removeprefix("forward:")
        if not given.isdecimal() or int(given) < 1:
            raise InputError(
                "--splits must be a number of random splits, 1 or more, or leave-one-group-out, forward, or forward:3 "
                f"for three cuts; got {self.splits}."
            )
        return int(given)

    def check(self, roles: TableOptions) -> None:
        """Raise InputError, naming the flag, before any row is read, for settings that cannot work."""
        by_group = "--splits leave-one-group-out --groups COLUMN"
        if self.by_study and roles.groups is None:
            raise InputError(
                "--splits leave-one-group-out needs groups: name their column with --groups, such as --groups study."
            )
        if self.permutations is not None and not self.by_study:
            raise InputError(
                f"--permutations permutes labels within groups: add {by_group}, or leave --permutations out."
            )
        flag_values.check_least(self.permutations, "--permutations")
        if self.table is not None and not self.by_study:
            raise InputError(f"--table holds a line for each group: add {by_group}, or leave --table out.")
        outputs.check_ending(self.table, "--table", ".csv")
        check_forward(self.is_forward, self.time)
        flag_values.check_least(self.per_class, "--per-class")
        if self.per_class is not None and self.is_forward:
            raise InputError("--per-class draws rows, but --splits forward takes them by time: leave one of them out.")
        if self.per_class is not None and self.n_splits is None:
            raise InputError("--per-class sets how --splits splits the rows: add --splits 5, or leave it out.")
        if roles.groups is not None and self.per_class is not None:
            raise InputError(
                "--per-class draws rows of each class, but --groups keeps groups whole: leave one of them out."
            )
        if roles.split is not None and self.all_rows:
            raise InputError("--split selects the test rows, but --all-rows takes every row: leave one of them out.")


def evaluate(
    model: Path,
    data: str,
    *,
    labels: str | None = None,
    roles: Annotated[TableOptions, Without("sample_weight", "covariates")],
    output: Path | None = None,
    settings: EvaluateSettings,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Score MODEL on the rows and labels of DATA.

    If MODEL was fitted on DATA with --test-fraction or --split, only the held-out rows are scored. For any other file,
    all rows are scored, or with --split its test rows. With --splits, --groups keeps rows that belong together on the
    same side of each split.

    Parameters
    ----------
    output : REPORT, common
        Write a report as one HTML page.

    \b
    Examples:
      chimap evaluate plots.model plots.csv --labels site
      chimap evaluate plots.model plots.csv --labels site --output report.html
      chimap evaluate my.model samples.csv --splits 5 --groups subject
      chimap evaluate my.model data.npz
      chimap evaluate cells.model new.h5ad --labels cell_type --unassigned 0.05
      chimap evaluate my.model test.npz --output report.html
      chimap evaluate my.model rows.npy --labels labels.csv --json
      chimap evaluate my.model samples.csv --labels site --split part
      chimap evaluate my.model samples.csv --splits forward --time date --groups subject
      chimap evaluate my.model samples.csv --splits leave-one-group-out --groups study --permutations 200
      chimap evaluate my.model samples.csv --splits leave-one-group-out --groups study --table studies.csv
      chimap evaluate photos.model photos/ --output report.html
      chimap evaluate photos.model photos/ --splits 5 --per-class 15
    """
    evaluated = measure(model, data, labels, output, settings, roles, overwrite=overwrite, silent=json)
    if json:
        show.as_json({"command": "evaluate", "report": output and str(output), **evaluated.as_dict()})
        return
    seconds = evaluated.stages["predict"]
    lines = {
        "time": f"{show.duration(seconds)}, {evaluated.metrics.n_rows / max(seconds, 1e-9):,.0f} rows/s",
        "peak memory": show.size(show.peak_memory()),
        "report": None if output is None else str(output),
        "table": None if settings.table is None else str(settings.table),
    }
    show.facts(f"Evaluated {model} on {data}", evaluated.summary() | lines)


_AS_USUAL = EvaluateSettings()
_FEWER_CUTS = "It is later than a cut: make fewer, as with --splits forward:1, or leave its rows out."


def measure(
    model: Path,
    data: str,
    labels: str | None,
    output: Path | None,
    settings: EvaluateSettings = _AS_USUAL,
    roles: TableOptions = AS_IT_IS,
    *,
    overwrite: bool = False,
    silent: bool = False,
) -> Evaluation:
    """Predict, compare with the labels, and write the report if ``output`` names a file.

    The paths of report and table are checked before any work.
    """
    import numpy as np

    from chimap import load
    from chimap._validation import DataError
    from chimap.cli import data_rows
    from chimap.data.labelled import present
    from chimap.reports import report
    from chimap.reports.linear import LinearRival
    from chimap.reports.score import as_answers, true_answers
    from chimap.reports.splits import check_splits, splits_of
    from chimap.reports.studies import check_studies

    settings.check(roles)
    outputs.check_outputs({"--output": output, "--table": settings.table}, (model, data, labels), overwrite)
    estimator = load(model, kind="model")
    fitted: Predictor = estimator.fitted
    by_group = roles.groups is not None or roles.splits_by_structure(fitted.schema.reading)
    n_splits, by_study = settings.n_splits, settings.by_study
    drawn: BaseCrossValidator | ForwardSplits | None = None
    if n_splits is not None and not settings.is_forward:
        drawn = splits_of(fitted, n_splits, settings.per_class, by_group)

    def check_labels(y: np.ndarray | None, name: str) -> None:
        y_true = as_answers(fitted, present(y, name, fitted.training.get("labels")), name)
        if drawn is not None and not by_group:
            check_splits(fitted, y_true, name, drawn)

    source = data_rows.open_data(
        data,
        labels,
        fitted,
        part=settings.part,
        silent=silent,
        check_labels=check_labels,
        table=roles,
        metadata=[] if settings.time is None else [settings.time],
    )
    groups = data_rows.groups_of(source, roles)
    if settings.time is not None:
        drawn = data_rows.forward_splits(source, settings.time, n_splits)
    if drawn is not None:
        data_rows.warn_of_groups(source, roles)
    if drawn is not None and (groups is not None or settings.is_forward):
        remedy = {"remedy": _FEWER_CUTS} if settings.is_forward else {}
        check_splits(fitted, true_answers(fitted, source), source.name, drawn, groups, **remedy)
    if by_study and source.covariates is not None:
        raise InputError(
            "--splits leave-one-group-out takes counts alone, but the model was fitted with --covariates: use "
            "--splits 5, or fit it without them."
        )
    if by_study:
        n_permutations, has_classes = settings.permutations or 0, fitted.answers.classes is not None
        check_studies(has_classes, true_answers(fitted, source), groups, n_permutations, source.name)
    chosen = data_rows.choose_rows(fitted, source, settings.all_rows, roles)
    if groups is None:
        of_rows = chosen.groups
    else:
        of_rows = groups[np.isin(source.places_in_file(), chosen.source.places_in_file())]
    if chosen.warning:
        messages.say("warning", chosen.warning)
    data_rows.warn_of_repeats(chosen.training, chosen.source)
    progress = show.progress(silent)
    try:
        evaluated = report(
            estimator,
            chosen.source,
            training=chosen.training,
            which=chosen.which,
            insight=output is not None,
            unassigned=settings.unassigned,
            groups=of_rows,
            progress=progress,
        )
        known = None if chosen.training is None else fitted.training.get("linear")
        evaluated = dataclasses.replace(evaluated, linear_of_fit=known and LinearRival.of(known))
    except DataError:
        # names the row of the file, not that of a part of it
        data_rows.check_every_row(source, fitted.precision)
        raise
    if drawn is not None or by_study:
        evaluated = dataclasses.replace(evaluated, **_retrained(estimator, source, drawn, groups, settings, progress))
    if output is not None:
        with show.busy("drawing the report"):
            evaluated.save(output, overwrite=overwrite)
        messages.written.append(str(output))
    return evaluated


def _retrained(
    estimator: BaseEstimator,
    source: Source,
    drawn: BaseCrossValidator | ForwardSplits | None,
    groups: np.ndarray | None,
    settings: EvaluateSettings,
    progress: Progress,
) -> JSON:
    """Return the scores of copies that are trained on random splits, or study by study, by field of the evaluation."""
    import numpy as np

    from chimap.reports import repeated_splits
    from chimap.reports.score import true_answers
    from chimap.reports.studies import save_table, study_scores

    rows, y = source.take(np.arange(source.n_rows)), true_answers(estimator.fitted, source)
    if source.covariates is None and estimator.covariates is not None:  # of weight 0
        estimator.set_params(covariates=None)
    if drawn is not None:
        with show.busy(f"training on {drawn.get_n_splits(y, y, groups)} splits"):
            splits = repeated_splits(estimator, rows, y, drawn, groups, source.covariates)
        reading = estimator.fitted.schema.reading
        known = "" if reading is None else reading.known_of_all
        note = known and f"{known}, not by those of each split."
        return {"splits": dataclasses.replace(splits, note=note, is_forward=settings.is_forward)}
    assert groups is not None
    studied = study_scores(estimator, rows, y, groups, permutations=settings.permutations or 0, progress=progress)
    if settings.table is not None:
        save_table({type(estimator).__name__: studied}, settings.table)
        messages.written.append(str(settings.table))
    return {"studies": studied}
