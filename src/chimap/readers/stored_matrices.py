"""Matrices in a container, with arrays that name their rows and columns: what single-cell and BIOM files share."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import JSON, DTypeLike, Group, Rows, StoredArray
from chimap._validation import DataError
from chimap.data.label_kinds import texts_of
from chimap.data.labels import Labels, clean_labels
from chimap.data.rows import check_columns, chunk_dtype, csr_row_bytes, csr_rows, matrix_shape
from chimap.data.source import BLOCK_BYTES, RangeSource, Read
from chimap.data.table import first_repeat
from chimap.readers.io.containers import Container
from chimap.readers.io.files import split_member
from chimap.readers.label_files import labels_elsewhere
from chimap.readers.row_file import RowFile

PIECE_BYTES = 2**20  # bytes of a sparse part read from the container at a time; at least a storage chunk
PARTS = ("data", "indices", "indptr")


class StoredRows(ABC):
    """A reader of the rows of one stored matrix, used while the container is open.

    ``where`` is the matrix, for messages. The other attributes are as in ``Source``.
    """

    is_sparse = True
    row_bytes: float
    held_bytes: float

    def __init__(self, shape: tuple[int, ...], dtype: DTypeLike, where: str) -> None:
        self.where = where
        self.n_rows, self.n_features = matrix_shape(shape, where)
        self.dtype = chunk_dtype(dtype, where)
        self.stored_rows = 1

    @abstractmethod
    def reader(self, root: Group) -> Read:
        """Return a function that reads ranges of rows. Ranges in order decode each storage chunk once."""

    def take(self, root: Group, rows: np.ndarray) -> Rows:
        """Return the rows with these increasing indices. Long gaps between them are not read."""
        read, blocks, done = self.reader(root), [], 0
        for start, stop in self._runs(rows.tolist()):
            last = int(np.searchsorted(rows, stop))
            blocks.append(_arrays.take_rows(read(start, stop), rows[done:last] - start))
            done = last
        return _arrays.stack_rows(blocks)

    def _runs(self, rows: list[int]) -> Iterator[tuple[int, int]]:
        """Yield (start, stop) of the rows that are read at once."""
        most = max(1.0, PIECE_BYTES / self.row_bytes)
        start = stop = rows[0]
        for row in rows:
            if row - stop > most / 16 or row - start > most:
                yield start, stop
                start = row
            stop = row + 1
        yield start, stop


class DenseRows(StoredRows):
    """An array whose first axis holds the rows."""

    is_sparse = False

    def __init__(self, array: StoredArray, key: str, where: str) -> None:
        super().__init__(tuple(array.shape), array.dtype, where)
        self._key = key
        self.stored_rows = min(_unit(array), self.n_rows)
        self.row_bytes = float(self.n_features * self.dtype.itemsize)
        self.held_bytes = _piece_bytes(array, BLOCK_BYTES)

    def reader(self, root: Group) -> Read:
        """Return a reader as ``StoredRows`` does."""
        pieces = _Pieces(root[self._key], self.dtype, BLOCK_BYTES)
        return lambda start, stop: pieces.between(start, stop).reshape(stop - start, -1)


class CsrRows(StoredRows):
    """A group of arrays ``data``, ``indices`` and ``indptr`` with the entries of one row after the other."""

    def __init__(self, group: Group, key: str, shape: tuple[int, ...], where: str) -> None:
        super().__init__(shape, _part(group, "data", where).dtype, where)
        self._key = key
        self._borders = _borders(group, self.n_rows, "rows", where)
        self.row_bytes = csr_row_bytes(int(self._borders[-1]), self.n_rows, self.dtype)
        self.held_bytes = (
            sum(_piece_bytes(group[part], PIECE_BYTES) for part in ("data", "indices")) + self._borders.nbytes
        )

    def reader(self, root: Group) -> Read:
        """Return a reader as ``StoredRows`` does."""
        values, columns = _entries(root[self._key], self.dtype, self.where)

        def read(start: int, stop: int) -> Rows:
            borders = self._borders[start : stop + 1]
            ends = int(borders[0]), int(borders[-1])
            indices = columns.between(*ends)
            check_columns(indices, borders, start, self.n_features, self.where)
            return csr_rows(values.between(*ends), indices, borders, self.n_features, self.dtype)

        return read


class CscRows(StoredRows):
    """The same arrays with entries by column; opening puts them in the order of rows on a temporary file."""

    def __init__(self, group: Group, key: str, shape: tuple[int, ...], where: str) -> None:
        super().__init__(shape, _part(group, "data", where).dtype, where)
        self._key = key
        self._borders = _borders(group, self.n_features, "columns", where)
        self.row_bytes = csr_row_bytes(int(self._borders[-1]), self.n_rows, self.dtype)
        self._file: RowFile | None = self._by_rows(group)
        self.held_bytes = float(self._borders.nbytes) + self._file.held_bytes

    def __getstate__(self) -> JSON:
        # A copy in another process reads the columns itself: the temporary file cannot be sent.
        return {**self.__dict__, "_file": None}

    def reader(self, root: Group) -> Read:
        """Return a reader as ``StoredRows`` does."""
        if self._file is None:
            self._file = self._by_rows(root[self._key])
        return self._file.read

    def _by_rows(self, group: Group) -> RowFile:
        n_entries = int(self._borders[-1])
        file = RowFile(self.n_rows, self.n_features, n_entries, self.dtype)
        values, rows = _entries(group, self.dtype, self.where)
        step = 2 * PIECE_BYTES
        for start in range(0, n_entries, step):
            stop = min(start + step, n_entries)
            row_indices = rows.between(start, stop)
            for row in (row_indices.min(), row_indices.max()):
                if not 0 <= row < self.n_rows:
                    raise DataError(
                        f"{self.where}: row {row} lies outside the {self.n_rows} rows of its shape. Write the file "
                        "again."
                    )
            columns = np.searchsorted(self._borders, np.arange(start, stop), side="right") - 1
            file.add(row_indices, columns, values.between(start, stop))
        file.finish()
        return file


class _Pieces:
    """Consecutive ranges of a stored array along its first axis, converted to one dtype.

    The array is read in whole storage chunks, of which the last one is kept for the next range.
    """

    def __init__(self, array: StoredArray, dtype: np.dtype, piece_bytes: int) -> None:
        self._array, self._dtype, self._step = array, dtype, _step(array, piece_bytes)
        self._first, self._kept = 0, np.empty((0, *array.shape[1:]), array.dtype)

    def between(self, start: int, stop: int) -> np.ndarray:
        """Return the entries from ``start`` up to ``stop``."""
        if _unit(self._array) == 1 and self._array.dtype == self._dtype:  # neither decoded nor converted
            entries = np.asarray(self._array[start:stop])
            if len(entries) < stop - start:
                raise EOFError(f"no entries from {start + len(entries):,} on")
            return entries
        out = np.empty((stop - start, *self._array.shape[1:]), self._dtype)
        position = start
        while position < stop:
            if not self._first <= position < self._first + len(self._kept):
                unit = _unit(self._array)
                self._first = position - position % unit
                end = min(self._first + self._step, -(-stop // unit) * unit, self._array.shape[0])
                self._kept = np.asarray(self._array[self._first : end])
            piece = self._kept[position - self._first : stop - self._first]
            if not len(piece):
                raise EOFError(f"no entries from {position:,} on")
            out[position - start : position - start + len(piece)] = piece
            position += len(piece)
        return out


def _entries(group: Group, dtype: np.dtype, where: str) -> tuple[_Pieces, _Pieces]:
    """Return readers of the values and the indices of a sparse matrix; indices are int32 unless stored wider."""
    indices = group["indices"]
    for part in PARTS[:2]:
        _check_complete(group[part], f"{where}/{part}")
    is_short = np.can_cast(indices.dtype, np.int32)
    index = np.dtype(np.int32 if is_short else np.int64)
    return _Pieces(group["data"], dtype, PIECE_BYTES), _Pieces(indices, index, PIECE_BYTES)


def _check_complete(array: StoredArray, where: str) -> None:
    """Refuse values or indices of a Zarr store that lacks some of their chunks, which the library reads as zeros.

    Zarr does not write chunks that are all zeros, but a sparse matrix has none.
    """
    written = getattr(array, "nchunks_initialized", None)  # only Zarr arrays have it
    if written is not None and written < array.nchunks:
        raise DataError(
            f"{where}: {array.nchunks - written} of {array.nchunks} chunks are not in the store; copying or writing "
            "it did not finish. Copy it again."
        )


def _unit(array: StoredArray) -> int:
    """Return the length of a storage chunk along the first axis; 1 if the array is not chunked."""
    chunks = getattr(array, "chunks", None)
    return 1 if not chunks else max(1, int(chunks[0]))


def _step(array: StoredArray, piece_bytes: int) -> int:
    """Return the number of entries along the first axis that are read at a time: whole storage chunks."""
    unit, entry = _unit(array), _entry_bytes(array)
    return unit * max(1, piece_bytes // (unit * entry))


def _entry_bytes(array: StoredArray) -> int:
    return max(1, int(np.prod(array.shape[1:], dtype=np.int64)) * np.dtype(array.dtype).itemsize)


def _piece_bytes(array: StoredArray, piece_bytes: int) -> float:
    """Return the bytes that reading an array holds: a piece, and a copy in the decoder."""
    return 2.0 * min(_step(array, piece_bytes), array.shape[0]) * _entry_bytes(array)


def _part(group: Group, part: str, where: str) -> StoredArray:
    if part not in group:
        raise DataError(
            f"{where}: no array {part!r}; a sparse matrix is {', '.join(PARTS)}, but there are "
            f"{', '.join(sorted(group)) or 'none'}. Write the file again."
        )
    return group[part]


def _borders(group: Group, n_lines: int, lines: str, where: str) -> np.ndarray:
    """Return ``indptr``, checked against the arrays that it divides; ``lines`` are rows or columns."""
    sizes = [_part(group, part, where).shape for part in ("data", "indices")]
    borders = np.asarray(_part(group, "indptr", where)[...]).reshape(-1).astype(np.int64)
    check_borders(borders, n_lines, lines, sizes, f"{where}/indptr")
    if group["indices"].dtype.kind not in "iu":
        raise DataError(f"{where}/indices: expected whole numbers, got dtype {group['indices'].dtype}.")
    return borders


def check_borders(borders: np.ndarray, n_lines: int, lines: str, sizes: Sequence[tuple[int, ...]], where: str) -> None:
    """Refuse borders of the ``lines`` of a sparse matrix that do not divide data and indices of these ``sizes``."""
    if borders.size != n_lines + 1:
        reason = f"{borders.size} entries for {n_lines} {lines}; expected {n_lines + 1}"
    elif (falls := np.flatnonzero(np.diff(borders) < 0)).size:
        reason = f"decreases at {lines.removesuffix('s')} {falls[0]}"
    elif borders[0] != 0 or any(size != (borders[-1],) for size in sizes):
        reason = (
            f"sparse parts do not fit together: indptr runs from {borders[0]} to {borders[-1]}, data and indices have "
            f"shapes {sizes[0]} and {sizes[1]}"
        )
    else:
        return
    raise DataError(f"{where}: {reason}. The file is cut off or damaged; write it again.")


class StoredSubset(StoredRows):
    """The rows and columns at these positions of a stored matrix, in the order that they are read in.

    Consecutive rows that are scattered over the whole matrix cost a pass over it each time they are read.
    """

    def __init__(self, whole: StoredRows, rows: np.ndarray, columns: np.ndarray) -> None:
        for what, places, size in (("row", rows, whole.n_rows), ("column", columns, whole.n_features)):
            if places.size and places.max() >= size:
                raise DataError(
                    f"{whole.where}: it has {size} {what}s, but {what} {places.max()} is chosen. Open the file again."
                )
        super().__init__((rows.size, columns.size), whole.dtype, whole.where)
        self._whole, self._rows, self._columns = whole, rows, columns
        self.is_sparse, self.stored_rows = whole.is_sparse, whole.stored_rows
        # Rows are read as a whole, and columns and order taken from a copy of them.
        self.row_bytes = 2 * whole.row_bytes
        self.held_bytes = whole.held_bytes + 2 * PIECE_BYTES

    def reader(self, root: Group) -> Read:
        """Return a reader as ``StoredRows`` does."""
        return lambda start, stop: self._read(root, self._rows[start:stop])

    def _read(self, root: Group, rows: np.ndarray) -> Rows:
        order = np.argsort(rows, kind="stable")
        taken = _arrays.take_columns(self._whole.take(root, rows[order]), self._columns)
        if not np.array_equal(order, np.arange(order.size)):
            taken = _arrays.take_rows(taken, np.argsort(order))
        if _arrays.is_sparse(taken):
            taken.sort_indices()
        return taken


@dataclass(frozen=True)
class Keyed:
    """A matrix of a container, the ids of its rows, the names of its columns, and what else belongs to it.

    ``columns`` are the metadata columns of the rows, which can be labels; ``y`` the labels, None if they are not in the
    container; ``matrices`` other matrices of the same rows; ``kinds`` what each column measures, and ``other_names``
    second names of the columns, and ``lineages`` their lineages in a tree, where the container says so.
    """

    rows: StoredRows
    ids: np.ndarray
    names: np.ndarray
    columns: list[str]
    y: np.ndarray | None
    matrices: tuple[str, ...] = ()
    kinds: tuple[str, ...] | None = None
    is_logged: bool = False
    other_names: tuple[str, ...] | None = None
    lineages: tuple[str, ...] | None = None


class ContainerSource(RangeSource):
    """The rows of one matrix of a container of arrays; a subclass opens it and calls ``_take_rows_of``."""

    _container: Container
    _rows: StoredRows

    def _take_rows_of(self, container: Container, rows: StoredRows) -> None:
        """Set the attributes of ``Source`` that the stored matrix determines."""
        self._container = self._stored = container
        self._rows = rows
        self.n_rows, self.n_features = rows.n_rows, rows.n_features
        self.dtype, self.is_sparse, self.stored_rows = rows.dtype, rows.is_sparse, rows.stored_rows
        self.row_bytes, self.held_bytes = rows.row_bytes, rows.held_bytes

    def take(self, rows: np.ndarray) -> Rows:
        """Return the rows with these increasing indices; storage chunks without any of them are not read."""
        with self._opened() as root, self._container.naming():
            return self._rows.take(root, np.asarray(rows))

    def _opened(self) -> AbstractContextManager[Group]:
        """Open the group of the matrix for the block."""
        return self._container.opened()

    @contextmanager
    def _reading(self) -> Iterator[Read]:
        with self._opened() as root:
            read = self._rows.reader(root)

            def named(start: int, stop: int) -> Rows:
                with self._container.naming(f", rows {start} to {stop}"):
                    return read(start, stop)

            yield named


class KeyedSource(ContainerSource):
    """A source over one matrix of a container of the kind ``_kind``; a subclass finds it in ``_found``.

    ``_remedy_for_ids`` and ``_remedy_for_names`` say what to do about ids of rows, and names of columns, that come
    twice.
    """

    _kind: Callable[[str], Container]
    _remedy_for_ids: ClassVar[str]
    _remedy_for_names: ClassVar[str]

    def __init__(self, path: str | os.PathLike[str], labels: Labels = None, member: str | None = None) -> None:
        address, member_of_path = split_member(path)
        member = member or member_of_path
        self._container = self._kind(address)
        self.name = self._container.name if member is None else f"{self._container.name}::{member}"
        with self._container.opened() as root, self._container.naming():
            arrays = self._found(root, None if member is None else member.strip("/"), labels)
        self._take_rows_of(self._container, arrays.rows)
        where = self._container.address
        self.row_ids = self._checked_ids(arrays.ids, f"{where}, ids of rows")
        self.column_names = tuple(
            checked_names(arrays.names, self.n_features, f"{where}, names of columns", self._remedy_for_names).tolist()
        )
        self._y = arrays.y if arrays.y is not None else labels_elsewhere(labels, self.n_rows, where, arrays.columns)
        self.metadata, self.matrices = tuple(arrays.columns), arrays.matrices
        self.column_kinds, self.is_logged = arrays.kinds, arrays.is_logged
        self.other_names, self.lineages = arrays.other_names, arrays.lineages

    def _checked_ids(self, ids: np.ndarray, where: str) -> np.ndarray:
        """Return the ids of the rows as text. Raises DataError for another number of them, and for repeats."""
        return checked_names(ids, self.n_rows, where, self._remedy_for_ids)

    @abstractmethod
    def _found(self, root: Group, member: str | None, labels: Labels) -> Keyed:
        """Return the matrix that ``member`` names, or the default one."""


def checked_names(values: np.ndarray, size: int, where: str, remedy: str) -> np.ndarray:
    """Return ids or names as text, of shape (size,).

    Raises DataError for another number of them, and for repeats; ``remedy`` is a sentence on what to do about these.
    """
    texts = names_for(values, size, where)
    if (repeat := first_repeat(texts)) is not None:
        raise DataError(
            Message(
                "{}: {!r} comes twice, at {} and {}. Each must occur once. {}",
                where,
                str(texts[repeat[0]]),
                repeat[0],
                repeat[1],
                remedy,
            )
        )
    return texts


def names_for(values: np.ndarray, size: int, where: str) -> np.ndarray:
    """Return ids or names as text, of shape (size,), repeats and all. Raises DataError for another number of them."""
    texts = texts_of(np.asarray(values))
    if texts.shape != (size,):
        raise DataError(f"{where}: {texts.size}, but the matrix has {size}. Write the file again.")
    return texts


def label_column(values: np.ndarray, missing: np.ndarray | None, n_rows: int, where: str) -> np.ndarray:
    """Return a column of metadata as labels, masked where they are missing. Raises DataError for another length."""
    for part in (values, values if missing is None else missing):
        if part.shape != (n_rows,):
            raise DataError(f"{where}: {part.size} values, but the matrix has {n_rows} rows. Write the file again.")
    marked = values if missing is None else np.ma.MaskedArray(values, missing)
    return clean_labels(marked, n_rows, where)
