"""Entries of a sparse matrix in any order become rows, by way of a temporary file, in bounded memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from chimap._validation import DataError
from chimap.data.rows import csr_rows

BUCKET_BYTES = 2**24  # of the entries of a bucket, as they lie in the file


class RowBuckets:
    """Entries that are added in any order, read back as CSR rows.

    Consecutive rows share a bucket. Entries are sorted by bucket as they come and appended to a temporary file, which
    goes with this object (in ``TMPDIR``, 8 bytes and the value an entry); a bucket is read as a whole and becomes CSR.
    So both directions hold one bucket or one call's entries, never the matrix. Entries that come twice are added.

    n_rows, n_columns: shape. n_entries: of all, or a bound, by which buckets are sized. dtype: of the values.
    """

    def __init__(self, n_rows: int, n_columns: int, n_entries: int, dtype: np.dtype) -> None:
        self._shape, self._dtype = (n_rows, n_columns), dtype
        self._entry_bytes = 8 + dtype.itemsize
        n_buckets = max(1, min(n_rows, -(-n_entries * self._entry_bytes // BUCKET_BYTES)))
        self.bucket_rows = -(-n_rows // n_buckets)
        self._pieces: list[list[tuple[int, int]]] = [[] for _ in range(-(-n_rows // self.bucket_rows))]
        self._file = tempfile.TemporaryFile(prefix="chimap-rows-")  # noqa: SIM115 - closed when it is let go
        self._end = self.n_entries = 0

    def add(self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
        """Add entries; the three are of one length, rows and columns within the shape."""
        buckets = rows // self.bucket_rows
        if rows.size and np.any(buckets[1:] < buckets[:-1]):
            order = np.argsort(buckets, kind="stable")
            rows, columns, values, buckets = rows[order], columns[order], values[order], buckets[order]
        borders = np.flatnonzero(np.diff(buckets, prepend=-1))
        for first, last in zip(borders, [*borders[1:], rows.size], strict=True):
            bucket = int(buckets[first])
            self._append(
                bucket,
                (rows[first:last] - bucket * self.bucket_rows).astype(np.int32),
                columns[first:last].astype(np.int32),
                values[first:last].astype(self._dtype),
            )
        self.n_entries += rows.size

    def finish(self) -> None:
        """No more entries come."""
        self._writing(self._file.flush)

    @property
    def held_bytes(self) -> float:
        """What reading the largest bucket holds: entries as stored, and as they become CSR."""
        largest = max(sum(count for _, count in pieces) for pieces in self._pieces)
        return 3.0 * largest * self._entry_bytes

    def blocks(self, first: int, stop: int) -> Iterator[sp.csr_matrix]:
        """The rows from first to stop in canonical CSR, a bucket at a time."""
        for bucket in range(first // self.bucket_rows, -(-stop // self.bucket_rows)):
            start = bucket * self.bucket_rows
            rows = self._bucket(bucket)
            yield rows[max(0, first - start) : max(0, stop - start)]

    def take(self, rows: np.ndarray) -> sp.csr_matrix:
        """The rows with these increasing indices; buckets without any of them are not read."""
        buckets = rows // self.bucket_rows
        parts = [self._bucket(int(b))[rows[buckets == b] - b * self.bucket_rows] for b in np.unique(buckets)]
        return sp.vstack(parts, format="csr")

    def _append(self, bucket: int, *arrays: np.ndarray) -> None:
        self._pieces[bucket].append((self._end, arrays[0].size))
        for array in arrays:
            self._end += self._writing(self._file.write, array.tobytes())

    def _writing(self, call: Any, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except OSError as error:
            raise DataError(
                f"the temporary file that entries are put in order by cannot be written ({error}). Make room in "
                f"{tempfile.gettempdir()}, or name a folder that has it in TMPDIR."
            ) from error

    def _bucket(self, bucket: int) -> sp.csr_matrix:
        start = bucket * self.bucket_rows
        n_rows, n_columns = min(self.bucket_rows, self._shape[0] - start), self._shape[1]
        size = sum(count for _, count in self._pieces[bucket])
        rows, columns = np.empty(size, np.int32), np.empty(size, np.int32)
        values = np.empty(size, self._dtype)
        done = 0
        for offset, count in self._pieces[bucket]:
            for out in (rows, columns, values):
                piece = os.pread(self._file.fileno(), count * out.itemsize, offset)
                out[done : done + count] = np.frombuffer(piece, out.dtype)
                offset += len(piece)
            done += count
        block = sp.csr_matrix((values, (rows, columns)), shape=(n_rows, n_columns))
        return csr_rows(block.data, block.indices, block.indptr, n_columns, self._dtype)
