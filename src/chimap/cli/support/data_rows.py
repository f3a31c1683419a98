"""Which rows a command reads: opening files, and what their labels are."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chimap.cli.support import image_models, tasks
from chimap.cli.support.options import Task
from chimap.cli.support.show import busy
from chimap.cli.support.table import AS_IT_IS, Table

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from chimap._types import JSON
    from chimap.data import Source, SvmlightSource
    from chimap.data.formats.fields import Reading

TASK_RULE = (
    "auto: text is classes; so are whole numbers, if at most 20 differ (up to 1000 with ten rows each) and each "
    "comes twice on average; other numbers are a regression"
)


_NO_BINS = ("groups", "split", "sample_weight")  # that name columns which are set aside


def open_data(
    data: str,
    labels: str | None = None,
    model: BaseEstimator | None = None,
    *,
    part: str | None = None,
    silent: bool = False,
    check_labels: image_models.CheckLabels | None = None,
    table: Table = AS_IT_IS,
    every_row: bool = False,
    reading: Reading | None = None,
    aside: Sequence[str] = (),
) -> Source:
    """The source of a file. For a ``model``, svmlight text is read with the bins that the model knows, and images are
    described as those that it was fitted on; check_labels(labels, name) may refuse their labels before that. Columns
    are matched to the model's by name, and what is not said of the table is as it was in training. every_row: rows
    without a label, too. reading: how rows are made of a column of text or molecules; a model has its own.
    aside: columns that are no bins, where ``table`` names none.

    Raises FileNotFoundError, and DataError for bad files and a number of bins other than the model's.
    """
    from chimap._validation import DataError
    from chimap.cli.support.errors import say
    from chimap.data import SvmlightSource, matched

    if image_models.holds_images(data):
        if model is None:
            raise DataError(
                f"{data} holds images. Write their histograms first: chimap features IMAGES --output FILE."
            )
        return image_models.rows_for(model, data, labels, part, silent, check_labels)
    if part is not None:
        raise ValueError(f"--part is for images, but {data} holds rows of bins; leave it out.")
    with busy(f"opening {data}"):
        training = (getattr(model, "training_", None) or {}).get("table") or {}
        said: JSON = _fitting(training, model) | ({"exclude": [*aside]} if aside else {}) | table.given()
        asked = [name for name in (said.pop(word, None) for word in _NO_BINS) if name is not None]
        source = _opened(data, labels, model, asked, {"reading": reading, **said})
        source = source.every_row if every_row else source
        for note in source.notes:
            say("note", note)
        if model is None:
            return source
        if isinstance(source, SvmlightSource):
            source = _as_in_training(source, labels, model)
    if check_labels is not None:
        check_labels(source.labels(), source.name)
    check_bins(source, model)
    known = matched(
        source, getattr(model, "feature_names_in_", None), model.n_features_in_, type(model).__name__
    )
    for note in known.notes[len(source.notes) :]:
        say("note", note)
    return known


def _opened(
    data: str, labels: str | None, model: BaseEstimator | None, aside: list[str], said: JSON
) -> Source:
    """The source, without the columns that are set aside and those that the model knows to be no bins; without
    ``labels`` those of the column, or columns, that it was fitted with, where the file has them."""
    from chimap import open_source
    from chimap._validation import DataError
    from chimap.cli.support.errors import say

    def opened(labels: str | None) -> Source:
        return open_source(data, labels, like=model, aside=[*aside, *_known_aside(model, labels)], **said)

    named = (getattr(model, "training_", None) or {}).get("labels")
    if labels is None and named is not None and _is_column(named):
        try:
            found = opened(named)
        except (DataError, FileNotFoundError):
            pass  # for want of the column, or of the file: then the next line says so
        else:
            column = "column" if found.task_names is None else "columns"
            say("note", f"{found.name}: labels are its {column} {named!r}, as when the model was fitted.")
            return found
    return opened(labels)


def _is_column(labels: str) -> bool:
    """Whether labels of a fit were a column of its data rather than a file or a member, whose rows are its own."""
    return "::" not in labels and not Path(labels).exists()


def _fitting(training: dict[str, str], model: BaseEstimator) -> JSON:
    """What was said of the training table, as far as it is not said by names of columns."""
    named = hasattr(model, "feature_names_in_")
    return {
        name: value
        for name, value in training.items()
        if name in ("missing", "transpose", *_NO_BINS) or not (named and name != "id")
    }


def _known_aside(model: BaseEstimator, labels: str | None) -> list[str]:
    """Names of the columns that were no bins when the model was fitted, which new rows may have and need not; none
    where columns have no names. Without those of several tasks where labels are named, by a pattern perhaps."""
    about = getattr(model, "training_", None) or {}
    if not hasattr(model, "feature_names_in_"):
        return []
    known = [*([] if about.get("labels") is None else [about["labels"]]), *about.get("columns_aside", ())]
    of_tasks = {*(tasks.names_of(model) or ())} if labels is not None else set()
    return [name for name in known if name not in of_tasks]


def _as_in_training(source: SvmlightSource, labels: str | None, model: BaseEstimator) -> SvmlightSource:
    """The text read as the training file was: it does not say itself how many columns it has, nor the first."""
    first = (getattr(model, "training_", None) or {}).get("zero_based")
    first = source.zero_based if first is None else first
    if source.n_features >= model.n_features_in_ and source.zero_based == first:
        return source
    n_features = max(source.n_features + (first and not source.zero_based), model.n_features_in_)
    return type(source)(source.path, labels, n_features=n_features, zero_based=first)


def check_bins(source: Source, model: BaseEstimator) -> None:
    """Refuse rows whose number of bins is not the model's."""
    from chimap._validation import DataError

    is_named = source.column_names is not None and hasattr(model, "feature_names_in_")
    if not is_named and source.n_features != model.n_features_in_:
        raise DataError(
            f"{source.name}: {source.n_features:,} bins a row, but the model was fitted on "
            f"{model.n_features_in_:,}. Give rows with the same bins in the same order."
        )


def weigh(source: Source, table: Table) -> None:
    """Give the rows the weights that --sample-weight names. Raises DataError, naming the row, for bad ones."""
    from chimap.fit.weights import checked_sample_weight

    if table.sample_weight is not None:
        values = source.column(table.sample_weight)
        source.weights = checked_sample_weight(values, source.n_rows, f"{source.name}, {table.sample_weight}")


def labels_of(source: Source) -> np.ndarray:
    """The labels, which must be there."""
    return present(source.labels(), source.name)


def present(y: np.ndarray | None, name: str, model: Any = None) -> np.ndarray:
    """Labels, which must be there; an error says what those of the training rows of a model were."""
    from chimap._validation import DataError

    named = (getattr(model, "training_", None) or {}).get("labels")
    if y is None and named is not None:
        raise DataError(
            f"{name} has no labels. Name them; the model was fitted with --labels {shlex.quote(named)}."
        )
    if y is None:
        raise DataError(
            f"{name} has no labels. Name them with --labels: a file (.npy, .csv, or text with one a line), a column of "
            "a table, TABLE::COLUMN of another one with the ids of the rows, or ::MEMBER of an .npz, .h5 or .zarr "
            "file; an array or column y is found by itself."
        )
    return y


def decide_task(y: np.ndarray, wanted: Task, name: str) -> tuple[Task, str]:
    """Classification or regression, and why: ``TASK_RULE``. DataError where labels and task do not agree."""
    import numpy as np

    from chimap._validation import DataError

    if y.ndim == 2:
        return tasks.decide(y, wanted, name)
    if y.dtype.kind in "bU":
        if wanted is Task.regress:
            raise DataError(f"{name}: --task regress needs numbers for targets; row 0 has {str(y[0])!r}.")
        return Task.classify, "labels are text" if y.dtype.kind == "U" else "labels are true or false"
    fractional = np.flatnonzero(y != np.round(y))
    if fractional.size and wanted is Task.classify:
        raise DataError(
            f"{name}: --task classify needs whole numbers or text for labels; row {fractional[0]} has "
            f"{y[fractional[0]]:g}. Use --task regress, or round the labels."
        )
    if wanted is not Task.auto:
        return wanted, "as asked"
    if fractional.size:
        return Task.regress, "labels are fractions"
    different = np.unique(y).size
    is_few = different <= y.size / 2 and different <= max(20, min(1000, y.size // 10))
    task, other = (Task.classify, "regress") if is_few else (Task.regress, "classify")
    numbers = f"{different:,} different whole numbers" if different > 1 else "the same whole number"
    return task, f"labels are {numbers}; --task {other} if not"


def check_every_row(source: Source, precision: str) -> None:
    """Refuse bins that are negative, not finite or too large for the precision, by their row in the file.

    Fitting reads a sample first, or a part of the rows, and its error names the row of that.
    """
    import numpy as np

    from chimap._arrays import to_dense
    from chimap._validation import DataError, check_histograms

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
