"""Matrix Market text, which is read as a whole."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import scipy.io

from chimap import _arrays
from chimap._validation import DataError
from chimap.data.io.compressed import decompressed
from chimap.data.io.files import existing_file, file_digest
from chimap.data.io.stream import StreamSource
from chimap.data.labels import read_labels
from chimap.data.rows import csr_row_bytes, csr_rows, matrix_shape

_BROKEN = (ValueError, OverflowError, EOFError, OSError, zlib.error)
_COORDINATE_BYTES = 16 + 12  # an entry as it is read, row, column and value, and the same in CSR


class MatrixMarketSource(StreamSource):
    """The rows of a Matrix Market file (``.mtx``), coordinate or array.

    Its entries are in no order of rows, so it cannot be read in chunks: the first pass reads the whole into memory, as
    CSR (or as an array), where it stays. ``held_bytes`` says how much that takes before it is done, so that a fit with
    too small a memory budget refuses. Write large data in another format.

    path: the file; compressed if it ends in ``.gz``, ``.bz2`` or ``.zst``; an address, too.
    labels: array or file, see ``read_labels``, or None.
    Rows are float64; patterns have ones; entries that come twice are added. Raises FileNotFoundError, and DataError
    that names the file and, where the reader knows it, the line.

    >>> import tempfile
    >>> import scipy.sparse as sp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scipy.io.mmwrite(f"{folder}/rows.mtx", sp.csr_array(np.eye(3)))
    ...     source = MatrixMarketSource(f"{folder}/rows.mtx", labels=[0, 1, 0])
    ...     [chunk.X.shape for chunk in source.chunks(2)]
    [(2, 3), (1, 3)]
    """

    dtype = np.dtype(np.float64)

    def __init__(self, path: str | os.PathLike[str], labels: Any = None) -> None:
        self.path = existing_file(path)
        self.name = self.path.name
        n_rows, n_columns, entries, layout, field, symmetry = self._parsed(scipy.io.mminfo)
        if field == "complex":
            raise DataError(f"{self.path}: complex numbers, expected real ones. Write the magnitudes.")
        self.n_rows, self.n_features = matrix_shape((n_rows, n_columns), str(self.path))
        self.is_sparse = layout == "coordinate"
        stored = entries if symmetry == "general" else 2 * entries
        if self.is_sparse:
            self.row_bytes = csr_row_bytes(stored, self.n_rows, self.dtype)
            self.held_bytes = float(_COORDINATE_BYTES * stored)
        else:
            self.row_bytes = 8.0 * self.n_features
            self.held_bytes = 2 * self.row_bytes * self.n_rows
        self._X: Any = None
        self._y = read_labels(labels, self.n_rows)
        self.has_labels = self._y is not None

    def __getstate__(self) -> dict[str, Any]:
        # A copy in another process reads the file; the matrix is too large to send with every task.
        return {**self.__dict__, "_X": None}

    def take(self, rows: np.ndarray) -> Any:
        """The rows with these indices, from memory."""
        return _arrays.take_rows(self._loaded(), rows)

    def _blocks(self) -> Iterator[Any]:
        yield self._loaded()

    def _loaded(self) -> Any:
        if self._X is None:
            X = self._parsed(scipy.io.mmread)
            if self.is_sparse:
                rows = X.tocsr()
                X = csr_rows(rows.data, rows.indices, rows.indptr, self.n_features, self.dtype)
            self._X = _arrays.as_rows(X, self.dtype)
        return self._X

    def _parsed(self, parse: Any) -> Any:
        with decompressed(self.path) as file:
            try:
                return parse(_Forward(file))
            except _BROKEN as error:
                raise DataError(
                    f"{self.path}: cannot be read ({error}). It is damaged, cut off or no Matrix Market file; copy it "
                    "again, or write it with scipy.io.mmwrite."
                ) from error

    def _content(self) -> dict[str, Any]:
        return {"bytes": self.path.size, "digest": file_digest(self.path)}


class _Forward:
    """A stream without a way back. scipy's parser, given one that can seek, goes back to where it stopped in a
    destructor, and an error there ends the process.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)
