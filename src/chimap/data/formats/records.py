"""Tables whose fields are text, molecules or counts by name rather than bins, read record by record."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from chimap._errors import InputError
from chimap._types import JSON
from chimap._validation import DataError
from chimap.data.formats.arrow_parts import IPC, PARQUET, find_parts
from chimap.data.formats.json_lines import object_of
from chimap.data.io.compressed import COMPRESSIONS, decompressed, read_piece, uncompressed_name
from chimap.data.io.files import base_name, existing_file, file_digest, files_under, is_folder, split_member
from chimap.data.rows import digest

BATCH = 1024  # records per batch

_TEXT_TABLES, _ARROW_TABLES = (".csv", ".tsv"), PARQUET + IPC
LINES = (".jsonl", ".ndjson")
_NO_LIMIT = 2**31 - 1


Batch: TypeAlias = list[tuple[Any, ...]]
"""Consecutive records, each a tuple with the values of the requested columns."""


class Records(ABC):
    """Records of named fields, the same in each pass.

    Attributes
    ----------
    address : str
        The file or folder, for messages.
    columns : list of str
        Names of the fields, as far as they are known beforehand.
    row_names : ndarray of shape (records,), or None
        Names of the records beside their fields, such as the index of a data frame.
    has_types : bool
        Whether the data tell text from numbers; a text table does not.
    """

    address: str
    columns: list[str]
    has_types = True
    row_names: np.ndarray | None = None

    @property
    def name(self) -> str:
        """The address without folders."""
        return base_name(self.address)

    @abstractmethod
    def batches(self, columns: list[str]) -> Iterator[Batch]:
        """Yield batches of records with the values of these columns; None where a record has no such field."""

    @abstractmethod
    def content(self) -> JSON:
        """Return bytes and digest, for fingerprints."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Raise DataError if the data have changed since they were opened."""

    def check_columns(self, columns: list[str]) -> None:
        """Refuse names that are not columns."""
        missing = [name for name in columns if name not in self.columns]
        if missing:
            raise DataError(
                f"{self.address}: no column {missing[0]!r}; there are {', '.join(self.columns) or 'none'}. Name one "
                "of them."
            )


class _OneFile(Records):
    """Records of a single file."""

    def __init__(self, address: str) -> None:
        self._file = existing_file(address)
        self.address = self._file.address

    def content(self) -> JSON:
        """Return bytes and digest as ``Records`` does."""
        return {"bytes": self._file.size, "digest": file_digest(self._file)}

    def check_unchanged(self) -> None:
        """Check the file as ``Records`` does."""
        self._file.check_unchanged()


class TextRecords(_OneFile):
    """A CSV or TSV table with a heading; quoted fields may have line breaks."""

    has_types = False

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.columns = next(self._read(), [])
        if not self.columns:
            raise DataError(f"{address}: no heading with the names of columns. Add one as the first line.")

    def batches(self, columns: list[str]) -> Iterator[Batch]:
        """Yield batches as ``Records`` does."""
        self.check_columns(columns)
        places = [self.columns.index(name) for name in columns]
        reader, batch = self._read(), []
        next(reader)
        for number, record in enumerate(reader, 1):
            if not record:
                continue
            if len(record) != len(self.columns):
                raise DataError(
                    f"{self.address}, record {number}: {len(record)} fields, expected {len(self.columns)} as in the "
                    "heading. The file is cut off, or a field with a comma or a quote is not quoted."
                )
            batch.append(tuple(record[place] for place in places))
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    def _read(self) -> Iterator[list[str]]:
        delimiter = "\t" if uncompressed_name(self._file.name).endswith(".tsv") else ","
        csv.field_size_limit(_NO_LIMIT)
        with decompressed(self._file) as stream:
            lines = io.TextIOWrapper(stream, "utf-8-sig", newline="")
            try:
                yield from csv.reader(lines, delimiter=delimiter, strict=True)
            except (UnicodeDecodeError, EOFError, OSError, csv.Error) as error:
                raise DataError(
                    f"{self.address}: cannot be read ({error}). It is cut off, damaged or not in UTF-8; copy it again."
                ) from error
            finally:
                lines.detach()


class ArrowRecords(Records):
    """The records of a Parquet, Feather or Arrow file, or of a folder of them."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._parts = find_parts(address)
        self.columns = list(self._parts[0].schema.names)

    def batches(self, columns: list[str]) -> Iterator[Batch]:
        """Yield batches as ``Records`` does."""
        self.check_columns(columns)
        for part in self._parts:
            for group in range(len(part.group_rows)):
                for batch in part.batches(group, columns, BATCH):
                    yield list(zip(*(batch.column(name).to_pylist() for name in columns), strict=True))

    def content(self) -> JSON:
        """Return bytes and digest as ``Records`` does."""
        files = [part.file for part in self._parts]
        digests = np.array([f"{file.name} {file_digest(file)}" for file in files])
        return {"bytes": sum(file.size for file in files), "digest": digest(digests)}

    def check_unchanged(self) -> None:
        """Check all files as ``Records`` does."""
        for part in self._parts:
            part.file.check_unchanged()


class JsonRecords(_OneFile):
    """A JSON object per line; ``columns`` are the keys of the first one."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        _, first = next(self._objects(), (0, None))
        if first is None:
            raise DataError(f"{address}: no records, only blank lines. Write one JSON object per line.")
        self.columns = list(first)

    def batches(self, columns: list[str]) -> Iterator[Batch]:
        """Yield batches as ``Records`` does."""
        batch: Batch = []
        for _, record in self._objects():
            batch.append(tuple(record.get(name) for name in columns))
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    def _objects(self) -> Iterator[tuple[int, JSON]]:
        number = 0
        with decompressed(self._file) as stream:
            while line := read_piece(self._file, stream, 0, f"line {number + 1}"):
                number += 1
                if line.isspace():
                    continue
                yield number, object_of(line, f"{self.address}, line {number}")


class FolderRecords(Records):
    """A folder of text files, each a record of ``id`` (its path), ``text`` and ``label`` (its folder)."""

    def __init__(self, address: str) -> None:
        self.address, self.columns = address.rstrip("/"), ["id", "text", "label"]
        self._files = {
            inner: file
            for inner, file in files_under(address).items()
            if not any(step.startswith(".") for step in inner.split("/"))
        }
        if not self._files:
            raise DataError(f"{address}: an empty folder; expected text files, in a folder for each class.")

    def batches(self, columns: list[str]) -> Iterator[Batch]:
        """Yield batches as ``Records`` does."""
        self.check_columns(columns)
        paths = [*self._files]
        for start in range(0, len(paths), BATCH):
            yield [
                tuple(self._field(path, name) for name in columns) for path in paths[start : start + BATCH]
            ]

    def content(self) -> JSON:
        """Return bytes and digest as ``Records`` does; the digest covers the listing and about 16 of the files."""
        listing = [f"{inner} {file.size}" for inner, file in self._files.items()]
        digests = [file_digest(file) for file in [*self._files.values()][:: max(1, len(listing) // 16)]]
        return {
            "bytes": sum(file.size for file in self._files.values()),
            "digest": digest(np.array(listing + digests)),
        }

    def check_unchanged(self) -> None:
        """Check all files as ``Records`` does."""
        for file in self._files.values():
            file.check_unchanged()

    def _field(self, inner: str, name: str) -> str | None:
        if name == "id":
            return inner
        if name == "label":
            return inner.rpartition("/")[0] or None
        file = self._files[inner]
        with decompressed(file) as stream:
            content = read_piece(file, stream, -1, "text")
        try:
            if 0 in content:
                raise InputError(f"byte {content.index(0)} is 0, as in files that are not text")
            return content.decode("utf-8-sig")
        except ValueError as error:
            raise DataError(
                f"{self.address}/{inner}: not text in UTF-8 ({error}). Files of the folder are read as text: save it "
                "as UTF-8 (from Latin-1 with iconv -f LATIN1 -t UTF-8), or take it out of the folder."
            ) from error


def has_records(address: str) -> bool:
    """Return whether a file or folder has named columns that can be read record by record."""
    return is_folder(address) or uncompressed_name(address).endswith((*_TEXT_TABLES, *_ARROW_TABLES, *LINES))


def records_of(address: str) -> Records:
    """Return the records of a table or of a folder of text files. Raises DataError for another ending."""
    path, member = split_member(address)
    if member is not None:
        raise DataError(
            f"{path}: its columns are fields of records, and it has no members: leave '::{member}' out."
        )
    if is_folder(address):
        is_table = any(inner.lower().endswith(_ARROW_TABLES) for inner in files_under(address))
        return ArrowRecords(address) if is_table else FolderRecords(address)
    name = uncompressed_name(existing_file(address).name)
    if name.endswith(_TEXT_TABLES):
        return TextRecords(address)
    if name.endswith(_ARROW_TABLES):
        return ArrowRecords(address)
    if name.endswith(LINES):
        return JsonRecords(address)
    endings = (*_TEXT_TABLES, *_ARROW_TABLES, *LINES)
    raise DataError(
        f"{address}: a column was named, but only files that end in {', '.join(endings)}, plain or compressed "
        f"({', '.join(COMPRESSIONS[1:])}), have columns. Write one of these, or give a folder of text files."
    )
