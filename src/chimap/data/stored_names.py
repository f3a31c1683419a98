"""Names of columns, ids of rows and labels that lie beside the rows in a file of several arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.data.ids import unique_ids
from chimap.data.label_kinds import texts_of
from chimap.data.labels import split_column
from chimap.data.table import ID_NAMES, LABEL_NAMES, only_label

COLUMN_NAMES = ("column_names", "feature_names", "columns", "vocabulary")


def names_beside(
    members: Sequence[str],
    read: Callable[[str], np.ndarray],
    shape: tuple[int, int],
    where: str,
    id: str | int | None,
    group: str = "",
) -> tuple[tuple[str, ...] | None, np.ndarray | None]:
    """Return the names of the columns and the ids of the rows, each None where there are none.

    Arrays of another length or with repeated names are skipped, except the array ``id``, for which they raise
    DataError.

    Parameters
    ----------
    members : sequence of str
        Names of the arrays.
    read : callable
        ``read(name)`` returns an array.
    shape : (int, int)
        Shape of the rows.
    where : str
        The file, for errors.
    id : str, int or None
        The array of ids that the caller named.
    group : str, default=""
        The group of the rows, with its slash.
    """
    columns = _first(members, COLUMN_NAMES, read, shape[1], group)
    if id is None:
        return None if columns is None else tuple(columns.tolist()), _first(
            members, ID_NAMES, read, shape[0], group
        )
    name = str(id).removeprefix("::")
    if name not in members:
        raise DataError(f"{where}: no array {name!r} of ids; it holds {', '.join(members)}.")
    ids = texts_of(np.asarray(read(name)))
    if ids.shape != shape[:1]:
        raise DataError(f"{where}::{name}: ids of shape {ids.shape} for {shape[0]} rows. Give one per row.")
    return None if columns is None else tuple(columns.tolist()), unique_ids(ids, f"{where}::{name}")


def label_beside(
    members: Sequence[str],
    shape_of: Callable[[str], tuple[int, ...]],
    n_rows: int,
    group: str,
    rows: str,
    where: str,
) -> tuple[str | None, tuple[str, ...]]:
    """Return the array of labels beside the rows, or None, and a note if it has several columns and none was chosen.

    Raises DataError if two arrays may hold them.
    """
    there = [name for name in (*LABEL_NAMES, "Y") if group + name in members and group + name != rows]
    usual = only_label(there, where)
    if usual is None:
        return None, ()
    name, shape = group + usual, shape_of(group + usual)
    if usual != "Y" or len(shape) == 1 or shape[1:] == (1,):
        return name, ()
    if shape[:1] != (n_rows,):
        return None, ()
    note = Message("{} holds {} columns of labels; take one with {labels=}.", name, shape[1], f"{name}[0]")
    return None, (note,)


def named_array(members: Sequence[str], name: str) -> tuple[str, int | None]:
    """Return the array, and the column of it, that ``NAME`` or ``NAME[2]`` means."""
    return (name, None) if name in members else split_column(name)


def _first(
    members: Sequence[str], names: Sequence[str], read: Callable[[str], np.ndarray], size: int, group: str
) -> np.ndarray | None:
    for name in (group + each for each in names):
        if name in members:
            values = texts_of(np.asarray(read(name)))
            if values.shape == (size,) and np.unique(values).size == size:
                return values
    return None
