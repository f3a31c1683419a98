"""Several columns of a table as labels of several tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chimap._frames import is_frame, names_of
from chimap._types import Columns
from chimap._validation import DataError
from chimap.data.formats.arrow_parts import IPC, PARQUET
from chimap.data.formats.fields import Reading
from chimap.data.formats.records import LINES, has_records, records_of
from chimap.data.formats.streams import stream_columns
from chimap.data.io.compressed import uncompressed_name
from chimap.data.labels import UNREAD, Labels
from chimap.data.layouts import opener_of
from chimap.data.source import Source
from chimap.data.table import ColumnChoice, is_path, places_of
from chimap.data.targets import task_column
from chimap.data.views import Labelled


def task_words(data: object, labels: object) -> str | list[str] | None:
    """Return the names or the glob by which ``labels`` means several columns of a table, or None for any other labels.

    Several columns are a glob, or names with commas between them; in a data frame also a list of names.

    >>> task_words("rows.csv", "task_*"), task_words("rows.csv", "species"), task_words("rows.csv", "b.csv::c")
    ('task_*', None, None)
    """
    if is_frame(data) and isinstance(labels, list | tuple) and labels:
        names = {str(name) for name in names_of(data)}
        return list(labels) if all(isinstance(word, str) and word in names for word in labels) else None
    if not isinstance(labels, str) or "::" in labels or not any(mark in labels for mark in "*?,"):
        return None
    has_columns = is_path(data) or is_frame(data) or opener_of(data) is not None
    return labels if has_columns and not os.path.exists(labels) else None


@dataclass(frozen=True)
class _Candidates:
    """The columns that labels may name, and whether they would be bins otherwise."""

    names: Sequence[str]
    are_bins: bool
    where: str


def with_tasks(
    read: Callable[[Labels, ColumnChoice], Source],
    data: object,
    words: Columns,
    choice: ColumnChoice,
    reading: Reading | None,
) -> Source:
    """Return the rows of a table with several of its columns as labels, one column a task.

    Parameters
    ----------
    read : callable
        ``read(labels, choice)`` returns the source of the data.
    data : object
        The data that ``read`` opens.
    words : str or list of str
        The columns of labels, see ``task_words``.
    choice : ColumnChoice
        Which columns are bins and ids.
    reading : Reading or None
        How rows are made from one field.

    Raises
    ------
    DataError
        If the data have no named columns, or a word names none of them.
    """
    found = _candidates(read, data, choice, reading)
    names = [found.names[i] for i in places_of(found.names, words, found.where, "labels")]
    if len(names) == 1:
        return read(names[0], choice)

    def labelled_by(name: str) -> Source:
        others = tuple(other for other in names if other != name) if found.are_bins else ()
        return read(name, replace(choice, aside=(*choice.aside, *others)))

    # The labels are given by name. Otherwise a column called y or label would be taken for them instead of a bin.
    source = labelled_by(names[0])
    columns = []
    for name in names:
        values = (source if name == names[0] else labelled_by(name)).labels()
        assert values is not None  # the labels are named
        columns.append(task_column(values, f"{found.where}, column {name!r}"))
    return Labelled(source, np.column_stack(columns), tuple(names))


def _candidates(
    read: Callable[[Labels, ColumnChoice], Source],
    data: object,
    choice: ColumnChoice,
    reading: Reading | None,
) -> _Candidates:
    """Return the columns that labels may name. They are read without any row where the kind of data allows it."""
    columns = [str(name) for name in names_of(data)] if is_frame(data) else stream_columns(data)
    if columns is not None:
        return _Candidates(columns, True, type(data).__name__)
    address = os.fspath(data) if isinstance(data, str | os.PathLike) else ""
    if uncompressed_name(address).endswith(LINES) or (reading is not None and has_records(address)):
        return _Candidates(records_of(address).columns, False, address)
    if uncompressed_name(address).endswith(PARQUET + IPC):
        return _Candidates(records_of(address).columns, True, address)
    opened = read(UNREAD, replace(choice, names=None, columns=None, exclude=None))
    if opened.metadata:
        return _Candidates(opened.metadata, False, opened.name)
    if opened.column_names is None:
        raise DataError(
            f"{opened.name}: its columns have no names, so none of them can be named as labels. Give the labels as a "
            "matrix."
        )
    return _Candidates(opened.column_names, True, opened.name)
