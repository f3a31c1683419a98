"""A ``.npy`` file, read chunk by chunk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO

import numpy as np

from chimap import _arrays
from chimap._types import JSON, Rows
from chimap._validation import DataError
from chimap.data.labels import Labels
from chimap.data.rows import chunk_dtype, matrix_shape
from chimap.data.source import RangeSource, Read
from chimap.readers.io.files import existing_file
from chimap.readers.io.numpy_files import fill, read_header
from chimap.readers.label_files import read_labels


class NpySource(RangeSource):
    """The rows of a ``.npy`` file of any size.

    Chunks are read into fresh buffers. The file is not mapped: pages of a mapping count as memory of the process and
    would grow with the file. Files in Fortran order are read column by column within each chunk.

    Parameters
    ----------
    path : str or path
        A file with an array of shape (n_rows, n_features) of numbers; further axes are flattened.
    labels : array or file of labels, default=None
        Labels of the rows, see ``read_labels``.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    DataError
        For a file that is cut off, empty or does not hold numbers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/X.npy", np.eye(5, dtype=np.float32))
    ...     source = NpySource(f"{folder}/X.npy", labels=[0, 1, 0, 1, 0])
    ...     [chunk.X.shape for chunk in source.chunks(2)]
    [(2, 5), (2, 5), (1, 5)]
    """

    is_sparse = False

    def __init__(self, path: str | os.PathLike[str], labels: Labels = None) -> None:
        self.path = self._stored = existing_file(path)
        self.name = self.path.name
        with self.path.open() as file:
            self._header = read_header(file, str(self.path))
        size, promised = self.path.size, self._header.start + self._header.nbytes
        if size < promised:
            raise DataError(
                f"{self.path}: cut off: its header promises shape {self._header.shape} of "
                f"{self._header.dtype}, {promised} bytes, the file has {size}. Copy or write it again."
            )
        self.n_rows, self.n_features = matrix_shape(self._header.shape, str(self.path))
        self.dtype = chunk_dtype(self._header.dtype, str(self.path))
        self.can_seek = not self._header.fortran_order
        self.row_bytes = float(self.n_features * self.dtype.itemsize)
        self._y = read_labels(labels, self.n_rows)

    def take(self, rows: np.ndarray) -> Rows:
        """Return the rows with these increasing indices; nothing else is read, except in Fortran order."""
        if self._header.fortran_order:
            return super().take(rows)
        out = np.empty((len(rows), self.n_features), self.dtype)
        runs = np.split(np.arange(len(rows)), np.flatnonzero(np.diff(rows) != 1) + 1)
        with self.path.open() as file:
            for run in runs:
                first = int(rows[run[0]])
                out[run[0] : run[-1] + 1] = self._read(file, first, first + len(run))
        return out

    def fingerprint(self) -> JSON:
        """Return name, size, shape, dtype, and digests of the labels and of windows of the file."""
        return {**super().fingerprint(), "dtype": str(self._header.dtype)}

    @contextmanager
    def _reading(self) -> Iterator[Read]:
        with self.path.open() as file:
            yield partial(self._read, file)

    def _read(self, file: IO[bytes], start: int, stop: int) -> np.ndarray:
        try:
            read = self._read_columns if self._header.fortran_order else self._read_rows
            return read(file, start, stop)
        except EOFError as error:
            raise DataError(f"{self.path}, rows {start} to {stop}: {error}; the file has changed.") from error

    def _read_rows(self, file: IO[bytes], start: int, stop: int) -> np.ndarray:
        stored = np.empty((stop - start, self.n_features), self._header.dtype)
        file.seek(self._header.start + start * self.n_features * stored.itemsize)
        fill(file, stored)
        return _arrays.as_rows(stored, self.dtype)

    def _read_columns(self, file: IO[bytes], start: int, stop: int) -> np.ndarray:
        rows = np.empty((stop - start, self.n_features), self.dtype)
        column = np.empty(stop - start, self._header.dtype)
        # The bin of each stored column, counted with the last axis fastest.
        bins = np.arange(self.n_features).reshape(self._header.shape[1:]).ravel(order="F")
        for stored, place in enumerate(bins):
            file.seek(self._header.start + (stored * self.n_rows + start) * column.itemsize)
            fill(file, column)
            rows[:, place] = column
        return rows
