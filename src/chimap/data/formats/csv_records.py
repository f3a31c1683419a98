"""Records of a table as text: read a batch at a time, and searched for a fault."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import IO

from chimap._messages import Message
from chimap.data.io.compressed import read_piece
from chimap.data.io.files import DataFile
from chimap.data.label_kinds import is_number
from chimap.data.remedies import readings_of

_QUOTE = b'"'
_MOST_LINES = 1000  # lines of a quoted field; beyond them a quote counts as a plain character, as in 5" disks
_SHOWN = 60  # most characters of a field in an error


def read_records(file: DataFile, stream: IO[bytes], size: int, place: str) -> bytes:
    """Return the next ``size`` bytes and the rest of their last record, whose quoted fields may have line breaks.

    See ``read_piece``.
    """
    lines = [read_piece(file, stream, size, place)]
    is_open = lines[0].count(_QUOTE) % 2 == 1
    while is_open and len(lines) <= _MOST_LINES:
        line = read_piece(file, stream, 0, place)
        if not line:
            break
        lines.append(line)
        is_open = line.count(_QUOTE) % 2 == 0
    return b"".join(lines)


def first_fault(
    file: IO[str], delimiter: str, names: Sequence[str], n_skip: int, numbers: Sequence[int]
) -> tuple[str, str] | None:
    """Return the place of the first fault in a table and what is wrong there; None where nothing is.

    Parameters
    ----------
    file : text file
        The table.
    delimiter : str
        The delimiter of its fields.
    names : sequence of str
        Names of the columns.
    n_skip : int
        Number of lines of the heading.
    numbers : sequence of int
        Positions of the columns that must hold numbers.
    """
    records = csv.reader(file, delimiter=delimiter)
    for record in records:
        if records.line_num <= n_skip or not record:
            continue
        line = f", line {records.line_num}"
        if len(record) != len(names):
            return line, f"{len(record)} fields, expected {len(names)} as in the first line. Mend the line."
        for place in numbers:
            if not is_number(record[place]):
                text, molecules = readings_of(names[place])
                return (
                    f"{line}, column {names[place]!r}",
                    Message(
                        "{!r}, expected a number. Mend it, name that column as the labels, set it aside with "
                        "{exclude=}, or read it as text with {} or as molecules with {}.",
                        _shortened(record[place]), names[place], text, molecules,
                    ),
                )  # fmt: skip
    return None


def _shortened(text: str) -> str:
    """Return a field as an error quotes it."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
