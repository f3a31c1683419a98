"""Columns of data that hold labels: several of them, one a task, and those of text."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from chimap._frames import is_frame, names_of
from chimap._types import Columns
from chimap._validation import DataError
from chimap.data.labels import IGNORE_LABELS, Labels, task_column
from chimap.data.reading import Reading
from chimap.data.source import Source
from chimap.data.table import ColumnChoice, is_path, places_of
from chimap.data.views import WithLabels
from chimap.readers.arrow_files import IPC, PARQUET, find_parts, may_be_classes
from chimap.readers.batches import stream_columns
from chimap.readers.catalogue import READERS, has_columns
from chimap.readers.csv import CsvSource, TextTable
from chimap.readers.io.files import existing_file, is_address, uncompressed_name
from chimap.readers.mothur import is_shared
from chimap.readers.records import LINES, has_records, records_of
from chimap.readers.text_tables import is_transposed


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
    return labels if has_columns(data) and not os.path.exists(labels) else None


def with_tasks(
    read: Callable[[Labels, ColumnChoice], Source],
    data: object,
    words: Columns,
    choice: ColumnChoice,
    reading: Reading | None,
) -> Source:
    """Return the rows of a table with several of its columns as labels, one column a task.

    ``read(labels, choice)`` returns the source of the data, and ``words`` name the columns of labels, see
    ``task_words``. Raises DataError if the data have no named columns, or a word names none of them.
    """
    columns, are_bins, where = _candidates(read, data, choice, reading)
    names = [columns[i] for i in places_of(columns, words, where, "labels")]
    if len(names) == 1:
        return read(names[0], choice)

    def labelled_by(name: str) -> Source:
        others = tuple(other for other in names if other != name) if are_bins else ()
        return read(name, replace(choice, aside=(*choice.aside, *others)))

    # The labels are given by name. Otherwise a column called y or label would be taken for them instead of a bin.
    source = labelled_by(names[0])
    tasks = []
    for name in names:
        values = (source if name == names[0] else labelled_by(name)).labels()
        assert values is not None  # the labels are named
        tasks.append(task_column(values, f"{where}, column {name!r}"))
    return WithLabels(source, np.column_stack(tasks), tuple(names))


def _candidates(
    read: Callable[[Labels, ColumnChoice], Source], data: object, choice: ColumnChoice, reading: Reading | None
) -> tuple[Sequence[str], bool, str]:
    """Return the columns that labels may name, whether they would be bins otherwise, and the name of the data.

    They are read without any row where the kind of data allows it.
    """
    columns = [str(name) for name in names_of(data)] if is_frame(data) else stream_columns(data)
    if columns is not None:
        return columns, True, type(data).__name__
    address = os.fspath(data) if is_path(data) else ""
    if uncompressed_name(address).endswith(LINES) or (reading is not None and has_records(address)):
        return records_of(address).names, False, address
    if uncompressed_name(address).endswith(PARQUET + IPC):
        return records_of(address).names, True, address
    opened = read(IGNORE_LABELS, replace(choice, names=None, columns=None, exclude=None))
    if opened.metadata:
        return opened.metadata, False, opened.name
    if opened.column_names is None:
        raise DataError(
            f"{opened.name}: its columns have no names, so none of them can be named as labels. Give the labels as a "
            "matrix."
        )
    return opened.column_names, True, opened.name


def text_columns(path: str) -> list[str]:
    """Return the names of the text columns of a CSV, TSV, Parquet or Feather file, without a column of ids.

    The list is empty for other kinds of files, for tables of samples as columns, and for folders and addresses. Raises
    DataError for a file that cannot be read.
    """
    if is_address(path) or not os.path.isfile(path):
        return []
    if path.lower().endswith(READERS["text"].endings):
        table = TextTable(existing_file(path))
        is_upright = not is_shared(table) and not is_transposed(table, None, ColumnChoice())
        return CsvSource(path, table=table).text_columns() if is_upright else []
    if not path.lower().endswith(PARQUET + IPC):
        return []
    return [field.name for field in find_parts(path)[0].schema if may_be_classes(field.type)]
