"""Sort the entries of a sparse matrix into rows on a temporary file, in bounded memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np

from chimap import _arrays
from chimap import _sparse as sp
from chimap._types import JSON, Rows
from chimap._validation import DataError
from chimap.data.rows import csr_row_bytes, csr_rows
from chimap.data.source import RangeSource, Read

BUCKET_BYTES = 2**24  # size of the entries of a bucket in the file


class RowFile:
    """Entries that are added in any order and read back as CSR rows; repeated entries are added up.

    Consecutive rows share a bucket. Entries are sorted by bucket as they come and appended to a temporary file. At the
    end each bucket is read, sorted by row and written to a second file, from which any range of rows is read. Memory
    holds one bucket or the entries of one call, and the borders of rows, but never the matrix. ``n_entries``, perhaps
    an estimate, determines the size of buckets. The files lie in ``TMPDIR`` and are deleted with this object.
    """

    def __init__(self, n_rows: int, n_columns: int, n_entries: int, dtype: np.dtype) -> None:
        self._shape, self._dtype = (n_rows, n_columns), dtype
        bytes_in_all = max(1, n_entries) * (8 + dtype.itemsize)
        n_buckets = max(1, min(n_rows, -(-bytes_in_all // BUCKET_BYTES)))
        self._bucket_rows = -(-n_rows // n_buckets)
        self._pieces: list[list[tuple[int, int]]] = [[] for _ in range(-(-n_rows // self._bucket_rows))]
        self._unordered: IO[bytes] = _temporary()
        self._end = 0

    def add(self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
        """Add entries: three arrays of one length, perhaps 0, with rows and columns within the shape."""
        if not rows.size:
            return
        buckets = rows // self._bucket_rows
        if np.any(buckets[1:] < buckets[:-1]):
            order = np.argsort(buckets, kind="stable")
            rows, columns, values, buckets = rows[order], columns[order], values[order], buckets[order]
        firsts = np.flatnonzero(np.diff(buckets, prepend=-1)).tolist()
        for first, last in zip(firsts, [*firsts[1:], rows.size], strict=True):
            bucket = int(buckets[first])
            self._pieces[bucket].append((self._end, last - first))
            for array, stored_dtype in (
                (rows[first:last] - bucket * self._bucket_rows, np.int32),
                (columns[first:last], np.int32),
                (values[first:last], self._dtype),
            ):
                self._end += _write(self._unordered, array.astype(stored_dtype))

    def finish(self) -> None:
        """Sort the entries by row; no more can be added."""
        _flush(self._unordered)
        self._values, self._columns = _temporary(), _temporary()
        counts = [np.zeros(1, np.int64)]
        for bucket in range(len(self._pieces)):
            block = self._bucket(bucket)
            _write(self._values, block.data)
            _write(self._columns, block.indices.astype(np.int32, copy=False))
            counts.append(np.diff(block.indptr).astype(np.int64))
        for file in (self._values, self._columns):
            _flush(file)
        self._borders = np.cumsum(np.concatenate(counts))
        self._unordered.close()
        self._pieces = []

    @property
    def n_entries(self) -> int:
        """Number of entries in all, once the file is finished."""
        return int(self._borders[-1])

    @property
    def held_bytes(self) -> float:
        """Bytes of the borders of rows, which stay in memory."""
        return float(self._borders.nbytes)

    def read(self, start: int, stop: int) -> sp.csr_matrix:
        """Return the rows from ``start`` up to ``stop`` in canonical CSR."""
        borders = self._borders[start : stop + 1]
        first, count = int(borders[0]), int(borders[-1] - borders[0])
        data = _read(self._values, self._dtype, first, count)
        indices = _read(self._columns, np.dtype(np.int32), first, count)
        return csr_rows(data, indices, borders, self._shape[1], self._dtype)

    def _bucket(self, bucket: int) -> sp.csr_matrix:
        """Return the rows of a bucket in canonical CSR."""
        start = bucket * self._bucket_rows
        shape = (min(self._bucket_rows, self._shape[0] - start), self._shape[1])
        size = sum(count for _, count in self._pieces[bucket])
        rows, columns, values = (np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, self._dtype))
        done = 0
        for offset, count in self._pieces[bucket]:
            for out in (rows, columns, values):
                _read_into(self._unordered, out[done : done + count], offset)
                offset += count * out.itemsize
            done += count
        block = sp.csr_matrix((values, (rows, columns)), shape=shape)
        return csr_rows(block.data, block.indices, block.indptr, shape[1], self._dtype)


class BlockFile:
    """Dense blocks of rows on a temporary file, each in the narrowest type that holds its numbers exactly.

    It takes at most half of the room that was free in ``TMPDIR``, and is deleted with this object.
    """

    def __init__(self) -> None:
        self._file, self._end = _temporary(), 0
        self._most = shutil.disk_usage(tempfile.gettempdir()).free // 2
        self._stored: list[tuple[int, tuple[int, ...], np.dtype]] = []

    def add(self, block: np.ndarray) -> bool:
        """Add a block of floats; return whether there was room for it."""
        exact = (np.uint8, np.uint16, np.float32) if not np.signbit(block).any() else (np.float32,)
        with np.errstate(all="ignore"):
            narrow = next((cast for cast in map(block.astype, exact) if np.array_equal(cast, block)), block)
        if self._end + narrow.nbytes > self._most:
            return False
        self._stored.append((self._end, narrow.shape, narrow.dtype))
        self._end += _write(self._file, narrow)
        return True

    def blocks(self, dtype: np.dtype) -> Iterator[np.ndarray]:
        """Yield the blocks in the order in which they were added, as one type."""
        _flush(self._file)
        for offset, shape, stored_dtype in self._stored:
            block = np.empty(shape, stored_dtype)
            _read_into(self._file, block, offset)
            yield block.astype(dtype)


def _temporary() -> IO[bytes]:
    return tempfile.TemporaryFile(prefix="chimap-rows-")


def _write(file: IO[bytes], array: np.ndarray) -> int:
    try:
        file.write(np.ascontiguousarray(array).view(np.uint8).data)
    except OSError as error:
        raise _no_room(error) from error
    return array.nbytes


def _flush(file: IO[bytes]) -> None:
    try:
        file.flush()
    except OSError as error:
        raise _no_room(error) from error


def _no_room(error: OSError) -> DataError:
    return DataError(
        f"the temporary file for sorting entries cannot be written ({error}). Make room in "
        f"{tempfile.gettempdir()}, or name a folder with enough room in TMPDIR."
    )


def _read(file: IO[bytes], dtype: np.dtype, first: int, count: int) -> np.ndarray:
    out = np.empty(count, dtype)
    _read_into(file, out, first * dtype.itemsize)
    return out


def _read_into(file: IO[bytes], out: np.ndarray, offset: int) -> None:
    """Fill an array from an offset in the file; several threads may read at once."""
    view = out.view(np.uint8).data
    while len(view):
        count = os.preadv(file.fileno(), [view], offset)
        if not count:
            raise DataError("the temporary file of rows is shorter than when it was written. Open the data again.")
        view, offset = view[count:], offset + count


class OrderedSource(RangeSource):
    """A source whose stored entries are not in the order of rows; opening it sorts them into a ``RowFile``.

    A subclass supplies all entries in ``_filled``.
    """

    is_sparse = True

    def _open(self) -> None:
        """Sort the entries, and set the memory that rows take.

        ``n_rows``, ``n_features`` and ``dtype`` must be set before.
        """
        self._sorted: RowFile | None = self._filled()
        sparse_bytes = csr_row_bytes(self._sorted.n_entries, self.n_rows, self.dtype)
        self.row_bytes = sparse_bytes if self.is_sparse else float(self.n_features * self.dtype.itemsize)
        self.held_bytes = self._sorted.held_bytes

    def __getstate__(self) -> JSON:
        # A copy in another process reads the original file: the temporary file cannot be sent.
        return {**self.__dict__, "_sorted": None}

    def take(self, rows: np.ndarray) -> Rows:
        with self._reading() as read:
            return _arrays.stack_rows([read(row, row + 1) for row in np.asarray(rows).tolist()])

    @contextmanager
    def _reading(self) -> Iterator[Read]:
        self._check_unchanged()
        file = self._sorted = self._sorted or self._filled()
        yield file.read if self.is_sparse else lambda start, stop: _arrays.to_dense(file.read(start, stop))

    @abstractmethod
    def _filled(self) -> RowFile:
        """Return a finished ``RowFile`` with all entries."""
