"""Open the data of a command, and read and check their labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chimap._arrays import to_dense
from chimap._errors import InputError
from chimap._validation import DataError, check_histograms
from chimap.cli import image_rows
from chimap.cli.messages import in_flags, say
from chimap.cli.options import AS_IT_IS, TableOptions, TaskName
from chimap.cli.show import busy
from chimap.data import open_source
from chimap.data.covariates import beside, columns_aside, covariate_names, table_of_columns, unwrapped
from chimap.data.label_files import IGNORE_LABELS
from chimap.data.label_kinds import as_targets, check_binary, is_number, is_text, why_text
from chimap.data.labels import NoLabelsError
from chimap.data.table import NoColumnError

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap._types import JSON
    from chimap.data import Source
    from chimap.data.formats.fields import Reading


_OF_ROWS = ("missing", "covariates", "metadata")  # options that do not choose columns of bins
_COLUMNS_ASIDE = ("groups", "split", "sample_weight")  # options that name columns which are not bins


def open_data(
    data: str,
    labels: str | None = None,
    model: BaseEstimator | None = None,
    *,
    part: str | None = None,
    silent: bool = False,
    check_labels: image_rows.CheckLabels | None = None,
    table: TableOptions = AS_IT_IS,
    reads_labels: bool = True,
    needs_labels: bool = True,
    reading: Reading | None = None,
    aside: Sequence[str] = (),
) -> Source:
    """Open DATA as a source of rows.

    With a ``model``, columns are matched by name to those that it was fitted on, and table options that are not set
    are as in training. Svmlight text is read with the number of bins of the model, and images are described in the
    same way as its training images.

    Parameters
    ----------
    data : str
        Path or address of the data.
    labels : str or None, default=None
        Value of --labels.
    model : estimator or None, default=None
        Fitted model that will predict the rows.
    part : str or None, default=None
        Part of an image data set to use.
    silent : bool, default=False
        Whether to leave out the progress bar.
    check_labels : callable or None, default=None
        Called as check_labels(labels, name) and may raise; for images it runs before they are described.
    table : TableOptions, default=AS_IT_IS
        Roles of the columns.
    reads_labels : bool, default=True
        Whether to read labels, and leave out the rows without one.
    needs_labels : bool, default=True
        Whether a column of labels without any is an error, rather than rows without labels.
    reading : Reading or None, default=None
        How rows are made from a column of text or molecules; a model brings its own.
    aside : sequence of str, default=()
        Columns that are not bins, used unless ``table`` excludes columns itself.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    DataError
        If the file is bad, or if its number of bins differs from that of the model.
    """
    if image_rows.holds_images(data):
        if model is None:
            raise DataError(f"{data} holds images. Write their histograms first: chimap features IMAGES --output FILE.")
        chosen_labels = labels if reads_labels else IGNORE_LABELS
        return image_rows.rows_for(model, data, chosen_labels, part, silent, check_labels)
    if part is not None:
        raise InputError(f"--part is for images, but {data} holds rows of bins; leave it out.")
    with busy(f"opening {data}"):
        training = (getattr(model, "training_", None) or {}).get("table") or {}
        options: JSON = _fitting(training, model) | ({"exclude": [*aside]} if aside else {}) | table.given()
        not_bins = [name for name in (options.pop(option, None) for option in _COLUMNS_ASIDE) if name is not None]
        words = covariates_of(TableOptions(**{name: options.pop(name, None) for name in ("covariates", "metadata")}))
        _check_covariates(words, {"--labels": labels, "--id": options.get("id")} | table.asides())
        if words is not None:
            not_bins += columns_aside(words)
        options |= {"reading": reading, "reads_labels": reads_labels}
        source = _opened(data, labels, model, not_bins, needs_labels, options)
        if words is not None and (model is None or model.taken_covariates is not None):
            source = beside(source, table_of_columns(source, words))
        for note in source.notes:
            say("note", in_flags(note))
    if check_labels is not None and model is not None:
        check_labels(source.labels(), source.name)
    return source


def covariates_of(table: TableOptions) -> str | None:
    """Return --covariates and --metadata as one text, such as "meta.tsv::age,sex"; None without covariates."""
    if table.metadata is None:
        return table.covariates
    if table.covariates is None:
        raise InputError("--metadata is the table of --covariates: name them, or leave --metadata out.")
    return f"{table.metadata}::{table.covariates}"


def _check_covariates(words: str | None, roles: dict[str, str | None]) -> None:
    """Raise InputError for a covariate that has another role."""
    names = set() if words is None else {unwrapped(name)[0] for name in covariate_names(words)}
    for flag, column in roles.items():
        if column in names:
            raise InputError(f"--covariates: {column!r} is {flag} too. Leave it out of one of them.")


def _opened(
    data: str, labels: str | None, model: BaseEstimator | None, aside: list[str], needs_labels: bool, options: JSON
) -> Source:
    """Open the source without the columns in ``aside`` and those that the model knows not to be bins."""

    def opened(labels: str | None, with_labels: bool) -> Source:
        known = _known_aside(model, labels if with_labels else None)
        return open_source(data, labels, like=model, aside=[*aside, *known], with_labels=with_labels, **options)

    if not options.pop("reads_labels"):
        return opened(labels, False)
    try:
        source = _with_labels_of_fit(opened, model) if labels is None else None
        return opened(labels, True) if source is None else source
    except NoLabelsError as error:
        if needs_labels or labels is not None:
            raise
        say("note", f"{in_flags(error)} The rows are taken for rows without labels.")
        return opened(None, False)


def _with_labels_of_fit(opened: Callable[[str | None, bool], Source], model: BaseEstimator | None) -> Source | None:
    """Return the source with the column or columns that the model was fitted with as labels; None if it lacks them."""
    labels = (getattr(model, "training_", None) or {}).get("labels")
    if labels is None or not _is_column(labels):
        return None
    try:
        source = opened(labels, True)
    except (NoColumnError, FileNotFoundError):  # if the file of the rows is missing, the next try raises again
        return None
    column = "column" if source.task_names is None else "columns"
    say("note", f"{source.name}: using the {column} {labels!r} as labels, as when the model was fitted.")
    return source


def _is_column(labels: str) -> bool:
    """Return whether the --labels of a fit named a column of its data, not a file or member with rows of its own."""
    return "::" not in labels and not Path(labels).exists()


def _fitting(training: dict[str, str], model: BaseEstimator) -> JSON:
    """Return the table options of the training data that apply to new data.

    If the model knows its columns by name, options that select columns are dropped, since names match the columns.
    """
    is_named = hasattr(model, "feature_names_in_")
    return {
        name: value
        for name, value in training.items()
        if name in (*_OF_ROWS, *_COLUMNS_ASIDE) or not (is_named and name != "id")
    }


def _known_aside(model: BaseEstimator, labels: str | None) -> list[str]:
    """Return the names of the columns that were not bins when the model was fitted; new data need not have them.

    The list is empty if columns have no names. If ``labels`` is given, perhaps as a pattern, the columns of several
    tasks are not in the list.
    """
    about = getattr(model, "training_", None) or {}
    if not hasattr(model, "feature_names_in_"):
        return []
    from chimap.estimators.targets import task_names

    tasks_known = task_names(model) or []
    not_bins = [
        *([] if about.get("labels") is None else [about["labels"]]),
        *about.get("columns_aside", ()),
        *tasks_known,
    ]
    return [name for name in not_bins if labels is None or name not in tasks_known]


def weigh(source: Source, table: TableOptions) -> None:
    """Set the weights of the rows from --sample-weight. Raise DataError, naming the row, for a bad weight."""
    from chimap.recipe.weights import checked_sample_weight

    if table.sample_weight is not None:
        values = source.column(table.sample_weight)
        source.weights = checked_sample_weight(values, source.n_rows, f"{source.name}, {table.sample_weight}")


def decide_task(y: np.ndarray, wanted: TaskName, name: str) -> tuple[TaskName, str]:
    """Return the task and the reason for it, by ``options.TASK_RULE``.

    Raise DataError if the labels do not suit the task ``wanted``, if all targets of a regression are equal, and if
    text might be meant as numbers.
    """
    if y.ndim == 2:
        return decide_of_tasks(y, wanted, name)
    if is_text(y):
        if wanted is not TaskName.regress:
            _check_meant_as_text(y, wanted, name)
            return TaskName.classify, "labels are text"
        y = as_targets(y, name)
    if y.dtype.kind == "b":
        if wanted is TaskName.regress:
            raise DataError(f"{name}: --task regress needs numbers for targets; row 0 has {str(y[0])!r}.")
        return TaskName.classify, "labels are true or false"
    fractional = np.flatnonzero(y != np.round(y))
    if fractional.size and wanted is TaskName.classify:
        raise DataError(
            f"{name}: --task classify needs whole numbers or text for labels; row {fractional[0]} has "
            f"{y[fractional[0]]:g}. Use --task regress, or round the labels."
        )
    is_few, different = _is_few(y), np.unique(y).size
    task = TaskName.regress if fractional.size or not is_few else TaskName.classify
    if wanted is not TaskName.auto:
        task = wanted
    if task is TaskName.regress and different == 1 and y.size > 1:
        raise DataError(
            f"{name}: every label is {y[0]:g}, so there is nothing to predict. Name the column of labels with --labels."
        )
    if wanted is not TaskName.auto:
        return wanted, "as set with --task"
    if fractional.size:
        return task, "labels are fractions"
    opposite = "regress" if task is TaskName.classify else "classify"
    numbers = f"{different:,} different whole numbers" if different > 1 else "the same whole number"
    return task, f"labels are {numbers}; use --task {opposite} to override"


def _is_few(y: np.ndarray) -> bool:
    """Return whether so few labels are different that numbers are classes, by ``options.TASK_RULE``."""
    different = np.unique(y).size
    return bool(different <= y.size / 2 and different <= max(20, min(1000, y.size // 10)))


def _check_meant_as_text(y: np.ndarray, wanted: TaskName, name: str) -> None:
    """Ask which task is meant where most labels are numbers, too many for classes, and one of them makes all text."""
    if wanted is TaskName.classify or _is_few(y):
        return
    words = np.unique(y).tolist()
    if 2 * sum(map(is_number, words)) < len(words):
        return
    word, reason = why_text(words) or (words[0], "comes as text")
    row = int(np.flatnonzero(y == word)[0])
    raise DataError(
        f"{name}: {len(words):,} different labels, most of them numbers, but they are text, as {word!r} in row {row} "
        f"{reason}. For a regression, mend what is no number and add --task regress; for classes, add --task classify."
    )


def check_every_row(source: Source, precision: str) -> None:
    """Raise DataError, naming the row in the file, for bins that are negative, not finite or too large.

    A fit reads a sample or a part of the rows first, so its own error would name the row of that sample or part.
    """
    largest = np.finfo("float64" if precision == "float64" else "float32").max
    for chunk in source.chunks(4096):
        check_histograms(
            chunk.X, name=source.name, first_row=chunk.start, columns=source.column_names, ids=source.row_ids
        )
        tops = chunk.X.max(axis=1)
        over = np.flatnonzero(to_dense(tops) > largest)
        if over.size:
            raise DataError(
                f"{source.name}, row {chunk.start + over[0]}: a bin is too large for {precision}, above {largest:.3g}. "
                "Scale the rows, or add --precision float64."
            )


def decide_of_tasks(y: np.ndarray, wanted: TaskName, name: str) -> tuple[TaskName, str]:
    """Return the task for labels (n, t), and the reason for it.

    Raise DataError if the labels do not suit the task ``wanted``.
    """
    if wanted is TaskName.classify:
        check_binary(y, name)
    if wanted is not TaskName.auto:
        return wanted, "as set with --task"
    is_binary = (np.isnan(y) | (y == 0) | (y == 1)).all()
    kind = "0 and 1" if is_binary else "numbers"
    return (TaskName.classify if is_binary else TaskName.regress), f"{y.shape[1]} columns of {kind}"
