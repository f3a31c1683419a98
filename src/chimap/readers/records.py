"""Tables whose fields are text, molecules or counts by name rather than bins, read record by record."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from chimap._frames import is_frame
from chimap._messages import Message
from chimap._types import JSON
from chimap._validation import DataError
from chimap.data.frames import checked_names_of, column_of, naming_index
from chimap.data.label_kinds import is_missing, why_text
from chimap.data.labels import LabelColumn
from chimap.data.source import Stored
from chimap.readers.arrow import ArrowTable
from chimap.readers.arrow_files import IPC, PARQUET
from chimap.readers.batches import Tables, tables_of
from chimap.readers.columns import BATCH, DataTable, Undecoded, Values, text_or_undecoded
from chimap.readers.csv import TextTable
from chimap.readers.io.encodings import REMEDY, as_utf8, encoding_in, encoding_of
from chimap.readers.io.files import (
    COMPRESSIONS,
    StoredFiles,
    decompressed,
    existing_file,
    files_under,
    is_folder,
    read_piece,
    split_member,
    uncompressed_name,
)

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


def _object_of(line: bytes, where: str) -> JSON:
    """Return the object that a line holds; bytes that are not text in UTF-8 come as lone surrogates.

    Raises DataError for a line that is not a JSON object, and for a key that comes twice.
    """
    try:
        # JSON finds out about UTF-16, which has zeros near its beginning, itself.
        text = line if 0 in line[:4] else line.decode("utf-8-sig", "surrogateescape")
        record = json.loads(text, object_pairs_hook=unique_keys)
    except KeyError as error:
        raise DataError(
            f"{where}: the key {error} comes twice in one object. Add the two values up, or rename one of them."
        ) from error
    except ValueError as error:
        raise DataError(
            f"{where}: not JSON ({error}). The file is cut off or damaged; give one object per line."
        ) from error
    if not isinstance(record, dict):
        raise DataError(
            f"{where}: {type(record).__name__}, expected an object such as "
            '{"id": "a", "counts": {"word": 2}, "label": "b"}.'
        )
    return record


def unique_keys(pairs: list[tuple[str, object]]) -> JSON:
    """Return the object of these pairs; raise KeyError for a repeated key, of which Python would keep the last."""
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        raise KeyError(next(key for key in keys if keys.count(key) > 1))
    return record


_TEXT_TABLES, _ARROW_TABLES = (".csv", ".tsv"), PARQUET + IPC
LINES = (".jsonl", ".ndjson")


def content_as_text(content: bytes) -> str | Undecoded:
    """Return bytes as text, in UTF-8 unless ``encodings`` know better.

    >>> content_as_text(b"a"), content_as_text("caf\u00e9".encode("cp1252")).reason
    ('a', "not text in UTF-8: byte 0xe9 in position 3, as in cp1252, where it is 'é'")
    """
    encoding = encoding_in(content)
    if encoding is None and 0 in content:
        return Undecoded(f"no text: byte {content.index(0)} is 0, as in files that are not text")
    try:
        return content.decode(encoding or "utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        return Undecoded.at(content[error.start], error.start) if encoding is None else Undecoded(str(error))


def refuse_undecoded(values: Iterable[Any], where: str, first: int = 0) -> None:
    """Refuse the values of a column, ``where``, of which one is not text; ``first`` is the number of their record."""
    for record, value in enumerate(values, first):
        if isinstance(value, Undecoded):
            raise DataError(Message("{}, record {}: {}. {}", where, record, value.reason, REMEDY))


def why_no_text(field: object) -> str:
    """Return the reason why a field is no text, for messages."""
    if isinstance(field, Undecoded):
        return field.reason
    return "no text" if is_missing(field) else f"it is {field!r}, expected text"


class Records(DataTable):
    """Records of named fields, which may be any objects; where a record lacks one, it is None."""

    @abstractmethod
    def batches(self, columns: list[str], n_rows: int = BATCH) -> Iterator[Values]:
        """Yield some fields of all records in order."""

    def add_labels(self, labels: LabelColumn, column: list[Any], name: str) -> None:
        """Add the values of a field in the next batch to its labels."""
        refuse_undecoded(column, self.where(name), labels.n_rows)
        labels.add(as_objects(column))

    def ids(self, column: list[Any], name: str) -> np.ndarray:
        """Return the values of a field of ids."""
        return as_objects([value.strip() if isinstance(value, str) else value for value in column])

    def checked_ids(self, parts: list[np.ndarray], name: str) -> np.ndarray:
        """Return the ids of all batches as text; refuse those that are not text, besides."""
        refuse_undecoded(np.concatenate(parts).tolist(), self.where(name))
        return super().checked_ids(parts, name)

    def may_be_ids(self, column: list[Any], name: str, *, is_text: bool | None) -> np.ndarray:
        """Return the values of a first field: text, which numbers as a text table has them are not."""
        texts = [value for value in column if isinstance(value, str) and value.strip()]
        may_be_names = len(texts) == len(column) and (self.has_types or is_text or why_text(texts) is not None)
        return as_objects(column) if may_be_names else np.full(len(column), np.nan)


def as_objects(values: Sequence[object]) -> np.ndarray:
    """Return values as an array of objects, of shape (n,)."""
    return np.fromiter(values, dtype=object, count=len(values))


class TableRecords(Records):
    """The records of a table."""

    def __init__(self, table: DataTable) -> None:
        self.address, self.names, self.stored = table.address, table.names, table.stored
        self.has_types, self._table = table.has_types, table

    def batches(self, columns: list[str], n_rows: int = BATCH) -> Iterator[Values]:
        """Yield fields as ``Records`` does."""
        return self._table.values(columns)


def text_records(address: str) -> TableRecords:
    """Return the records of a CSV or TSV table with a heading; quoted fields may have line breaks."""
    return TableRecords(TextTable(existing_file(address), header=True))


class JsonRecords(Records):
    """A JSON object per line; ``columns`` are the keys of all of them, which the file is read for."""

    def __init__(self, address: str) -> None:
        self._file = self.stored = existing_file(address)
        self.address, self._encoding = self._file.address, encoding_of(self._file)
        keys: dict[str, None] = {}
        for record in self._objects():
            keys.update(dict.fromkeys(record))
        self.names = list(keys)
        if not keys:
            raise DataError(
                f"{address}: no records, only blank lines or objects without a key. Write one JSON object per line."
            )

    def batches(self, columns: list[str], n_rows: int = BATCH) -> Iterator[Values]:
        """Yield fields as ``Records`` does."""
        objects = self._objects()
        while batch := [*islice(objects, n_rows)]:
            yield Values({name: [_decoded(record.get(name)) for record in batch] for name in columns}, len(batch))

    def _objects(self) -> Iterator[JSON]:
        number = 0
        with as_utf8(self._file, self._encoding) as stream:
            while line := read_piece(self._file, stream, 0, f"line {number + 1}"):
                number += 1
                if not line.isspace():
                    yield _object_of(line, f"{self.address}, line {number}")


def _decoded(value: object) -> object:
    return text_or_undecoded(value) if isinstance(value, str) else value


class FolderRecords(Records):
    """A folder of text files, each a record of ``id`` (its path), ``text`` and ``label`` (its folder).

    Where all of them are in the folders ``train`` and ``test``, these are the column ``split``, and no part of a label.
    """

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        self._files = {
            inner: file
            for inner, file in files_under(address).items()
            if not any(step.startswith(".") for step in inner.split("/"))
        }
        if not self._files:
            raise DataError(f"{address}: an empty folder; expected text files, in a folder for each class.")
        self.stored = StoredFiles(self._files)
        tops = {inner.partition("/")[0] for inner in self._files}
        self._has_parts = tops == {"train", "test"} and all(inner.count("/") > 1 for inner in self._files)
        self.names = ["id", "text", "label", *(["split"] if self._has_parts else [])]

    def batches(self, columns: list[str], n_rows: int = BATCH) -> Iterator[Values]:
        """Yield fields as ``Records`` does."""
        paths = iter(self._files)
        while batch := [*islice(paths, n_rows)]:
            yield Values({name: [self._field(path, name) for path in batch] for name in columns}, len(batch))

    def _field(self, inner: str, name: str) -> str | Undecoded | None:
        if name == "id":
            return inner
        if name == "split":
            return inner.partition("/")[0]
        if name == "label":
            folder = inner.rpartition("/")[0]
            return (folder.partition("/")[2] if self._has_parts else folder) or None
        file = self._files[inner]
        with decompressed(file) as stream:
            content = read_piece(file, stream, -1, "text")
        return content_as_text(content)


def has_records(address: str) -> bool:
    """Return whether a file or folder has named columns that can be read record by record."""
    return is_folder(address) or uncompressed_name(address).endswith((*_TEXT_TABLES, *_ARROW_TABLES, *LINES))


def records_of(address: str) -> Records:
    """Return the records of a table or of a folder of text files. Raises DataError for another ending."""
    path, member = split_member(address)
    if member is not None:
        raise DataError(f"{path}: its columns are fields of records, and it has no members: leave '::{member}' out.")
    if is_folder(address):
        is_table = any(inner.lower().endswith(_ARROW_TABLES) for inner in files_under(address))
        return TableRecords(ArrowTable(address)) if is_table else FolderRecords(address)
    name = uncompressed_name(existing_file(address).name)
    if name.endswith(_TEXT_TABLES):
        return text_records(address)
    if name.endswith(_ARROW_TABLES):
        return TableRecords(ArrowTable(address))
    if name.endswith(LINES):
        return JsonRecords(address)
    endings = (*_TEXT_TABLES, *_ARROW_TABLES, *LINES)
    raise DataError(
        f"{address}: a column was named, but only files that end in {', '.join(endings)}, plain or compressed "
        f"({', '.join(COMPRESSIONS[1:])}), have columns. Write one of these, or give a folder of text files."
    )


class MemoryRecords(Records):
    """Records that are not in a file, and are what they are read from."""

    @property
    def stored(self) -> Stored:  # type: ignore[override]
        """The records themselves."""
        return self

    def content(self) -> JSON:
        """Return a digest as ``Records`` does."""
        total = hashlib.blake2b(digest_size=16)
        for batch in self.batches(self.names):
            total.update(repr(batch).encode("utf-8", "surrogatepass"))
        return {"digest": total.hexdigest()}

    def check_unchanged(self) -> None:
        """Do nothing: values in memory need no check."""


class ListRecords(MemoryRecords):
    """Values of a single field."""

    def __init__(self, values: Iterable[object], column: str, address: str, row_names: np.ndarray | None) -> None:
        self.address, self.names, self._values = address, [column], list(values)
        self.row_names = row_names

    def batches(self, columns: list[str], n_rows: int = BATCH) -> Iterator[Values]:
        """Yield fields as ``Records`` does."""
        return in_batches(dict.fromkeys(columns, self._values), n_rows)


def in_batches(columns: dict[str, list[Any]], n_rows: int) -> Iterator[Values]:
    """Yield whole columns, of one length, so many rows at a time."""
    n = len(next(iter(columns.values())))
    for start in range(0, n, n_rows):
        stop = min(start + n_rows, n)
        yield Values({name: values[start:stop] for name, values in columns.items()}, stop - start)


class FrameRecords(MemoryRecords):
    """The rows of a data frame of pandas or polars, or of an Arrow table."""

    def __init__(self, table: pd.DataFrame | pl.DataFrame | pa.Table) -> None:
        self.address, self._table, self.row_names = type(table).__name__, table, naming_index(table)
        self.names = checked_names_of(table, self.address)

    def batches(self, columns: list[str], n_rows: int = BATCH) -> Iterator[Values]:
        """Yield fields as ``Records`` does."""
        return in_batches({name: column_of(self._table, self.names.index(name)).tolist() for name in columns}, n_rows)


class StreamRecords(MemoryRecords):
    """The rows of a lazy frame, a relation or a data set that yields Arrow tables."""

    def __init__(self, tables: Tables, address: str) -> None:
        self.address, self._tables = address, tables
        first = next(iter(tables()), None)
        self.names = [] if first is None else list(first.schema.names)

    def batches(self, columns: list[str], n_rows: int = BATCH) -> Iterator[Values]:
        """Yield fields as ``Records`` does."""
        for table in self._tables():
            yield Values({name: table.column(name).to_pylist() for name in columns}, table.num_rows)


def records_in(data: object, column: str) -> Records | None:
    """Return the records of an object in memory, or None if it holds no single fields, such as a matrix.

    It is a data frame, a data set, or a list, tuple, series or one-dimensional array of values of the field ``column``.

    >>> records_in(["a text", "a text"], "text").names, records_in([[1, 2], [3, 4]], "text")
    (['text'], None)
    """
    if is_frame(data):
        return FrameRecords(data)
    if (tables := tables_of(data)) is not None:
        return StreamRecords(tables, type(data).__name__)
    values = _values_of(data)
    return None if values is None else ListRecords(values, column, type(data).__name__, naming_index(data))


def _values_of(data: object) -> Sequence[object] | None:
    """Return the values of a sequence, a series or a one-dimensional array; None if an entry is a row of values."""
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        is_row = len(data) > 0 and hasattr(data[0], "__len__") and not isinstance(data[0], str | bytes | dict)
        return None if is_row else data
    if hasattr(data, "to_pylist"):  # an Arrow array
        return list(data.to_pylist())
    if len(getattr(data, "shape", ())) != 1:
        return None
    to_list = getattr(data, "tolist", None) or getattr(data, "to_list", None)  # polars has the second only
    return None if to_list is None else list(to_list())
