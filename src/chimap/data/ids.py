"""Ids of rows: columns that name the rows, and columns that only count them."""

from __future__ import annotations

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.data.label_kinds import texts_of
from chimap.data.labels import is_missing

_LEAST_COUNTED = 3  # number of rows from which a counting column is no coincidence


def naming_note(name: str, where: str) -> str:
    """Return the note on a first column of text that was taken for ids by default."""
    return f"{where}: the first column, {name!r}, is text without repeats and names the rows."


def index_notes(name: str, ids: np.ndarray, where: str) -> tuple[str, ...]:
    """Return the note on a column that was taken for the index of a data frame, but does not name the rows."""
    if name.strip() or np.unique(ids).size == ids.size:
        return ()
    reason = "has no name and is set aside as the index of a data frame, although its values repeat"
    return (f"{where}: the first column {reason}. If it is a bin, give it a name in the first line.",)


def check_not_counting(name: str, n_rows: int, where: str) -> None:
    """Refuse a first column that counts the rows from 0 or 1, unless there are few rows: it holds only their order."""
    if n_rows >= _LEAST_COUNTED:
        raise DataError(
            Message(
                "{}: the first column, {!r}, counts the rows, as the index of a table does. If it names the rows, "
                "use {id=}; to drop it, {exclude=}; if it is a bin, name all bins with {columns}.",
                where, name, name, name,
            )
        )  # fmt: skip


def counts(values: np.ndarray, start: int = 0) -> bool:
    """Return whether the values of the rows from ``start`` on count the rows, from 0 or from 1.

    >>> counts(np.array([1, 2, 3])), counts(np.array([5, 6]), start=5), counts(np.array([0, 2]))
    (True, True, False)
    """
    expected = np.arange(start, start + values.size)
    return any(np.array_equal(values, expected + shift) for shift in (0, 1))


def checked_ids(values: np.ndarray, where: str) -> np.ndarray:
    """Return the ids of rows, of shape (n,), as text. Raises DataError, naming the row, where one is missing."""
    missing = np.flatnonzero([is_missing(value) for value in values.tolist()])
    if missing.size:
        raise DataError(
            f"{where}, row {missing[0]}: no id. Each row needs one; fill it, or name another column."
        )
    return texts_of(values)


def unique_ids(ids: np.ndarray, where: str) -> np.ndarray:
    """Return the ids of rows, of shape (n,), if all differ; else raise DataError."""
    order = np.argsort(ids, kind="stable")
    repeats = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if repeats.size:
        first, second = sorted(order[repeats[0] : repeats[0] + 2].tolist())
        raise DataError(
            Message(
                "{}: the id {} comes twice, in rows {} and {}. Each id must name a single row: name another column, "
                "or remove one of the rows. For a column of groups of rows, use {groups}.",
                where, ids[first], first, second,
            )
        )  # fmt: skip
    return ids


def check_order(ids: np.ndarray, values: object, name: str, call: str, argument: str = "y") -> None:
    """Refuse labels, or other values of the rows, whose index holds the ids of the rows in another order.

    ``name`` stands for the rows in the message, ``call`` for the ids as an expression of the user, ``argument`` for
    the values. Values without an index, and with an index of other entries, are in the order of the rows.
    """
    index = getattr(values, "index", None)
    if index is None or callable(index) or len(index) != len(ids):
        return
    distinct = set(ids.tolist())
    if len(distinct) < len(ids) or distinct != set(index):
        return
    pairs = zip(ids, index, strict=True)
    row = next((i for i, (a, b) in enumerate(pairs) if a is not b and a != b), None)
    if row is not None:
        whose, where = ("its labels", "the labels") if argument == "y" else (argument, argument)
        raise DataError(
            f"{name} and {whose} have the same index in another order: row {row} is '{ids[row]}' in the rows and "
            f"'{index[row]}' in {where}. Align them, {argument}.loc[{call}], or drop the index, "
            f"{argument}.to_numpy()."
        )
