"""Ids of rows: columns that name the rows, and columns that only count them."""

from __future__ import annotations

import numpy as np

from chimap._validation import DataError

_LEAST_COUNTED = 3  # rows from which a column that counts is no accident


def naming_note(name: str, where: str) -> str:
    """What to tell of a first column of text that was taken for ids without being named."""
    return f"{where}: the first column, {name!r}, is text without repeats and names the rows."


def index_notes(name: str, ids: np.ndarray, where: str) -> tuple[str, ...]:
    """What to tell of a column that was taken for the index of a data frame: nothing if it names the rows."""
    if name.strip() or np.unique(ids).size == ids.size:
        return ()
    said = "has no name and is set aside as the index of a data frame, though its values repeat"
    return (f"{where}: the first column {said}. If it is a bin, give it a name in the first line.",)


def check_not_counting(name: str, n_rows: int, where: str) -> None:
    """Refuse a first column of so many rows that counts them from 0 or 1: it tells their order and no more."""
    if n_rows >= _LEAST_COUNTED:
        raise DataError(
            f"{where}: the first column, {name!r}, counts the rows, as the index of a table does. If it names the "
            "rows, "
            f"say --id {name} (id= in Python); to drop it, --exclude {name} (exclude=); if it is a bin, name all bins "
            "with --columns (columns=)."
        )


def counts(values: np.ndarray, start: int = 0) -> bool:
    """Whether the values of rows from ``start`` on count them, from 0 or from 1.

    >>> counts(np.array([1, 2, 3])), counts(np.array([5, 6]), start=5), counts(np.array([0, 2]))
    (True, True, False)
    """
    expected = np.arange(start, start + values.size)
    return any(np.array_equal(values, expected + shift) for shift in (0, 1))


def unique_ids(ids: np.ndarray, where: str) -> np.ndarray:
    """Ids of rows, (n,). DataError where two are the same."""
    order = np.argsort(ids, kind="stable")
    same = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if same.size:
        one, other = sorted(order[same[0] : same[0] + 2].tolist())
        raise DataError(
            f"{where}: the id {ids[one]!s} comes twice, in rows {one} and {other}. Ids name a single row each; name "
            "another column, or remove one of the rows. A column that says which rows belong together is for --groups."
        )
    return ids
