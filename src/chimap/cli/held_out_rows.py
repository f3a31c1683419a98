"""Choose the held-out rows: by columns of splits and groups, by a random fraction, or by what a model has seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from chimap._errors import InputError
from chimap._validation import DataError
from chimap.cli.declared import names
from chimap.cli.messages import in_flags, say
from chimap.cli.options import AS_IT_IS, TableOptions
from chimap.data import split_by, split_source
from chimap.data.doubts import doubts_of_groups, repeated_rows
from chimap.data.label_kinds import is_text, texts_of
from chimap.data.split import held_out_structures
from chimap.data.table import NoColumnError

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap._types import JSON, Parameters
    from chimap.data import Source
    from chimap.data.formats.fields import Reading
    from chimap.data.split import PartSource


class Chosen(NamedTuple):
    """The rows to evaluate on.

    ``which`` describes them in words, ``warning`` is a message to print or None, and ``training`` holds the rows of the
    same file that the model was trained on, or None.
    """

    source: Source
    which: str
    warning: str | None
    training: Source | None = None


def same_rows(one: Parameters, other: Parameters) -> bool:
    """Return whether two fingerprints belong to the same rows, even if the file has another name or other labels."""

    def key(fingerprint: JSON) -> list[object]:
        member = str(fingerprint.get("name")).partition("::")[2]
        return [member, *(fingerprint.get(k) for k in ("bytes", "shape", "dtype", "digest"))]

    return key(one) == key(other)


@dataclass(frozen=True)
class Parts:
    """The training rows and the held-out rows of a file.

    Parameters
    ----------
    training : Source
        Rows to learn from.
    held_out : Source or None
        Held-out rows, or None if there are none.
    groups : ndarray of shape (training rows,) or None
        Groups of the training rows.
    is_held_out : ndarray of shape (n_rows,), dtype bool
        Whether each row of the file is held out.
    about : dict or None
        How the split was made, as plain values for ``parts_again``; None without a split.
    """

    training: Source
    held_out: Source | None
    groups: np.ndarray | None
    is_held_out: np.ndarray
    about: JSON | None

    @classmethod
    def of(cls, source: Source, test_fraction: float, seed: int, table: TableOptions = AS_IT_IS) -> Parts:
        """Split the rows by --split, or by --test-fraction and --groups.

        Raise ValueError if both flags are given, and DataError if the columns do not allow a split.
        """
        by_structure = table.splits_by_structure(source.reading)
        groups = groups_of(source, table)
        if table.split is not None and test_fraction and not by_structure:
            raise InputError("--split names the held-out rows, but --test-fraction draws them: leave one of them out.")
        about: JSON | None = None
        if table.split is not None and not by_structure:
            about = {"column": table.split}
        elif test_fraction:
            about = {"test_fraction": test_fraction, "seed": seed}
            about |= {} if groups is None else {"split" if by_structure else "groups": table.split or table.groups}
        is_held_out = np.zeros(source.n_rows, dtype=bool)
        if about is None:
            return cls(source, None, groups, is_held_out, None)
        training, held_out = _divided(source, about, groups)
        is_held_out[held_out.places] = True
        return cls(training, held_out, None if groups is None else groups[~is_held_out], is_held_out, about)


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


STRUCTURES = names("structures")  # values of --split that group rows by what they are
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
        if column not in STRUCTURES:
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


def parts_again(source: Source, split: JSON) -> tuple[PartSource, PartSource]:
    """Return the training and held-out rows of a model, from the description of the split in its file."""
    groups = None if split.get("groups") is None else source.column(split["groups"])
    return _divided(source, split, structures_of(source, split["split"]) if "split" in split else groups)


def _divided(source: Source, split: JSON, groups: np.ndarray | None) -> tuple[PartSource, PartSource]:
    if "column" in split:
        return split_by(source, test_rows(source, split["column"]))
    if "split" in split and groups is not None:
        is_test = held_out_structures(groups, split["test_fraction"], split["seed"], source.name)
        return split_by(source, is_test)
    return split_source(source, split["test_fraction"], split["seed"], groups)


def _was_split_by(training: JSON | None, column: str, source: Source) -> bool:
    """Return whether a model was fitted on the training rows of this file, split by this column."""
    if training is None or (training["split"] or {}).get("column") != column:
        return False
    return same_rows(training["fingerprint"], source.fingerprint())


def choose_rows(model: BaseEstimator, source: Source, all_rows: bool, table: TableOptions = AS_IT_IS) -> Chosen:
    """Choose the rows that the model has not seen, as far as its file and --split tell."""
    training = getattr(model, "training_", None)
    if table.split is not None and not all_rows and not table.splits_by_structure(source.reading):
        seen, held_out = split_by(source, test_rows(source, table.split))
        which = f"the {held_out.n_rows:,} rows of {source.n_rows:,} that are test in {table.split}"
        return Chosen(held_out, which, None, seen if _was_split_by(training, table.split, source) else None)
    if training is None:
        which = f"all {source.n_rows:,} rows; the model does not say what it was trained on"
        return Chosen(source, which, None)
    if not same_rows(training["fingerprint"], source.fingerprint()):
        which = f"all {source.n_rows:,} rows; the model was trained on {training['file']}"
        return Chosen(source, which, None)
    split: JSON | None = training["split"]
    if split is not None and not all_rows:
        seen, held_out = parts_again(source, split)
        which = f"the {held_out.n_rows:,} rows of {source.n_rows:,} held out when the model was fitted"
        return Chosen(held_out, which, None, seen)
    warning = (
        f"the model was trained on {'most of ' if split else ''}these rows, so the score says "
        "little about new rows; "
        + ("leave --all-rows out." if split else "hold some out with chimap fit --test-fraction 0.2.")
    )
    which = "most of them seen in training" if split else "seen in training"
    return Chosen(source, f"all {source.n_rows:,} rows, {which}", warning)
