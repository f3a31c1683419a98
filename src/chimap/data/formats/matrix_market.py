"""Matrix Market text: streamed where its entries are in the order of the rows, else read as a whole."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from chimap import _arrays
from chimap._types import JSON, Rows
from chimap._validation import DataError
from chimap.data.formats.coordinate_text import CoordinateText
from chimap.data.io.files import decompressed, existing_file, file_digest, read_piece
from chimap.data.labels import Labels, read_labels
from chimap.data.rows import csr_row_bytes, csr_rows, matrix_shape
from chimap.data.source import BLOCK_BYTES, StreamSource

if TYPE_CHECKING:
    import scipy.sparse as sp


_BROKEN = (ValueError, OverflowError, EOFError, OSError, zlib.error)
_COORDINATE_BYTES = 16 + 12  # an entry as it is read (row, column and value), and the same entry in CSR
_ENTRY = re.compile(rb"\d+ \d+( \S+)?\s*")
_GAP_ROWS = 2**16  # most rows in a block, counting empty ones


class MatrixMarketSource(StreamSource):
    """The rows, or the columns, of a Matrix Market file (``.mtx``) in coordinate or array layout.

    Entries in the order of their rows, as ``scipy.io.mmwrite`` writes them for CSR, are streamed. Otherwise the first
    pass reads the whole matrix into memory, as CSR or as an array, where it stays. ``held_bytes`` gives the size
    beforehand, so that a fit with too small a memory budget refuses; write such data in another format.

    Rows are float64. Entries of a pattern are ones; repeated entries are added.

    Parameters
    ----------
    path : str or path
        The file, compressed if it ends in ``.gz``, ``.bz2`` or ``.zst``; addresses work too.
    labels : array or file of labels, default=None
        Labels of the rows, see ``read_labels``.
    transpose : bool, default=False
        Whether the columns of the file are the rows, as in tables of genes by cells.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    DataError
        If the matrix cannot be read; the message names the file and, where the parser knows it, the line.

    Examples
    --------
    >>> import tempfile
    >>> import scipy.io
    >>> import scipy.sparse as sp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scipy.io.mmwrite(f"{folder}/rows.mtx", sp.csr_array(np.eye(3)))
    ...     source = MatrixMarketSource(f"{folder}/rows.mtx", labels=[0, 1, 0])
    ...     [chunk.X.shape for chunk in source.chunks(2)]
    [(2, 3), (1, 3)]
    """

    dtype = np.dtype(np.float64)

    def __init__(
        self, path: str | os.PathLike[str], labels: Labels = None, *, transpose: bool = False
    ) -> None:
        from scipy.io import mminfo

        self.path = existing_file(path)
        self.name, self._transpose = self.path.name, transpose
        n_rows, n_columns, entries, layout, field, symmetry = self._parsed(mminfo)
        if field == "complex":
            raise DataError(f"{self.path}: complex numbers, expected real ones. Write the magnitudes.")
        shape = (n_columns, n_rows) if transpose else (n_rows, n_columns)
        self.n_rows, self.n_features = matrix_shape(shape, str(self.path))
        self.is_sparse = layout == "coordinate"
        stored = entries if symmetry == "general" else 2 * entries
        least = 4 * entries if self.is_sparse else 2 * n_rows * n_columns
        if (
            symmetry == "general"
            and self.path.is_local
            and self.path.suffix == ".mtx"
            and least > self.path.size
        ):
            raise DataError(
                f"{self.path}: its heading promises {entries or n_rows * n_columns:,} numbers, more than "
                f"{self.path.size:,} "
                "bytes can hold; it cannot be read. Copy or write it again."
            )
        self._streamed = self._in_order() if self.is_sparse and symmetry == "general" else None
        if self.is_sparse:
            self.row_bytes = csr_row_bytes(stored, self.n_rows, self.dtype)
            in_memory, piece = float(_COORDINATE_BYTES * stored), 16.0 * BLOCK_BYTES
            self.held_bytes = in_memory if self._streamed is None else min(in_memory, piece)
        else:
            self.row_bytes = 8.0 * self.n_features
            self.held_bytes = 2 * self.row_bytes * self.n_rows
        self._X: Rows | None = None
        self._y = read_labels(labels, self.n_rows)
        self.has_labels = self._y is not None

    def __getstate__(self) -> JSON:
        # A copy in another process reads the file; the matrix is too large to send with every task.
        return {**self.__dict__, "_X": None}

    def take(self, rows: np.ndarray) -> Rows:
        """Return the rows with these increasing indices, from memory if the matrix is there."""
        return super().take(rows) if self._streamed is not None else _arrays.take_rows(self._loaded(), rows)

    def _blocks(self) -> Iterator[Rows]:
        if self._streamed is None:
            yield self._loaded()
            return
        done, rest = 0, [np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)]
        for entry in self._entries(self._streamed):
            parts = [np.concatenate(pair) for pair in zip(rest, entry, strict=True)]
            last = int(parts[0][-1])  # the next block may hold more entries of this row
            cut = int(np.searchsorted(parts[0], last))
            yield from self._rows([part[:cut] for part in parts], done, last)
            done, rest = last, [part[cut:] for part in parts]
        yield from self._rows(rest, done, self.n_rows)

    def _rows(self, parts: list[np.ndarray], start: int, stop: int) -> Iterator[Rows]:
        """Yield the rows from ``start`` up to ``stop`` as CSR; ``parts`` are their entries in the order of rows."""
        for first in range(start, stop, _GAP_ROWS):
            indptr = np.searchsorted(parts[0], np.arange(first, min(first + _GAP_ROWS, stop) + 1))
            block = slice(indptr[0], indptr[-1])
            yield csr_rows(parts[2][block], parts[1][block], indptr, self.n_features, self.dtype)

    def _entries(self, text: CoordinateText) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        for rows, columns, values in text.entries():
            yield (columns, rows, values) if self._transpose else (rows, columns, values)

    def _in_order(self) -> CoordinateText | None:
        """Return a reader of the entries if they are in the order of the rows; stop at the first that is not."""
        text = CoordinateText(self.path)
        with decompressed(self.path) as file:
            for _ in range(text.n_skipped):
                file.readline()
            if not _ENTRY.fullmatch(read_piece(self.path, file, 0, "its first entry")):
                return None
        last = 0
        for rows, _, _ in self._entries(text):
            if rows[0] < last or np.any(np.diff(rows) < 0):
                return None
            last = int(rows[-1])
        return text

    def _loaded(self) -> Rows:
        if self._X is None:
            from scipy.io import mmread

            self._refuse_nul()
            X: Any = self._parsed(mmread)
            X = X.T if self._transpose else X
            X = _arrays.as_rows(X, self.dtype)
            if self.is_sparse:
                X = csr_rows(X.data, X.indices, X.indptr, self.n_features, self.dtype)
            self._X = X
        return self._X

    def _refuse_nul(self) -> None:
        """Refuse NUL bytes: scipy's reader runs past the end of its memory at one, which ends the process."""
        with decompressed(self.path) as file:
            while piece := read_piece(self.path, file, BLOCK_BYTES, "where it was scanned"):
                if b"\0" in piece:
                    raise DataError(
                        f"{self.path}: not text, it holds NUL bytes. It is damaged; copy it again."
                    )

    def _parsed(self, parse: Callable[[_Forward], np.ndarray | sp.coo_array]) -> np.ndarray | sp.coo_array:
        with decompressed(self.path) as file:
            try:
                return parse(_Forward(file))
            except _BROKEN as error:
                raise DataError(
                    f"{self.path}: cannot be read ({error}). It is damaged, cut off or not Matrix Market; copy it "
                    "again, or write it with scipy.io.mmwrite."
                ) from error

    def _content(self) -> JSON:
        return {"bytes": self.path.size, "digest": file_digest(self.path)}


class _Forward:
    """A stream that cannot seek.

    Given a stream that can, scipy's parser seeks back to where it stopped in a destructor, and an error there ends the
    process.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)
