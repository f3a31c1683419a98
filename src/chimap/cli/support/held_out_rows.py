"""Which rows are held out: the parts and groups that the columns of a file say, and the rows that a model has seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from chimap.cli.support.table import AS_IT_IS, Table

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from chimap._types import JSON, Parameters
    from chimap.data import Source
    from chimap.data.split import PartSource


class Chosen(NamedTuple):
    """Rows to evaluate, which these are in words, what to warn of, and the rows of the file that were trained on."""

    source: Source
    which: str
    warning: str | None
    training: Source | None = None


def same_rows(one: Parameters, other: Parameters) -> bool:
    """Whether two fingerprints are of the same rows, be the file renamed and labelled otherwise."""

    def key(fingerprint: JSON) -> list[object]:
        member = str(fingerprint.get("name")).partition("::")[2]
        return [member, *(fingerprint.get(k) for k in ("bytes", "shape", "dtype", "digest"))]

    return key(one) == key(other)


@dataclass(frozen=True)
class Parts:
    """The rows of a file that a model learns from, and those held out.

    groups: of the rows to learn from, or None. held_out: None where none are. is_held_out (n_rows,): of all rows.
    about: how the split was made, in plain values, for ``parts_again``; None without one.
    """

    training: Source
    held_out: Source | None
    groups: np.ndarray | None
    is_held_out: np.ndarray
    about: JSON | None

    @classmethod
    def of(cls, source: Source, test_fraction: float, seed: int, table: Table = AS_IT_IS) -> Parts:
        """Those that --split, or --test-fraction and --groups, ask for. Raises DataError for columns that cannot."""
        import numpy as np

        if table.split is not None and test_fraction:
            raise ValueError(
                "--split says which rows are held out, and --test-fraction draws them: leave one out."
            )
        groups = groups_of(source, table)
        about: JSON | None = None
        if table.split is not None:
            about = {"column": table.split}
        elif test_fraction:
            about = {"test_fraction": test_fraction, "seed": seed} | (
                {} if groups is None else {"groups": table.groups}
            )
        is_held_out = np.zeros(source.n_rows, dtype=bool)
        if about is None:
            return cls(source, None, groups, is_held_out, None)
        training, held_out = parts_again(source, about)
        is_held_out[held_out.places] = True
        return cls(training, held_out, None if groups is None else groups[~is_held_out], is_held_out, about)


def groups_of(source: Source, table: Table) -> np.ndarray | None:
    """The groups (n_rows,) that --groups names, or None. Raises DataError where all rows are of one."""
    import numpy as np

    from chimap._validation import DataError

    if table.groups is None:
        return None
    groups = source.column(table.groups)
    if np.unique(groups).size < 2:
        raise DataError(
            f"{source.name}: --groups {table.groups}: all rows are of one group, {groups[0]!s}, and none can be held "
            "out. Name another column, or leave --groups out."
        )
    return groups


def warn_of_groups(source: Source, table: Table) -> None:
    """Say where a column that was set aside looks like a group and none was named."""
    from chimap.cli.support.errors import say
    from chimap.data.group_columns import group_column

    name = None if table.groups is not None else group_column(source)
    if name is not None:
        say(
            "warning",
            f"column {name!r} looks like a group: rows that share its value are nearly equal. Name it with --groups "
            f"{name}, or scores will flatter.",
        )


_TRAIN, _TEST = ("train", "training"), ("test", "testing")


def test_rows(source: Source, column: str) -> np.ndarray:
    """Whether the column that --split names says test, (n_rows,) bool.

    Its values are train and test; or, in a column with one of these words in its name, such as is_train, true and
    false. Raises DataError naming the first row of another value, and where no row is of either part.
    """
    import numpy as np

    from chimap._validation import DataError

    values = source.column(column)
    name = column.rpartition("::")[2].lower()
    word = next((word for word in ("train", "test") if word in name), None)
    words = np.char.lower(np.char.strip(values.astype(str)))
    if values.dtype.kind in "bif" and word is not None and np.isin(values, (0, 1)).all():
        is_test = (values == 1) == (word == "test")
    elif word is not None and np.isin(words, ("true", "false")).all():  # as a CSV says it
        is_test = (words == "true") == (word == "test")
    else:
        is_test = np.isin(words, _TEST)
        other = np.flatnonzero(~is_test & ~np.isin(words, _TRAIN))
        if other.size:
            row = source.places_in_file()[other[0]]
            raise DataError(
                f"{source.name}, row {row}: {values[other[0]]!s} in {column!r}; --split takes columns that say train "
                "or test, or true and false under a name with one of these words, such as is_train. Write these, or "
                "leave the other rows out."
            )
    if is_test.all() or not is_test.any():
        raise DataError(
            f"{source.name}: --split {column}: every row is {'test' if is_test.all() else 'train'}, and a split needs "
            "both. Name another column."
        )
    return np.asarray(is_test)


def parts_again(source: Source, split: JSON) -> tuple[PartSource, PartSource]:
    """The parts of the rows that a model was fitted on, from what its file says of the split."""
    from chimap.data import split_by, split_source

    if "column" in split:
        return split_by(source, test_rows(source, split["column"]))
    groups = None if split.get("groups") is None else source.column(split["groups"])
    return split_source(source, split["test_fraction"], split["seed"], groups)


def _was_split_by(training: JSON | None, column: str, source: Source) -> bool:
    """Whether a model was fitted on the training part of this file by this column."""
    if training is None or (training["split"] or {}).get("column") != column:
        return False
    return same_rows(training["fingerprint"], source.fingerprint())


def choose_rows(model: BaseEstimator, source: Source, all_rows: bool, table: Table = AS_IT_IS) -> Chosen:
    """The rows that the model has not seen, as far as its file and --split tell."""
    training = getattr(model, "training_", None)
    if table.split is not None and not all_rows:
        from chimap.data import split_by

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
        f"{'most of ' if split else ''}these rows are those that the model was trained on, so the score says "
        "little about new ones; "
        + ("leave --all-rows out." if split else "hold some out: chimap fit --test-fraction 0.2.")
    )
    which = "most of them seen in training" if split else "seen in training"
    return Chosen(source, f"all {source.n_rows:,} rows, {which}", warning)
