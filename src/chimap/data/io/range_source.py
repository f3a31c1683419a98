"""Sources that can read any range of rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np

from chimap import _arrays
from chimap._types import JSON, Rows
from chimap.data.io.row_file import RowFile
from chimap.data.rows import csr_row_bytes, digest, row_ranges
from chimap.data.source import Chunk, Source

Read = Callable[[int, int], Rows]


class RangeSource(Source):
    """A source whose chunks are read on demand, with nothing held beside them.

    A subclass sets the attributes of ``Source`` and ``_y``, opens a reader of ranges in ``_reading``, and returns from
    ``_content`` what its fingerprint is made of.
    """

    can_seek = True
    from_files = True
    _y: np.ndarray | None

    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        """Yield all rows in order."""
        yield from self.chunks_from(0, chunk_rows)
        self._check_unchanged()

    def chunks_from(self, first: int, chunk_rows: int, stop: int | None = None) -> Iterator[Chunk]:
        """Yield chunks as ``Source`` does; rows before ``first`` are not read."""
        ranges = row_ranges((self.n_rows if stop is None else stop) - first, chunk_rows)
        with self._reading() as read:
            for begin, end in ranges:
                start, last = first + begin, first + end
                yield Chunk(read(start, last), None if self._y is None else self._y[start:last], start)

    def labels(self) -> np.ndarray | None:
        """Return the labels of all rows, or None."""
        return self._y

    def fingerprint(self) -> JSON:
        """Return name, shape, dtype, and digests of the labels and of some of the content."""
        return {
            "name": self.name,
            **self._content(),
            "shape": [self.n_rows, self.n_features],
            "dtype": str(self.dtype),
            "labels": None if self._y is None else digest(self._y),
        }

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Read]:
        """Open, for the block, a function that reads the rows from ``start`` up to ``stop``; calls come in order."""

    @abstractmethod
    def _content(self) -> JSON:
        """Return the part of the fingerprint that stands for the content: bytes and digest."""

    @abstractmethod
    def _check_unchanged(self) -> None:
        """Raise DataError if the data have changed since they were opened."""


class OrderedSource(RangeSource):
    """A source whose stored entries are not in the order of rows; opening it sorts them into a ``RowFile``.

    A subclass supplies all entries in ``_filled``.
    """

    is_sparse = True

    def _open(self) -> None:
        """Sort the entries, and set the memory that rows take.

        ``n_rows``, ``n_features`` and ``dtype`` must be set before.
        """
        self._file: RowFile | None = self._filled()
        sparse_bytes = csr_row_bytes(self._file.n_entries, self.n_rows, self.dtype)
        self.row_bytes = sparse_bytes if self.is_sparse else float(self.n_features * self.dtype.itemsize)
        self.held_bytes = self._file.held_bytes

    def __getstate__(self) -> JSON:
        # A copy in another process reads the original file: the temporary file cannot be sent.
        return {**self.__dict__, "_file": None}

    def take(self, rows: np.ndarray) -> Rows:
        """Return the rows with these increasing indices."""
        with self._reading() as read:
            return _arrays.stack_rows([read(row, row + 1) for row in np.asarray(rows).tolist()])

    @contextmanager
    def _reading(self) -> Iterator[Read]:
        self._check_unchanged()
        file = self._file = self._file or self._filled()
        yield file.read if self.is_sparse else lambda start, stop: _arrays.to_dense(file.read(start, stop))

    @abstractmethod
    def _filled(self) -> RowFile:
        """Return a finished ``RowFile`` with all entries."""
