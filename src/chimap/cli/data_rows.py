"""The rows of a command: open them, read and check their labels, and hold some out.

Rows are held out by columns of splits and groups, by a random fraction, or by what a model has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from chimap._arrays import to_dense
from chimap._errors import InputError
from chimap._validation import DataError, check_histograms
from chimap.cli import image_rows
from chimap.cli.messages import in_flags, say
from chimap.cli.options import AS_IT_IS, TableOptions, TaskName
from chimap.cli.show import busy
from chimap.data.covariates import beside, columns_aside, covariate_names, table_of_columns, unwrapped
from chimap.data.doubts import doubts_of_groups, repeated_rows
from chimap.data.forward import LATEST, ForwardSplits, ticks_of
from chimap.data.label_kinds import as_targets, check_binary, is_number, is_text, texts_of, why_text
from chimap.data.labelled import NoLabelsError
from chimap.data.labels import IGNORE_LABELS
from chimap.data.split import drawn_for_test, held_out_rows, held_out_structures, split_by, split_source
from chimap.data.table import NoColumnError
from chimap.readers import MoleculeBlocks, open_source
from chimap.readers.image_names import holds_images

if TYPE_CHECKING:
    from chimap._types import JSON, Parameters
    from chimap.data import Source
    from chimap.data.reading import Reading
    from chimap.data.split import PartSource
    from chimap.models.predictor import Predictor


_COLUMNS_ASIDE = ("groups", "split", "sample_weight")  # options that name columns which are not bins
_NOT_ABOUT_BINS = ("id", "missing", "missing_counts", "covariates", "metadata", *_COLUMNS_ASIDE)


def open_data(
    data: str,
    labels: str | None = None,
    model: Predictor | None = None,
    *,
    part: str | None = None,
    silent: bool = False,
    check_labels: image_rows.CheckLabels | None = None,
    table: TableOptions = AS_IT_IS,
    reads_labels: bool = True,
    needs_labels: bool = True,
    reading: Reading | None = None,
    aside: Sequence[str] = (),
    metadata: Sequence[str] = (),
) -> Source:
    """Open DATA as a source of rows. Raise DataError for a bad file, or for other bins than those of the model.

    With a ``model``, columns are matched by name to those that it was fitted on, and table options that are not set
    are as in training. Svmlight text is read with the number of bins of the model, and images are described in the
    same way as its training images.

    check_labels: called as check_labels(labels, name), and may raise; for images, before they are described.
    needs_labels: whether a column of labels without any is an error, rather than rows without labels.
    reading: how rows are made from a column of text or molecules; a model brings its own.
    aside: columns that are not bins, used unless ``table`` excludes columns itself.
    metadata: more columns that are not bins, of groups for example.
    """
    if holds_images(data):
        if model is None:
            raise DataError(f"{data} holds images. Write their histograms first: chimap features IMAGES --output FILE.")
        chosen_labels = labels if reads_labels else IGNORE_LABELS
        return image_rows.rows_for(model, data, chosen_labels, part, silent, check_labels)
    if part is not None:
        raise InputError(f"--part is for images, but {data} holds rows of bins; leave it out.")
    with busy(f"opening {data}"):
        options: JSON = _options_of_fit(model) | ({"exclude": [*aside]} if aside else {}) | table.given()
        not_bins = [name for name in (options.pop(option, None) for option in _COLUMNS_ASIDE) if name is not None]
        not_bins += metadata
        words = covariates_of(options.pop("covariates", None), options.pop("metadata", None))
        _check_covariates(words, {"--labels": labels, "--id": options.get("id")} | table.asides())
        if words is not None:
            not_bins += columns_aside(words)
        options |= {"reading": reading, "reads_labels": reads_labels}
        source = _opened(data, labels, model, not_bins, needs_labels, options)
        if words is not None and (model is None or model.schema.covariates is not None):
            source = beside(source, table_of_columns(source, words))
        for note in source.notes:
            say("note", in_flags(note))
    if check_labels is not None and model is not None:
        check_labels(source.labels(), source.name)
    return source


def covariates_of(covariates: str | None, metadata: str | None) -> str | None:
    """Return --covariates and --metadata as one text, such as "meta.tsv::age,sex"; None without covariates."""
    if metadata is None:
        return covariates
    if covariates is None:
        raise InputError("--metadata is the table of --covariates: name them, or leave --metadata out.")
    return f"{metadata}::{covariates}"


def _check_covariates(words: str | None, roles: dict[str, str | None]) -> None:
    """Raise InputError for a covariate that has another role."""
    names = set() if words is None else {unwrapped(name)[0] for name in covariate_names(words)}
    for flag, column in roles.items():
        if column in names:
            raise InputError(f"--covariates: {column!r} is {flag} too. Leave it out of one of them.")


def _opened(
    data: str, labels: str | None, model: Predictor | None, aside: list[str], needs_labels: bool, options: JSON
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


def _with_labels_of_fit(opened: Callable[[str | None, bool], Source], model: Predictor | None) -> Source | None:
    """Return the source with the column or columns that the model was fitted with as labels; None if it lacks them."""
    labels = _about_fit(model).get("labels")
    if labels is None or "::" in labels or Path(labels).exists():  # a file or member, with rows of its own
        return None
    try:
        source = opened(labels, True)
    except (NoColumnError, FileNotFoundError):  # if the file of the rows is missing, the next try raises again
        return None
    column = "column" if source.task_names is None else "columns"
    say("note", f"{source.name}: using the {column} {labels!r} as labels, as when the model was fitted.")
    return source


def _about_fit(model: Predictor | None) -> JSON:
    """Return what the file of a model says of its fit; empty without a model, or if it says nothing."""
    return {} if model is None else model.training


def _options_of_fit(model: Predictor | None) -> JSON:
    """Return the table options of the training data that apply to new data.

    If the model knows its columns by name, options that select columns are dropped, since names match the columns. The
    encoding is that of the training file, and others have their own.
    """
    given: JSON = {**(_about_fit(model).get("table") or {})}
    given.pop("encoding", None)
    is_named = model is not None and model.schema.names is not None
    return {name: value for name, value in given.items() if name in _NOT_ABOUT_BINS or not is_named}


def _known_aside(model: Predictor | None, labels: str | None) -> list[str]:
    """Return the names of the columns that were not bins when the model was fitted; new data need not have them.

    The list is empty if columns have no names. If ``labels`` is given, perhaps as a pattern, the columns of several
    tasks are not in the list.
    """
    if model is None or model.schema.names is None:
        return []
    tasks_known, about = model.task_names or [], model.training
    labels_of_fit = [] if about.get("labels") is None else [about["labels"]]
    not_bins = [*labels_of_fit, *about.get("columns_aside", ()), *tasks_known]
    return [name for name in not_bins if labels is None or name not in tasks_known]


def weigh(source: Source, table: TableOptions) -> None:
    """Set the weights of the rows from --sample-weight. Raise DataError, naming the row, for a bad weight."""
    from chimap.recipe.weights import checked_sample_weight

    if table.sample_weight is not None:
        values = source.column(table.sample_weight)
        source.weights = checked_sample_weight(values, source.n_rows, f"{source.name}, {table.sample_weight}")


def decide_task(y: np.ndarray, wanted: TaskName, name: str) -> tuple[TaskName, str]:
    """Return the task and the reason for it, as the text of --task says.

    Raise DataError if the labels do not suit the task ``wanted``, if all targets of a regression are equal, and if
    text might be meant as numbers.
    """
    if y.ndim == 2:
        if wanted == "classify":
            check_binary(y, name)
        if wanted != "auto":
            return wanted, "as set with --task"
        if (np.isnan(y) | (y == 0) | (y == 1)).all():
            return "classify", f"{y.shape[1]} columns of 0 and 1"
        return "regress", f"{y.shape[1]} columns of numbers"
    if is_text(y):
        if wanted != "regress":
            _check_meant_as_text(y, wanted, name)
            return "classify", "labels are text"
        y = as_targets(y, name)
    if y.dtype.kind == "b":
        if wanted == "regress":
            raise DataError(f"{name}: --task regress needs numbers for targets; row 0 has {str(y[0])!r}.")
        return "classify", "labels are true or false"
    fractional = np.flatnonzero(y != np.round(y))
    if fractional.size and wanted == "classify":
        raise DataError(
            f"{name}: --task classify needs whole numbers or text for labels; row {fractional[0]} has "
            f"{y[fractional[0]]:g}. Use --task regress, or round the labels."
        )
    is_few, different = _is_few(y), np.unique(y).size
    found: TaskName = "regress" if fractional.size or not is_few else "classify"
    task = found if wanted == "auto" else wanted
    if task == "regress" and different == 1 and y.size > 1:
        raise DataError(
            f"{name}: every label is {y[0]:g}, so there is nothing to predict. Name the column of labels with --labels."
        )
    if wanted != "auto":
        return wanted, "as set with --task"
    if fractional.size:
        return task, "labels are fractions"
    opposite = "regress" if task == "classify" else "classify"
    numbers = f"{different:,} different whole numbers" if different > 1 else "the same whole number"
    return task, f"labels are {numbers}; use --task {opposite} to override"


def _is_few(y: np.ndarray) -> bool:
    """Return whether so few labels are different that numbers are classes, as the text of --task says."""
    different = np.unique(y).size
    return bool(different <= y.size / 2 and different <= max(20, min(1000, y.size // 10)))


def _check_meant_as_text(y: np.ndarray, wanted: TaskName, name: str) -> None:
    """Ask which task is meant where most labels are numbers, too many for classes, and one of them makes all text."""
    if wanted == "classify" or _is_few(y):
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


# --- held-out rows


class Chosen(NamedTuple):
    """The rows to evaluate on.

    ``which`` describes them in words, ``warning`` is a message to print or None, ``training`` holds the rows of the
    same file that the model was trained on, or None, and ``groups`` (n_rows,) those that the file was split by, or
    None.
    """

    source: Source
    which: str
    warning: str | None
    training: Source | None = None
    groups: np.ndarray | None = None


def same_rows(one: Parameters, other: Parameters) -> bool:
    """Return whether two fingerprints belong to the same rows, even if the file has another name or other labels."""

    def key(fingerprint: JSON) -> list[object]:
        member = str(fingerprint.get("name")).partition("::")[2]
        return [member, *(fingerprint.get(k) for k in ("bytes", "shape", "dtype", "digest"))]

    return key(one) == key(other)


@dataclass(frozen=True)
class Parts:
    """The training rows and the held-out rows of a file.

    ``groups`` and ``held_out_groups`` are those of the rows of either part, ``is_held_out`` (n_rows,) is about all rows
    of the file, and ``about`` says how the split was made, as plain values for ``choose_rows``. Without a split, there
    is no ``held_out`` and no ``about``.
    """

    training: Source
    held_out: Source | None
    groups: np.ndarray | None
    is_held_out: np.ndarray
    about: JSON | None
    held_out_groups: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        source: Source,
        test_fraction: float,
        seed: int,
        table: TableOptions = AS_IT_IS,
        classes: np.ndarray | None = None,
        time: str | None = None,
    ) -> Parts:
        """Split the rows by --split, forward in ``time``, by --test-fraction and --groups, or of each of ``classes``.

        Raise ValueError if both flags are given, and DataError if the columns do not allow a split.
        """
        by_structure = table.splits_by_structure(source.reading)
        groups = groups_of(source, table)
        if table.split is not None and test_fraction and not by_structure:
            raise InputError("--split names the held-out rows, but --test-fraction draws them: leave one of them out.")
        about: JSON | None = None
        if table.split is not None and not by_structure:
            about = {"column": table.split}
        elif test_fraction or time is not None:
            about = {"test_fraction": test_fraction or LATEST}
            about |= {"seed": seed} if time is None else {"time": time}
            about |= {} if groups is None else {"split" if by_structure else "groups": table.split or table.groups}
        is_held_out = np.zeros(source.n_rows, dtype=bool)
        if about is None:
            return cls(source, None, groups, is_held_out, None)
        if "seed" in about and groups is None:
            drawn = held_out_rows(source.n_rows, test_fraction, seed, classes)
            about["held_out"] = np.packbits(drawn)  # other files of labels, or none, then give the same rows
        training, held_out = _divided(source, about, groups)
        is_held_out[held_out.places] = True
        of_parts = (None, None) if groups is None else (groups[~is_held_out], groups[is_held_out])
        return cls(training, held_out, of_parts[0], is_held_out, about, of_parts[1])


def groups_of(source: Source, table: TableOptions) -> np.ndarray | None:
    """Return the groups (n_rows,) of --groups, or of --split by structure; None without.

    Raise DataError if all rows are in one group.
    """
    if table.splits_by_structure(source.reading):
        if table.groups is not None:
            raise InputError(f"--split {table.split} groups the rows, and so does --groups: leave one of them out.")
        flag, groups = f"--split {table.split}", structures_of(source, str(table.split))
    elif table.groups is not None:
        flag, groups = f"--groups {table.groups}", source.column(table.groups)
    else:
        return None
    if np.unique(groups).size < 2:
        raise DataError(
            f"{source.name}: {flag}: all rows are in one group, {groups[0]!s}, so none can be held "
            f"out. Name another column, or leave {flag.split()[0]} out."
        )
    return groups


def structures_of(source: Source, split: str) -> np.ndarray:
    """Return the groups (n_rows,) of the rows by what they are, such as scaffolds of molecules."""
    reading: Reading = source.reading
    return reading.groups(split, source.column(reading.column))


def forward_splits(
    source: Source, time: str, n_splits: int | None = None, test_fraction: float | None = None
) -> ForwardSplits:
    """Return splits of the rows by the column --time. Raise DataError, naming the row, for a value that is no time."""
    ticks = ticks_of(source.column(time), f"{source.name}, {time}", source.places_in_file())
    return ForwardSplits(ticks, n_splits, test_fraction)


def warn_of_groups(source: Source, table: TableOptions) -> None:
    """Note, in the words of a fit, that a column looks like a group where --groups is not given."""
    has_groups = table.groups is not None or table.splits_by_structure(source.reading)
    for doubt in () if has_groups else doubts_of_groups(source):
        say("note", in_flags(doubt))


def warn_of_repeats(training: Source | None, held_out: Source | None) -> None:
    """Warn if many of the held-out rows are also in training; None for rows that are not at hand."""
    if training is None or held_out is None:
        return
    repeated = repeated_rows(training, held_out)
    if repeated is not None and repeated >= _MANY_REPEATS * held_out.n_rows:
        say(
            "warning",
            f"{repeated:,} of {held_out.n_rows:,} test rows also occur in training, so the score says little about new "
            "rows. Remove repeats, or name their groups with --groups.",
        )


_MANY_REPEATS = 0.1  # share of held-out rows; fewer repeats hardly change a score
_TRAIN, _TEST = ("train", "training"), ("test", "testing")


def test_rows(source: Source, column: str) -> np.ndarray:
    """Return whether each row is a test row by the column of --split, as a bool array of shape (n_rows,).

    The values of the column are train and test, or true and false if its name contains one of these words, as
    is_train does. Raise DataError, naming the row, for any other value, and if all rows are in the same part.
    """
    try:
        values = source.column(column)
    except NoColumnError as error:
        if column not in MoleculeBlocks.splits:
            raise
        raise NoColumnError(
            f"{error} To split molecules by {column}, name the column of their SMILES with --smiles."
        ) from error
    name = column.rpartition("::")[2].lower()
    word = next((word for word in ("train", "test") if word in name), None)
    texts = np.char.lower(np.char.strip(texts_of(values)))
    if not is_text(values) and word is not None and np.isin(values, (0, 1)).all():
        is_test = (values == 1) == (word == "test")
    elif word is not None and np.isin(texts, ("true", "false")).all():  # the booleans of a CSV
        is_test = (texts == "true") == (word == "test")
    else:
        is_test = np.isin(texts, _TEST)
        unclear = np.flatnonzero(~is_test & ~np.isin(texts, _TRAIN))
        if unclear.size:
            row = source.places_in_file()[unclear[0]]
            raise DataError(
                f"{source.name}, row {row}: {values[unclear[0]]!s} in {column!r}; --split needs a column of train and "
                "test, or of true and false with one of these words in its name, such as is_train. Change the values, "
                "or remove the other rows."
            )
    if is_test.all() or not is_test.any():
        raise DataError(
            f"{source.name}: --split {column}: every row is {'test' if is_test.all() else 'train'}, but a split needs "
            "both. Name another column."
        )
    return np.asarray(is_test)


def _groups_of_split(source: Source, split: JSON) -> np.ndarray | None:
    if "split" in split:
        return structures_of(source, split["split"])
    return None if split.get("groups") is None else source.column(split["groups"])


def _divided(source: Source, split: JSON, groups: np.ndarray | None) -> tuple[PartSource, PartSource]:
    if "column" in split:
        return split_by(source, test_rows(source, split["column"]))
    if "time" in split:
        is_test = np.zeros(source.n_rows, dtype=bool)
        is_test[next(forward_splits(source, split["time"], 1, split["test_fraction"]).split(groups=groups))[1]] = True
        return split_by(source, is_test)
    if "split" in split and groups is not None:
        is_test = held_out_structures(groups, split["test_fraction"], split["seed"], source.name)
        return split_by(source, is_test)
    if "held_out" in split:
        return split_by(source, np.unpackbits(split["held_out"], count=source.n_rows).astype(bool))
    if groups is None:  # a file that was written before
        return split_by(source, drawn_for_test(0, source.n_rows, split["test_fraction"], split["seed"]))
    return split_source(source, split["test_fraction"], split["seed"], groups)


def choose_rows(model: Predictor, source: Source, all_rows: bool, table: TableOptions = AS_IT_IS) -> Chosen:
    """Choose the rows that the model has not seen, as far as its file and --split tell."""
    training = model.training or None
    if table.split is not None and not all_rows and not table.splits_by_structure(source.reading):
        seen, held_out = split_by(source, test_rows(source, table.split))
        which = f"the {held_out.n_rows:,} rows of {source.n_rows:,} that are test in {table.split}"
        if (
            training is None
            or (training["split"] or {}).get("column") != table.split
            or not same_rows(training["fingerprint"], source.fingerprint())
        ):
            return Chosen(held_out, which, None)
        return Chosen(held_out, which, None, seen)
    if training is None:
        which = f"all {source.n_rows:,} rows; the model does not say what it was trained on"
        return Chosen(source, which, None)
    if not same_rows(training["fingerprint"], source.fingerprint()) or training["rows_in_file"] != source.n_rows:
        which = f"all {source.n_rows:,} rows; the model was trained on {training['file']}"
        return Chosen(source, which, None)
    split: JSON | None = training["split"]
    if split is not None and not all_rows:
        groups = _groups_of_split(source, split)
        seen, held_out = _divided(source, split, groups)
        which = f"the {held_out.n_rows:,} rows of {source.n_rows:,} held out when the model was fitted"
        return Chosen(held_out, which, None, seen, None if groups is None else groups[held_out.places])
    warning = (
        f"the model was trained on {'most of ' if split else ''}these rows, so the score says "
        "little about new rows; "
        + ("leave --all-rows out." if split else "hold some out with chimap fit --test-fraction 0.2.")
    )
    which = "most of them seen in training" if split else "seen in training"
    return Chosen(source, f"all {source.n_rows:,} rows, {which}", warning)
