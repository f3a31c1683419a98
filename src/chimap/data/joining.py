"""Labels from a column of another table, joined to the rows by id."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.data.formats.arrow_parts import IPC, PARQUET
from chimap.data.formats.records import ArrowRecords
from chimap.data.ids import checked_ids, unique_ids
from chimap.data.io.compressed import uncompressed_name
from chimap.data.io.files import base_name, existing_file, split_member
from chimap.data.label_kinds import is_text, texts_of
from chimap.data.label_text import TextLabels
from chimap.data.labels import Labels, clean_labels
from chimap.data.remedies import file_remedy
from chimap.data.rows import check_distinct
from chimap.data.source import Source
from chimap.data.table import place_of
from chimap.data.table_headings import heading_of, joined_names, opened_text
from chimap.data.targets import task_column
from chimap.data.views import ChosenRows

_TEXT_TABLES, _ARROW_TABLES = (".csv", ".tsv", ".txt"), PARQUET + IPC


def is_join(labels: Labels) -> bool:
    """Return whether labels name a column of a table in another file, such as ``meta.tsv::body_site``."""
    if not isinstance(labels, str):
        return False
    address, member = split_member(labels)
    name = uncompressed_name(base_name(address))
    return bool(member) and name.endswith(_TEXT_TABLES + _ARROW_TABLES)


def joined(source: Source, labels: str, id: str | int | None = None, missing: object = None) -> Source:
    """Return the rows of a source whose id is in a table, with the labels from that table.

    Parameters
    ----------
    source : Source
        The rows, with ids.
    labels : str
        ``TABLE::COLUMN``, a column of a CSV, TSV, Parquet or Feather file, or of a ``.txt`` file as a TSV or CSV.
        Several columns, ``TABLE::a,b`` or ``TABLE::task_*``, are the labels of several tasks.
    id : str or int, default=None
        Name of the column of ids. The table uses the same name if it has it, else its first column.
    missing : object, default=None
        A text that marks a missing label in a CSV or TSV table.

    Raises
    ------
    DataError
        If the source has no ids, an id comes twice, or no id is in both.
    """
    address, words = split_member(labels)
    tasks = joined_names(address, str(words))
    matches = [_matches(source, f"{address}::{name}", id, missing) for name in tasks]
    table_rows, y = matches[0]
    if len(tasks) > 1:
        columns = [
            task_column(y, f"{address}, column {name!r}") for name, (_, y) in zip(tasks, matches, strict=True)
        ]
        y = np.column_stack(columns)
    rows = np.flatnonzero(table_rows >= 0)
    note = (
        f"{rows.size:,} of {source.n_rows:,} rows of {source.name} have a label in {address}; "
        f"{source.n_rows - rows.size:,} are left out, and {len(y) - rows.size:,} of its rows match none."
    )
    view = ChosenRows(source, rows, y[table_rows[rows]])
    view.notes = (*source.notes, note)
    view.task_names = tuple(tasks) if len(tasks) > 1 else None
    return view


def values_by_id(source: Source, column: str, id: str | int | None = None) -> np.ma.MaskedArray:
    """Return the values (n_rows,) of ``TABLE::COLUMN`` for the rows of a source, masked where the id is unknown."""
    table_rows, values = _matches(source, column, id, None)
    joined = np.ma.MaskedArray(np.ma.getdata(values)[np.maximum(table_rows, 0)])
    joined.mask = (table_rows < 0) | np.ma.getmaskarray(values)[np.maximum(table_rows, 0)]
    return joined


def _matches(
    source: Source, labels: str, id: str | int | None, missing: object
) -> tuple[np.ndarray, np.ndarray]:
    """Return the table row with the id of each row of a source, -1 for none, and the values of the table."""
    address, column = split_member(labels)
    if source.row_ids is None:
        _check_first_column(source)
        raise DataError(
            Message(
                "{}: its rows have no ids, so {} cannot be joined to them. Name the column of ids with {id}, or give "
                "the labels in the order of the rows, in a file that holds nothing else.",
                source.name, labels,
            )
        )  # fmt: skip
    ids, y = _id_and_label(address, str(column), id, missing)
    place = {name: i for i, name in enumerate(unique_ids(texts_of(ids), address).tolist())}
    row_ids = unique_ids(texts_of(source.row_ids), source.name)
    table_rows = np.array([place.get(name, -1) for name in row_ids.tolist()])
    if (table_rows < 0).all():
        raise DataError(
            Message(
                "{}: none of its {:,} ids, such as {!r}, is an id of {}, such as {!r}. Are these the columns of ids? "
                "Give them the same name, or name one with {id}.",
                address, ids.size, str(ids[0]), source.name, str(row_ids[0]),
            )
        )  # fmt: skip
    return table_rows, y


def _check_first_column(source: Source) -> None:
    """Refuse a first column of text that would name the rows, were its values not repeated."""
    if source.column_names and source.reading is None:
        first = source.column_names[0]
        values = source.column(first)
        if is_text(values):
            unique_ids(texts_of(values), f"{source.name}, column {first!r}")


def _id_and_label(
    address: str, column: str, id: str | int | None, missing: object
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids, as text, and the labels of all rows of a table."""
    file = existing_file(address)
    if uncompressed_name(file.name).endswith(_TEXT_TABLES):
        return _from_text(address, column, id, missing)
    if file.suffix not in _ARROW_TABLES:
        raise DataError(
            f"{address}: not read while it is compressed as a whole. Unpack it: {file_remedy(address)}."
        )
    records = ArrowRecords(address)
    places = _places(records.columns, column, id, address)
    names = [records.columns[place] for place in places]
    check_distinct([name for name in records.columns if name in names], address)
    rows = [row for batch in records.batches(names) for row in batch]
    ids = checked_ids(np.array([row[0] for row in rows], dtype=object), f"{address}, column {names[0]!r}")
    labels = np.array([row[1] for row in rows], dtype=object)
    return ids, clean_labels(labels, ids.size, f"{address}::{column}")


def _from_text(
    address: str, column: str, id: str | int | None, missing: object
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids and the labels of a CSV or TSV table, as ``_id_and_label``."""
    with opened_text(address) as text:
        names, delimiter = heading_of(text, existing_file(address).name)
        id_place, label_place = _places(names, column, id, address)
        y, ids = TextLabels(f"{address}::{column}", missing), []
        for batch in _batches(csv.reader(text, delimiter=delimiter), len(names), address):
            ids += [record[id_place].strip() for record in batch]
            y.add([record[label_place] for record in batch])
    if not ids:
        raise DataError(f"{address}: no rows, only a heading. Write it again.")
    return np.array(ids), y.finish()


def _batches(records: Iterable[list[str]], width: int, address: str) -> Iterator[list[list[str]]]:
    """Yield up to 4096 non-empty records at a time; refuse a record that is not ``width`` fields long."""
    batch: list[list[str]] = []
    for number, record in enumerate(records, 2):
        if not record:
            continue
        if len(record) != width:
            raise DataError(
                f"{address}, line {number}: {len(record)} fields, expected {width} as in the first line."
            )
        batch.append(record)
        if len(batch) == 4096:
            yield batch
            batch = []
    if batch:
        yield batch


def _places(names: list[str], column: str, id: str | int | None, address: str) -> tuple[int, int]:
    """Return the positions of the column of ids and of the column of labels."""
    label_place = place_of(names, column, address, "labels")
    id_place = names.index(id) if isinstance(id, str) and id in names else int(label_place == 0)
    if id_place >= len(names) or id_place == label_place:
        raise DataError(f"{address}: no column of ids beside {column!r}. Add one with the ids of the rows.")
    return id_place, label_place
