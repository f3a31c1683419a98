"""The names of the columns of a table whose columns are joined to rows by their ids."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from chimap._validation import DataError
from chimap.data.formats.arrow_parts import IPC, PARQUET, find_parts
from chimap.data.io.compressed import decompressed, uncompressed_name
from chimap.data.io.files import existing_file
from chimap.data.table import places_of


def heading_of(text: TextIO, name: str) -> tuple[list[str], str]:
    """Return the names in the first line of a table, which is read, and the delimiter that it has.

    >>> heading_of(io.StringIO("id;site\\na;gut\\n"), "meta.csv")
    (['id', 'site'], ';')
    """
    first = text.readline(2**24)
    delimiter = "\t" if uncompressed_name(name).endswith(".tsv") or "\t" in first else ","
    delimiter = ";" if delimiter == "," and "," not in first and ";" in first else delimiter
    return next(csv.reader([first.strip("\r\n")], delimiter=delimiter)), delimiter


def joined_names(address: str, words: str) -> list[str]:
    """Return the columns of a table that words mean: several by a glob or by commas between names, else one.

    Raises DataError if a word names no column.
    """
    if not any(mark in words for mark in "*?,"):
        return [words]
    names = _names_of(address)
    return [words] if words in names else [names[i] for i in places_of(names, words, address, "labels")]


def _names_of(address: str) -> list[str]:
    if uncompressed_name(address).endswith(PARQUET + IPC):
        return list(find_parts(address)[0].schema.names)
    with opened_text(address) as text:
        return heading_of(text, existing_file(address).name)[0]


@contextmanager
def opened_text(address: str) -> Iterator[TextIO]:
    """Yield the text of a table; what cannot be read within the block is a DataError that names the file."""
    with decompressed(existing_file(address)) as opened:
        try:
            yield io.TextIOWrapper(opened, "utf-8-sig", newline="")
        except (UnicodeDecodeError, EOFError, OSError, csv.Error) as error:
            raise DataError(f"{address}: cannot be read ({error}). Is it a table in UTF-8?") from error
