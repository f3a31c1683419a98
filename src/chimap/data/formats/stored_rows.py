"""Rows of a matrix that a container stores: dense, CSR, or CSC, which is transposed as it is first read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from chimap import _arrays
from chimap._validation import DataError
from chimap.data.io.row_buckets import RowBuckets
from chimap.data.io.stream import BLOCK_BYTES
from chimap.data.rows import chunk_dtype, csr_row_bytes, csr_rows, matrix_shape

PARTS = ("data", "indices", "indptr")


class StoredRows(ABC):
    """How the rows of one stored matrix are read; the container is open while they are.

    where: the matrix, for messages. The rest is as in ``Source``.
    """

    is_sparse = True

    def __init__(self, shape: tuple[int, ...], dtype: Any, where: str) -> None:
        self.where = where
        self.n_rows, self.n_features = matrix_shape(shape, where)
        self.dtype = chunk_dtype(dtype, where)
        self.row_bytes = self.held_bytes = 0.0
        self.stored_rows = 1

    @abstractmethod
    def blocks(self, root: Any, first: int, stop: int) -> Iterator[Any]:
        """The rows from first to stop, in order: dense blocks in ``dtype``, or canonical CSR."""

    @abstractmethod
    def take(self, root: Any, rows: np.ndarray) -> Any:
        """The rows with these increasing indices."""


class DenseRows(StoredRows):
    """An array whose first axis are rows; each storage chunk is decoded once in a pass."""

    is_sparse = False

    def __init__(self, array: Any, key: str, where: str) -> None:
        super().__init__(tuple(array.shape), array.dtype, where)
        self._key = key
        stored = self.n_features * np.dtype(array.dtype).itemsize
        self.stored_rows = min(_unit(array), self.n_rows)
        unit_bytes = self.stored_rows * stored
        self._block_rows = min(self.n_rows, self.stored_rows * max(1, BLOCK_BYTES // unit_bytes))
        self.row_bytes = float(self.n_features * self.dtype.itemsize)
        # A block as it is stored, and as floats; a decoder has a copy of its own.
        self.held_bytes = self._block_rows * (2.0 * stored + self.row_bytes)

    def blocks(self, root: Any, first: int, stop: int) -> Iterator[np.ndarray]:
        """See ``StoredRows``."""
        step = self._block_rows
        for start in range(first - first % step, stop, step):
            yield self._read(root[self._key], max(start, first), min(start + step, stop))

    def take(self, root: Any, rows: np.ndarray) -> np.ndarray:
        """See ``StoredRows``."""
        out = np.empty((len(rows), self.n_features), self.dtype)
        units = rows // self.stored_rows
        for unit in np.unique(units):
            start = int(unit) * self.stored_rows
            first, last = np.searchsorted(units, (unit, unit + 1))
            block = self._read(root[self._key], start, min(start + self.stored_rows, self.n_rows))
            out[first:last] = block[rows[first:last] - start]
        return out

    def _read(self, array: Any, start: int, stop: int) -> np.ndarray:
        rows = np.asarray(array[start:stop])
        return _arrays.as_rows(rows.reshape(rows.shape[0], -1), self.dtype)


class CsrRows(StoredRows):
    """Arrays ``data``, ``indices`` and ``indptr`` in a group: entries by row, one row after the other."""

    def __init__(self, group: Any, key: str, shape: tuple[int, ...], where: str) -> None:
        super().__init__(shape, _part(group, "data", where).dtype, where)
        self._key = key
        self._borders = _borders(group, self.n_rows, where)
        self._unit = max(_unit(group[part]) for part in ("data", "indices"))
        self.row_bytes = csr_row_bytes(int(self._borders[-1]), self.n_rows, self.dtype)
        entry = sum(np.dtype(group[part].dtype).itemsize for part in ("data", "indices"))
        self._block_entries = max(1, BLOCK_BYTES // entry)
        widest = int(np.diff(self._borders).max(initial=0))
        # A block as it is stored with the rest of a storage chunk, and as CSR; the borders of all rows.
        block = min(max(self._block_entries, widest) + self._unit, int(self._borders[-1]))
        self.held_bytes = block * (2.0 * entry + self.dtype.itemsize + 4) + self._borders.nbytes

    def blocks(self, root: Any, first: int, stop: int) -> Iterator[sp.csr_matrix]:
        """See ``StoredRows``."""
        values, columns = (_Entries(root[f"{self._key}/{part}"], self._unit) for part in ("data", "indices"))
        while first < stop:
            end = int(np.searchsorted(self._borders, self._borders[first] + self._block_entries, "right")) - 1
            last = min(max(end, first + 1), stop)
            yield self._rows(values, columns, first, last)
            first = last

    def take(self, root: Any, rows: np.ndarray) -> sp.csr_matrix:
        """See ``StoredRows``."""
        values, columns = (_Entries(root[f"{self._key}/{part}"], self._unit) for part in ("data", "indices"))
        parts = []
        for start, stop in _stretches(rows, self._borders, self._unit):
            block = self._rows(values, columns, start, stop)
            parts.append(block[rows[(rows >= start) & (rows < stop)] - start])
        return sp.vstack(parts, format="csr")

    def _rows(self, values: _Entries, columns: _Entries, first: int, last: int) -> sp.csr_matrix:
        borders = self._borders[first : last + 1]
        data, indices = (entries.between(int(borders[0]), int(borders[-1])) for entries in (values, columns))
        wrong = np.flatnonzero((indices < 0) | (indices >= self.n_features))
        if wrong.size:
            row = first + int(np.searchsorted(borders - borders[0], wrong[0], side="right")) - 1
            raise DataError(
                f"{self.where}, row {row}: column {indices[wrong[0]]} lies outside of the {self.n_features} columns "
                "of its shape. Write the file again."
            )
        return csr_rows(data, indices, borders, self.n_features, self.dtype)


class CscRows(StoredRows):
    """The same arrays with entries by column. The first reading puts them in rows, in a temporary file."""

    def __init__(self, group: Any, key: str, shape: tuple[int, ...], where: str) -> None:
        super().__init__(shape, _part(group, "data", where).dtype, where)
        self._key = key
        self._borders = _borders(group, self.n_features, where)
        self._unit = max(_unit(group[part]) for part in ("data", "indices"))
        n_entries = int(self._borders[-1])
        self.row_bytes = csr_row_bytes(n_entries, self.n_rows, self.dtype)
        self._buckets: RowBuckets | None = self._by_rows(group)
        self.stored_rows = self._buckets.bucket_rows
        self.held_bytes = self._buckets.held_bytes + self._borders.nbytes

    def __getstate__(self) -> dict[str, Any]:
        # A copy in another process reads the columns itself: the temporary file cannot be sent.
        return {**self.__dict__, "_buckets": None}

    def blocks(self, root: Any, first: int, stop: int) -> Iterator[sp.csr_matrix]:
        """See ``StoredRows``."""
        yield from self._transposed(root).blocks(first, stop)

    def take(self, root: Any, rows: np.ndarray) -> sp.csr_matrix:
        """See ``StoredRows``."""
        return self._transposed(root).take(rows)

    def _transposed(self, root: Any) -> RowBuckets:
        if self._buckets is None:
            self._buckets = self._by_rows(root[self._key])
        return self._buckets

    def _by_rows(self, group: Any) -> RowBuckets:
        n_entries = int(self._borders[-1])
        buckets = RowBuckets(self.n_rows, self.n_features, n_entries, self.dtype)
        values, rows = (_Entries(group[part], self._unit) for part in ("data", "indices"))
        step = max(1, BLOCK_BYTES // 8)
        for start in range(0, n_entries, step):
            stop = min(start + step, n_entries)
            here = rows.between(start, stop)
            if here.min() < 0 or here.max() >= self.n_rows:
                raise DataError(
                    f"{self.where}: row {here.max() if here.max() >= self.n_rows else here.min()} lies outside of the "
                    f"{self.n_rows} rows of its shape. Write the file again."
                )
            columns = np.searchsorted(self._borders, np.arange(start, stop), side="right") - 1
            buckets.add(here, columns, values.between(start, stop))
        buckets.finish()
        return buckets


class _Entries:
    """Stretches of a stored array of one axis, read in whole storage chunks; the rest of the last one is kept."""

    def __init__(self, array: Any, unit: int) -> None:
        self._array, self._unit = array, unit
        self._first, self._kept = 0, np.empty(0, array.dtype)

    def between(self, start: int, stop: int) -> np.ndarray:
        kept_to = self._first + self._kept.size
        if self._first <= start and stop <= kept_to:
            return self._kept[start - self._first : stop - self._first]
        head = self._kept[start - self._first :] if self._first <= start < kept_to else self._kept[:0]
        begin = start + head.size
        read_from = begin - begin % self._unit
        end = min(-(-stop // self._unit) * self._unit, self._array.shape[0])
        fresh = np.asarray(self._array[read_from:end])
        self._first, self._kept = read_from, fresh
        tail = fresh[begin - read_from : stop - read_from]
        return np.concatenate([head, tail]) if head.size else tail


def _stretches(rows: np.ndarray, borders: np.ndarray, unit: int) -> Iterator[tuple[int, int]]:
    """(start, stop) of runs of rows that are read at once: those that share a storage chunk, or touch."""
    start = stop = int(rows[0])
    for row in rows.tolist():
        far = borders[row] // unit > borders[stop] // unit and row > stop
        if far or borders[stop] - borders[start] > BLOCK_BYTES // 8:
            yield start, stop
            start = row
        stop = row + 1
    yield start, stop


def _unit(array: Any) -> int:
    """Length of a storage chunk along the first axis; 1 where the array is in one piece."""
    chunks = getattr(array, "chunks", None)
    return 1 if not chunks else max(1, int(chunks[0]))


def _part(group: Any, part: str, where: str) -> Any:
    if part not in group:
        raise DataError(
            f"{where}: no array {part!r}; a sparse matrix is {', '.join(PARTS)}, but there are "
            f"{', '.join(sorted(group.keys())) or 'none'}. Write the file again."
        )
    return group[part]


def _borders(group: Any, n_lines: int, where: str) -> np.ndarray:
    """``indptr``, checked against the arrays that it divides."""
    sizes = [_part(group, part, where).shape for part in ("data", "indices")]
    borders = np.asarray(_part(group, "indptr", where)[...]).reshape(-1).astype(np.int64)
    if group["indices"].dtype.kind not in "iu":
        raise DataError(f"{where}/indices: expected whole numbers, got dtype {group['indices'].dtype}.")
    fits = borders.size == n_lines + 1 and borders[0] == 0 and np.all(np.diff(borders) >= 0)
    if not fits or any(size != (borders[-1],) for size in sizes):
        raise DataError(
            f"{where}: sparse parts do not fit together: indptr has {borders.size} entries, expected {n_lines + 1}, "
            f"and ends at {borders[-1] if borders.size else 'nothing'}; data and indices have shapes {sizes[0]} and "
            f"{sizes[1]}. The file is cut off or damaged; write it again."
        )
    return borders
