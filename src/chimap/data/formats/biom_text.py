"""BIOM tables as text, as written by ``biom convert --to-tsv`` and older versions of QIIME. Samples are rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO

import numpy as np

from chimap._types import JSON
from chimap._validation import DataError
from chimap.data.formats.stored_matrices import checked_names
from chimap.data.io.files import (
    COMPRESSIONS,
    DataFile,
    decompressed,
    existing_file,
    file_digest,
    is_folder,
    read_piece,
)
from chimap.data.labels import Labels, read_labels
from chimap.data.row_file import OrderedSource, RowFile

_FIRST_LINE = b"# Constructed from biom file"
_IDS = (b"#otuid", b"#asvid", b"#featureid")  # the first word of a heading, in lower case without blanks
_ENDINGS = tuple(text + packed for text in (".tsv", ".txt") for packed in COMPRESSIONS)
_BOM = b"\xef\xbb\xbf"

# What to do about ids of samples, and about ids of observations, that come twice.
UNIQUE = (
    "Rename one of the samples, or add their counts up.",
    "Rename one of the observations, or add their counts up.",
)


class BiomTextSource(OrderedSource):
    """The samples of a BIOM table in text form: observations are lines, samples are columns.

    Opening the table reads it once, onto a temporary file. A last column of metadata (taxonomy), lines of '#' before
    the heading and comments are skipped.

    Parameters
    ----------
    path : str or path
        The file, compressed if it ends in ``.gz``, ``.bz2`` or ``.zst``; addresses work too.
    labels : array or file of labels, default=None
        Labels of the samples, see ``read_labels``.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    DataError
        For damaged lines, naming line and field, and for ids that come twice.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, path: str | os.PathLike[str], labels: Labels = None) -> None:
        self.path = existing_file(path)
        self.name = self.path.name
        with decompressed(self.path) as stream:
            heading, number = _heading(self.path, stream)
            first = _fields(self.path, read_piece(self.path, stream, 0, f"line {number + 1}"), number + 1)
        samples = heading[1:]
        self._has_metadata = len(first) == len(heading) > 2 and _number(first[-1]) is None  # taxonomy
        if self._has_metadata:
            samples = samples[:-1]
        if not samples:
            raise DataError(f"{self.path}, line {number}: no samples in the heading. Write the table again.")
        self.n_rows = len(samples)
        self.row_ids = checked_names(np.array(samples), self.n_rows, f"{self.path}, line {number}", UNIQUE[0])
        names = [name for name, _ in self._lines()]
        self.n_features = len(names)
        if not names:
            raise DataError(f"{self.path}: no observations, only a heading. Write the table again.")
        self.column_names = tuple(
            checked_names(np.array(names), self.n_features, f"{self.path}, observations", UNIQUE[1]).tolist()
        )
        self._y = read_labels(labels, self.n_rows)
        self.has_labels = self._y is not None
        self._open()

    def _filled(self) -> RowFile:
        bound = min(self.n_rows * self.n_features, 8 * self.path.size)
        file = RowFile(self.n_rows, self.n_features, bound, self.dtype)
        for place, (_, values) in enumerate(self._lines()):
            samples = np.flatnonzero(values)
            file.add(samples, np.full(samples.size, place), values[samples])
        file.finish()
        return file

    def _lines(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the id and the values of each observation."""
        with decompressed(self.path) as stream:
            heading, number = _heading(self.path, stream)
            while line := read_piece(self.path, stream, 0, f"line {number + 1}"):
                number += 1
                fields = _fields(self.path, line, number)
                if fields == [""] or (line.startswith(b"#") and len(fields) == 1):
                    continue
                if len(fields) != len(heading):
                    raise DataError(
                        f"{self.path}, line {number}: {len(fields)} fields, expected {len(heading)} as in the heading. "
                        "The file is cut off or damaged; copy it again."
                    )
                if self._has_metadata and _number(fields[-1]) is not None:
                    raise DataError(
                        f"{self.path}, line {number}: {fields[-1]!r} in the last column, {heading[-1]!r}, which holds "
                        "text in the first line of values. It is either a sample, all of numbers, or metadata, all of "
                        "text; mend one of the lines, or remove the column."
                    )
                yield fields[0], self._values(fields[1 : self.n_rows + 1], number)

    def _values(self, fields: list[str], number: int) -> np.ndarray:
        try:
            return np.array(fields, dtype=np.float64)
        except ValueError as error:
            wrong = next(place for place, field in enumerate(fields) if _number(field) is None)
            raise DataError(
                f"{self.path}, line {number}, field {wrong + 2}: {fields[wrong]!r}, expected a number. Mend it."
            ) from error

    def _content(self) -> JSON:
        return {"bytes": self.path.size, "digest": file_digest(self.path)}

    def _check_unchanged(self) -> None:
        self.path.check_unchanged()


def is_biom_text(address: str) -> bool:
    """Return whether a text file is a BIOM table: lines of '#' that end in a heading with the ids of the samples."""
    if not address.lower().endswith(_ENDINGS) or is_folder(address):
        return False
    file = existing_file(address)
    with decompressed(file) as stream:
        number, line = 1, read_piece(file, stream, 0, "line 1").removeprefix(_BOM)
        if line.startswith(_FIRST_LINE):
            return True
        while line.startswith(b"#") and b"\t" not in line:
            number, line = number + 1, read_piece(file, stream, 0, f"line {number + 1}")
    return b"\t" in line and line.split(b"\t")[0].lower().replace(b" ", b"") in _IDS


def _heading(file: DataFile, stream: IO[bytes]) -> tuple[list[str], int]:
    """Return the fields of the heading, which is the last line that begins with '#', and its line number."""
    number = 0
    while True:
        number += 1
        line = read_piece(file, stream, 0, f"line {number}").removeprefix(_BOM if number == 1 else b"")
        if not line.startswith(b"#"):
            raise DataError(
                f"{file}, line {number}: no heading that begins with '#OTU ID'. Write the table again."
            )
        fields = _fields(file, line, number)
        if len(fields) > 1:
            return fields, number


def _fields(file: DataFile, line: bytes, number: int) -> list[str]:
    try:
        return line.decode("utf-8").rstrip("\r\n").split("\t")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}, line {number}: not text in UTF-8 ({error}). Save it in UTF-8.") from error


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
