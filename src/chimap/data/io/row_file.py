"""Entries of a sparse matrix in any order become rows on a temporary file, in bounded memory."""

from __future__ import annotations

import os
import tempfile
from typing import IO

import numpy as np

from chimap import _sparse as sp
from chimap._validation import DataError
from chimap.data.rows import csr_rows

BUCKET_BYTES = 2**24  # of the entries of a bucket, as they lie in the file


class RowFile:
    """Entries that are added in any order, read back as CSR rows; those that come twice are added.

    Consecutive rows share a bucket. Entries are sorted by bucket as they come and appended to a temporary file; at the
    end each bucket is read, put in order of its rows and written to a second one, from which any range of rows is read.
    So it holds one bucket or one call's entries and the borders of rows, never the matrix. The files lie in ``TMPDIR``
    and go with this object.

    n_rows, n_columns: shape. n_entries: of all, or a guess, by which buckets are sized. dtype: of the values.
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
        """Add entries; the three are of one length, rows and columns within the shape."""
        buckets = rows // self._bucket_rows
        if rows.size and np.any(buckets[1:] < buckets[:-1]):
            order = np.argsort(buckets, kind="stable")
            rows, columns, values, buckets = rows[order], columns[order], values[order], buckets[order]
        firsts = np.flatnonzero(np.diff(buckets, prepend=-1)).tolist()
        for first, last in zip(firsts, [*firsts[1:], rows.size], strict=True):
            bucket = int(buckets[first])
            self._pieces[bucket].append((self._end, last - first))
            for array, kind in (
                (rows[first:last] - bucket * self._bucket_rows, np.int32),
                (columns[first:last], np.int32),
                (values[first:last], self._dtype),
            ):
                self._end += _write(self._unordered, array.astype(kind))

    def finish(self) -> None:
        """Put the entries in order; no more come."""
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
        """Entries in all, once it is finished."""
        return int(self._borders[-1])

    @property
    def held_bytes(self) -> float:
        """The borders of rows."""
        return float(self._borders.nbytes)

    def read(self, start: int, stop: int) -> sp.csr_matrix:
        """The rows from start to stop in canonical CSR."""
        borders = self._borders[start : stop + 1]
        first, count = int(borders[0]), int(borders[-1] - borders[0])
        data = _read(self._values, self._dtype, first, count)
        indices = _read(self._columns, np.dtype(np.int32), first, count)
        return csr_rows(data, indices, borders, self._shape[1], self._dtype)

    def _bucket(self, bucket: int) -> sp.csr_matrix:
        """The rows of a bucket, in order."""
        start = bucket * self._bucket_rows
        shape = (min(self._bucket_rows, self._shape[0] - start), self._shape[1])
        size = sum(count for _, count in self._pieces[bucket])
        rows, columns, values = (
            np.empty(size, np.int32),
            np.empty(size, np.int32),
            np.empty(size, self._dtype),
        )
        done = 0
        for offset, count in self._pieces[bucket]:
            for out in (rows, columns, values):
                _read_into(self._unordered, out[done : done + count], offset)
                offset += count * out.itemsize
            done += count
        block = sp.csr_matrix((values, (rows, columns)), shape=shape)
        return csr_rows(block.data, block.indices, block.indptr, shape[1], self._dtype)


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
        f"the temporary file that entries are put in order by cannot be written ({error}). Make room in "
        f"{tempfile.gettempdir()}, or name a folder that has it in TMPDIR."
    )


def _read(file: IO[bytes], dtype: np.dtype, first: int, count: int) -> np.ndarray:
    out = np.empty(count, dtype)
    _read_into(file, out, first * dtype.itemsize)
    return out


def _read_into(file: IO[bytes], out: np.ndarray, offset: int) -> None:
    """Fill an array from an offset; several threads may read at once."""
    view = out.view(np.uint8).data
    while len(view):
        count = os.preadv(file.fileno(), [view], offset)
        if not count:
            raise DataError("the temporary file of rows is shorter than it was written. Open the data again.")
        view, offset = view[count:], offset + count
