"""Matrix Market text in coordinate layout, parsed a few MiB at a time."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import IO

import numpy as np

from chimap._types import JSON
from chimap._validation import DataError
from chimap.data.io.files import DataFile, decompressed, needed, read_piece
from chimap.data.source import BLOCK_BYTES

_FIELDS = (
    "integer",
    "unsigned-integer",
    "real",
    "pattern",
)  # scipy writes uint32 and uint64 as "unsigned-integer"


class CoordinateText:
    """The entries of a Matrix Market file of layout ``coordinate general``, in the order of its lines.

    Parameters
    ----------
    file : DataFile
        The file, compressed if its ending says so.

    Attributes
    ----------
    shape : (int, int)
        Numbers of rows and columns.
    n_entries : int
        Number of entries according to the heading.
    n_skipped : int
        Number of lines before the first entry.

    Raises
    ------
    DataError
        For another layout and, when entries are read, for damaged lines and a file that is cut off.
    """

    def __init__(self, file: DataFile) -> None:
        self.file = file
        with decompressed(file) as stream:
            self.n_skipped, sizes = self._heading(stream)
        self.shape, self.n_entries = (sizes[0], sizes[1]), sizes[2]

    def entries(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield (rows, columns, values) of consecutive lines, with indices that start at 0 and float64 values."""
        seen = 0
        with decompressed(self.file) as stream:
            for _ in range(self.n_skipped):
                stream.readline()
            while piece := read_piece(self.file, stream, BLOCK_BYTES, f"entry {seen + 1:,}"):
                if piece.isspace():
                    continue
                rows, columns, values = self._parsed(piece, seen)
                self._check(rows, columns, seen)
                seen += rows.size
                yield rows, columns, values
        if seen != self.n_entries:
            raise DataError(
                f"{self.file}: {seen:,} entries, but its heading says {self.n_entries:,}. The file is cut off or "
                "damaged; copy it again."
            )

    def _parsed(self, piece: bytes, seen: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        pyarrow, reader = (
            needed("pyarrow", "Matrix Market files"),
            needed("pyarrow.csv", "Matrix Market files"),
        )
        names = ["row", "column"] if self._field == "pattern" else ["row", "column", "value"]
        types: JSON = {
            "row": pyarrow.int64(),
            "column": pyarrow.int64(),
            "value": pyarrow.float64(),
        }
        try:
            table = reader.read_csv(
                pyarrow.BufferReader(piece),
                reader.ReadOptions(column_names=names, block_size=len(piece) + 1, use_threads=False),
                reader.ParseOptions(delimiter=" "),
                reader.ConvertOptions(column_types=types, null_values=[]),
            )
        except pyarrow.ArrowException as error:
            raise DataError(
                f"{self.file}, after entry {seen:,}: cannot be read ({error}). Each line must have a row, a column and "
                "a value, with one space between them; write it with scipy.io.mmwrite, or copy it again."
            ) from error
        rows, columns = (table.column(name).to_numpy() for name in ("row", "column"))
        values = np.ones(rows.size) if self._field == "pattern" else table.column("value").to_numpy()
        return rows - 1, columns - 1, values

    def _check(self, rows: np.ndarray, columns: np.ndarray, seen: int) -> None:
        for places, size in ((rows, self.shape[0]), (columns, self.shape[1])):
            wrong = np.flatnonzero((places < 0) | (places >= size))
            if wrong.size:
                raise DataError(
                    f"{self.file}, entry {seen + wrong[0] + 1:,}: index {places[wrong[0]] + 1} lies outside the "
                    f"{self.shape[0]:,} x {self.shape[1]:,} matrix of its heading. Write the file again."
                )

    def _heading(self, stream: IO[bytes]) -> tuple[int, list[int]]:
        """Return the number of lines before the first entry, and the three sizes."""
        number, line = 0, b"%"
        first = self._line(stream)
        words = first.decode("utf-8", "replace").lower().split()
        if words[:3] != ["%%matrixmarket", "matrix", "coordinate"] or len(words) != 5:
            raise DataError(
                f"{self.file}: begins with {first[:60]!r}; expected '%%MatrixMarket matrix coordinate integer "
                "general'. Write it with scipy.io.mmwrite."
            )
        self._field = words[3]
        if self._field not in _FIELDS or words[4] != "general":
            raise DataError(
                f"{self.file}: {words[3]} {words[4]}; expected {', '.join(_FIELDS)}, and general."
            )
        while line.startswith(b"%") or not line.strip():
            number, line = number + 1, self._line(stream)
            if not line:
                raise DataError(f"{self.file}: cut off before its sizes. Copy it again.")
        sizes = line.split()
        if len(sizes) != 3 or not all(size.isdigit() for size in sizes):
            raise DataError(
                f"{self.file}, line {number + 1}: {line[:60]!r}; expected rows, columns and entries."
            )
        return number + 1, [int(size) for size in sizes]

    def _line(self, stream: IO[bytes]) -> bytes:
        try:
            return stream.readline()
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(f"{self.file}: cannot be decompressed ({error}). Copy it again.") from error
