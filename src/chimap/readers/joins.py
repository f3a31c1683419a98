"""Joins: labels and other columns of another table, matched to rows by their ids."""

from __future__ import annotations

import re

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.data.label_kinds import is_text, texts_of
from chimap.data.labels import Labels, task_column
from chimap.data.rows import check_distinct
from chimap.data.source import Source
from chimap.data.table import place_of, places_of, unique_ids
from chimap.data.views import ChosenRows
from chimap.readers.arrow import ArrowTable
from chimap.readers.arrow_files import IPC, PARQUET
from chimap.readers.io.files import base_name, existing_file, split_member, uncompressed_name
from chimap.readers.qiime import QiimeMetadata, artifact_metadata, is_qiime_metadata
from chimap.readers.records import Records, TableRecords, text_records
from chimap.readers.remedies import file_remedy, transposing
from chimap.readers.transposed import sample_of_reads


class NoSharedIdsError(DataError):
    """No row has an id that a table of labels has."""


_WHOLE_FLOAT = re.compile(r"-?[0-9]+\.0")


_JOINED_TEXT = (".csv", ".tsv", ".txt", ".tab", ".design", ".metadata")  # the last two are those of mothur


_ARROW_TABLES = PARQUET + IPC


def is_join(labels: Labels) -> bool:
    """Return whether labels name a column of a table in another file, such as ``meta.tsv::body_site``."""
    if not isinstance(labels, str):
        return False
    address, member = split_member(labels)
    name = uncompressed_name(base_name(address))
    return bool(member) and name.endswith((*_JOINED_TEXT, *_ARROW_TABLES, ".qza"))


def table_of(address: str) -> Records:
    """Return the records of a table whose columns are joined to rows by ids; ``.txt`` is text, ``.qza`` an artifact.

    Raises DataError for an Arrow table that is compressed as a whole.
    """
    file = existing_file(address)
    if uncompressed_name(file.name).endswith(_JOINED_TEXT):
        return QiimeMetadata(address) if is_qiime_metadata(file) else text_records(address)
    if file.suffix == ".qza":
        return artifact_metadata(address)
    if file.suffix not in _ARROW_TABLES:
        raise DataError(f"{address}: not read while it is compressed as a whole. Unpack it: {file_remedy(address)}.")
    return TableRecords(ArrowTable(address))


def joined(source: Source, labels: str, id: str | int | None = None, missing: object = None) -> Source:
    """Return the rows of a source whose id is in a table, with the labels from that table.

    ``labels`` is ``TABLE::COLUMN``, a column of a CSV, TSV, Parquet or Feather file, or of a ``.txt`` file as a TSV or
    CSV. Several columns, ``TABLE::a,b`` or ``TABLE::task_*``, are the labels of several tasks. The table uses the name
    ``id`` for its ids if it has it, else its first column; ``missing`` marks a missing label in text. Raises DataError
    if the source has no ids, an id comes twice, or no id is in both.
    """
    address, words = split_member(labels)
    tasks = joined_names(address, str(words))
    table_rows, values = _matches(source, address, tasks, id, missing)
    y = values[0]
    if len(tasks) > 1:
        places = (f"{address}, column {name!r}" for name in tasks)
        y = np.column_stack([*map(task_column, values, places)])
    rows = np.flatnonzero(table_rows >= 0)
    note = (
        f"{rows.size:,} of {source.n_rows:,} rows of {source.name} have a label in {address}; "
        f"{source.n_rows - rows.size:,} are left out, and {len(y) - rows.size:,} of its rows match none."
    )
    view = ChosenRows(source, rows, y[table_rows[rows]])
    view.notes = (*source.notes, note)
    view.task_names = tuple(tasks) if len(tasks) > 1 else None
    return view


def values_by_id(source: Source, column: str, id: str | int | None = None, missing: object = None) -> np.ma.MaskedArray:
    """Return the values (n_rows,) of ``TABLE::COLUMN`` for the rows of a source.

    They are masked where the id is unknown, and where text is ``missing``.
    """
    address, name = split_member(column)
    table_rows, (values,) = _matches(source, address, [str(name)], id, missing)
    joined = np.ma.MaskedArray(np.ma.getdata(values)[np.maximum(table_rows, 0)])
    joined.mask = (table_rows < 0) | np.ma.getmaskarray(values)[np.maximum(table_rows, 0)]
    return joined


def _matches(
    source: Source, address: str, columns: list[str], id: str | int | None, missing: object
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the table row with the id of each row of a source, -1 for none, and columns of the table."""
    if source.row_ids is None:
        _check_first_column(source)
        raise NoSharedIdsError(
            Message(
                "{}: its rows have no ids, so {} cannot be joined to them. Name the column of ids with {id}, or give "
                "the labels in the order of the rows, in a file that holds nothing else.",
                source.name,
                f"{address}::{','.join(columns)}",
            )
        )
    ids, values = _ids_and_columns(address, columns, id, missing)
    place = {name: i for i, name in enumerate(unique_ids(whole_ids(ids), address).tolist())}
    row_ids = unique_ids(whole_ids(source.row_ids), source.name)
    if not place.keys() >= {*row_ids.tolist()}:
        samples = {sample_of_reads(name): i for name, i in place.items()}
        place = samples | place if len(samples) == len(place) else place
    table_rows = np.array([place.get(name, -1) for name in row_ids.tolist()])
    if (table_rows < 0).all():
        on_side = place.keys() & {*(source.column_names or ())}
        if on_side:
            raise NoSharedIdsError(
                Message(
                    "{}: none of its {:,} ids is an id of the {:,} rows of {}, but {:,}, such as {!r}, are names of "
                    "its {:,} columns: its sides are swapped. {}.",
                    address,
                    ids.size,
                    source.n_rows,
                    source.name,
                    len(on_side),
                    min(on_side),
                    source.n_features,
                    transposing(source.name),
                )
            )
        raise NoSharedIdsError(
            Message(
                "{}: none of its {:,} ids, such as {!r}, is an id of {}, such as {!r}. Are these the columns of ids? "
                "Give them the same name, or name one with {id}.",
                address,
                ids.size,
                str(ids[0]),
                source.name,
                str(row_ids[0]),
            )
        )
    return table_rows, values


def whole_ids(ids: np.ndarray) -> np.ndarray:
    """Return ids as text, without the ".0" of a column of whole numbers that was written as floats.

    >>> whole_ids(np.array(["12.0", "7.0"])).tolist(), whole_ids(np.array(["0012", "1.0", "a"])).tolist()
    (['12', '7'], ['0012', '1.0', 'a'])
    """
    texts = texts_of(ids)
    are_floats = all(_WHOLE_FLOAT.fullmatch(text) for text in texts.tolist())
    return np.char.partition(texts, ".")[:, 0] if are_floats else texts


def _check_first_column(source: Source) -> None:
    """Refuse a first column of text that would name the rows, were its values not repeated."""
    if source.column_names and source.reading is None:
        first = source.column_names[0]
        values = source.column(first)
        if is_text(values):
            unique_ids(texts_of(values), f"{source.name}, column {first!r}")


def _ids_and_columns(
    address: str, columns: list[str], id: str | int | None, missing: object
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the ids of all rows of a table, as text, and some of its columns, as labels, all read in one pass."""
    table = table_of(address)
    names = [table.names[place_of(table.names, column, address, "labels")] for column in columns]
    others = [name for name in table.names[:2] if name != names[0]] if id not in table.names else [str(id)]
    if not others or others[0] in names:
        raise DataError(f"{address}: no column of ids besides {columns[0]!r}. Add one with the ids of the rows.")
    wanted, ids = [others[0], *names], []
    check_distinct([name for name in table.names if name in wanted], address)
    values = [table.label_column(name, missing) for name in names]
    for batch in table.batches(wanted):
        ids.append(table.ids(batch.column(wanted[0]), wanted[0]))
        for labels, name in zip(values, names, strict=True):
            table.add_labels(labels, batch.column(name), name)
    if not ids:
        raise DataError(f"{address}: no rows, only a heading. Write it again.")
    return table.checked_ids(ids, wanted[0]), [labels.finish() for labels in values]


def joined_names(address: str, words: str) -> list[str]:
    """Return the columns of a table that words mean: several by a glob or by commas between names, else one.

    Raises DataError if a word names no column.
    """
    if not any(mark in words for mark in "*?,"):
        return [words]
    names = table_of(address).names
    return [words] if words in names else [names[i] for i in places_of(names, words, address, "labels")]
