"""Rows and labels as named arrays of one container that stores them in chunks: what Zarr and HDF5 share."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from chimap import _arrays
from chimap._types import JSON, Group, StoredArray
from chimap._validation import DataError
from chimap.data.io.containers import Container, is_group
from chimap.data.io.files import base_name, split_member
from chimap.data.io.stream import BLOCK_BYTES, SeekableStream
from chimap.data.labels import Labels, clean_labels, one_column, read_labels
from chimap.data.rows import chunk_dtype, matrix_shape
from chimap.data.stored_names import label_beside, named_array, names_beside

_SCATTERED_BYTES = 2**16  # bytes read at a time where single rows are needed from an array without chunks


class StoredArraySource(SeekableStream):
    """An array of rows and an array of labels in a container whose arrays are sliced like numpy arrays.

    Reading follows the chunks of the storage: each is decoded once in a pass. A storage chunk with more rows than a
    chunk of the pass is in memory as a whole; ``held_bytes`` counts it.
    """

    is_sparse = False
    from_files = True
    _kind: Callable[[str], Container]

    def __init__(
        self,
        path: str | os.PathLike[str],
        labels: Labels = None,
        member: str | None = None,
        *,
        id: str | int | None = None,
    ) -> None:
        address, member_of_path = split_member(path)
        member = member or member_of_path
        self._container = self._kind(address)
        self.path = self._container.address
        base = base_name(address)
        self.name = base if member is None else f"{base}::{member}"
        with self._opened() as root, self._container.naming():
            self._find_arrays(root, address, member, labels, id)
        if self._y is None:
            self._y = read_labels(None if self._has_label_here else labels, self.n_rows)
        self.has_labels = self._y is not None

    def _find_arrays(
        self, root: Group, address: str, member: str | None, labels: Labels, id: str | int | None
    ) -> None:
        """Find the rows, names and labels in the container."""
        names = self._names(root)
        self._member = self._rows_name(names, member)
        rows = root[self._member]
        where = f"{address}::{self._member}"
        if rows.shape is None:
            raise DataError(f"{where}: holds nothing, not even a shape. Name another array.")
        self._check_array(rows)
        self.n_rows, self.n_features = matrix_shape(tuple(rows.shape), where)
        self.dtype = chunk_dtype(rows.dtype, where)
        stored = self.n_features * np.dtype(rows.dtype).itemsize
        chunked = getattr(rows, "chunks", None)
        if chunked is not None and min(chunked) < 1:
            raise DataError(
                f"{where}: stored in chunks of shape {tuple(chunked)}. It is damaged; write it again."
            )
        unit = 1 if chunked is None else min(int(chunked[0]), self.n_rows)
        self.stored_rows = unit
        self._block_rows = min(self.n_rows, unit * max(1, BLOCK_BYTES // (unit * stored)))
        self._scattered_rows = unit if chunked is not None else max(1, _SCATTERED_BYTES // stored)
        self.row_bytes = float(self.n_features * self.dtype.itemsize)
        # A block is held as it is stored, as floats, and as a copy in the decoder.
        self.held_bytes = self._block_rows * (2.0 * stored + self.row_bytes)
        group, shape = self._member[: self._member.rfind("/") + 1], (self.n_rows, self.n_features)
        self.column_names, self.row_ids = names_beside(
            names, lambda name: self._values_of(root[name]), shape, address, id, group
        )
        label, column = _label_name(names, labels)
        if labels is None:
            label, self.notes = label_beside(
                names, lambda name: tuple(root[name].shape), self.n_rows, group, self._member, address
            )
        self._has_label_here = label is not None
        self._y = None if label is None else self._labels_of(root[label], column, f"{address}::{label}")

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows with these increasing indices; storage chunks without any of them are not read."""
        out = np.empty((len(rows), self.n_features), self.dtype)
        blocks = np.asarray(rows) // self._scattered_rows
        with self._opened() as root:
            array = self._array(root)
            for block in np.unique(blocks):
                first, last = np.searchsorted(blocks, (block, block + 1))
                start = int(block) * self._scattered_rows
                stop = min(start + self._scattered_rows, self.n_rows)
                out[first:last] = self._read(array, start, stop)[np.asarray(rows)[first:last] - start]
        return out

    def _blocks_between(self, first: int, stop: int) -> Iterator[np.ndarray]:
        step = self._block_rows
        with self._opened() as root:
            array = self._array(root)
            for start in range(first - first % step, stop, step):
                yield self._read(array, max(start, first), min(start + step, stop))

    def _read(self, array: StoredArray, start: int, stop: int) -> np.ndarray:
        with self._container.naming(f", rows {start} to {stop}"):
            rows = np.asarray(array[start:stop])
        return _arrays.as_rows(rows.reshape(rows.shape[0], -1), self.dtype)

    def _array(self, root: Group) -> StoredArray:
        with self._container.naming():
            return root[self._member]

    def _check_array(self, array: StoredArray) -> None:
        """Refuse an array that the library would misread; nothing to check by default."""

    def _values_of(self, array: StoredArray) -> np.ndarray:
        with self._container.naming(", names"):
            return self._container.values(array)

    def _labels_of(self, array: StoredArray, column: int | None, where: str) -> np.ndarray:
        with self._container.naming(", labels"):
            values = self._container.values(array)
        return clean_labels(one_column(values, column, where), self.n_rows, where)

    def _rows_name(self, names: list[str], member: str | None) -> str:
        if member is None and names == [""]:
            return ""  # the container is a single array
        wanted = "X" if member is None else member.strip("/")
        if wanted in names:
            return wanted
        hint = ""
        if member is None and names:
            hint = (
                f" Name the rows as '{self.name}::{names[0]}', and their labels as '::' followed by a name."
            )
        raise DataError(
            f"{self.path}: no array {wanted!r}; it holds {', '.join(names) or 'no arrays'}.{hint}"
        )

    @contextmanager
    def _opened(self) -> Iterator[Group]:
        """Open the container for the block: a mapping from names to arrays."""
        with self._container.opened() as root:
            yield root if is_group(root) else {"": root}

    def _content(self) -> JSON:
        return self._container.content()

    def _check_unchanged(self) -> None:
        self._container.check_unchanged()

    @abstractmethod
    def _names(self, root: Group) -> list[str]:
        """Return the names of all arrays in the container, with ``/`` between the steps."""


def _label_name(names: list[str], labels: Labels) -> tuple[str | None, int | None]:
    """Return the array of labels and the column of it that ``labels`` names; None if it is not in the container."""
    if not isinstance(labels, str):
        return None, None
    name, column = named_array(names, labels.removeprefix("::").strip("/"))
    if labels.startswith("::") and name not in names:
        raise DataError(f"labels {labels!r}: no array {name!r}; there are {', '.join(names)}.")
    return (name, column) if name in names else (None, None)
