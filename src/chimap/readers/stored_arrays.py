"""Files of named arrays, rows and labels beside each other: HDF5 files and Zarr stores."""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import JSON, Group, StoredArray
from chimap._validation import DataError
from chimap.data.label_kinds import texts_of
from chimap.data.labels import Labels, clean_labels
from chimap.data.rows import digest
from chimap.data.table import ID_NAMES, LABEL_NAMES, only_label, unique_ids
from chimap.readers.io.containers import Container, Hdf5Container, ZarrContainer, is_group
from chimap.readers.io.files import base_name, is_address, split_member
from chimap.readers.label_files import one_column, read_labels, split_column
from chimap.readers.stored_matrices import ContainerSource, DenseRows

COLUMN_NAMES = ("column_names", "feature_names", "columns", "vocabulary")


def names_beside(
    members: Sequence[str],
    read: Callable[[str], np.ndarray],
    shape: tuple[int, int],
    where: str,
    id: str | int | None,
    group: str = "",
) -> tuple[tuple[str, ...] | None, np.ndarray | None]:
    """Return the names of the columns and the ids of the rows, each None where there are none.

    ``members`` are the names of the arrays, ``read(name)`` returns one, and ``group`` is the group of the rows, with
    its slash. Arrays of another length or with repeated names are skipped, except the array ``id`` that the caller
    named, for which they raise DataError.
    """
    columns = _first(members, COLUMN_NAMES, read, shape[1], group)
    if id is None:
        return None if columns is None else tuple(columns.tolist()), _first(members, ID_NAMES, read, shape[0], group)
    name = str(id).removeprefix("::")
    if name not in members:
        raise DataError(f"{where}: no array {name!r} of ids; it holds {', '.join(members)}.")
    ids = texts_of(np.asarray(read(name)))
    if ids.shape != shape[:1]:
        raise DataError(f"{where}::{name}: ids of shape {ids.shape} for {shape[0]} rows. Give one per row.")
    return None if columns is None else tuple(columns.tolist()), unique_ids(ids, f"{where}::{name}")


def label_beside(
    labels: Labels,
    members: Sequence[str],
    shape_of: Callable[[str], tuple[int, ...]],
    n_rows: int,
    group: str,
    rows: str,
    where: str,
) -> tuple[str | None, int | None, tuple[str, ...]]:
    """Return the array that ``labels`` names, or None looks for beside the ``rows``; the column of it; and a note.

    The array is None where labels are elsewhere, and with a note where it has several columns and none was chosen.
    Raises DataError if two arrays may hold the labels, and for ``::NAME`` of none.
    """
    if isinstance(labels, str):
        wanted = labels.removeprefix("::").strip("/")
        named, column = (wanted, None) if wanted in members else split_column(wanted)
        if labels.startswith("::") and named not in members:
            raise DataError(f"{where}: no array {named!r}; it holds {', '.join(members)}.")
        return (named, column, ()) if named in members else (None, None, ())
    there = [name for name in (*LABEL_NAMES, "Y") if group + name in members and group + name != rows]
    usual = only_label(there, where) if labels is None else None
    if usual is None:
        return None, None, ()
    name, shape = group + usual, shape_of(group + usual)
    if usual != "Y" or len(shape) == 1 or shape[1:] == (1,):
        return name, None, ()
    if shape[:1] != (n_rows,):
        return None, None, ()
    note = Message("{} holds {} columns of labels; take one with {labels=}.", name, shape[1], f"{name}[0]")
    return None, None, (note,)


def _first(
    members: Sequence[str], names: Sequence[str], read: Callable[[str], np.ndarray], size: int, group: str
) -> np.ndarray | None:
    for name in (group + each for each in names):
        if name in members:
            values = texts_of(np.asarray(read(name)))
            if values.shape == (size,) and np.unique(values).size == size:
                return values
    return None


class StoredArraySource(ContainerSource):
    """An array of rows and an array of labels in a container whose arrays are sliced like numpy arrays.

    Reading follows the chunks of the storage: each is decoded once in a pass. A storage chunk with more rows than a
    chunk of the pass is in memory as a whole; ``held_bytes`` counts it.
    """

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
        if not self._has_label_here:
            self._y = read_labels(labels, self.n_rows)

    def _find_arrays(self, root: Group, address: str, member: str | None, labels: Labels, id: str | int | None) -> None:
        """Find the rows, names and labels in the container."""
        names = self._names(root)
        self._member = self._rows_name(names, member)
        rows = root[self._member]
        where = f"{address}::{self._member}"
        if rows.shape is None:
            raise DataError(f"{where}: holds nothing, not even a shape. Name another array.")
        self._check_array(rows)
        chunked = getattr(rows, "chunks", None)
        if chunked is not None and min(chunked) < 1:
            raise DataError(f"{where}: stored in chunks of shape {tuple(chunked)}. It is damaged; write it again.")
        self._take_rows_of(self._container, DenseRows(rows, self._member, where))
        group, shape = self._member[: self._member.rfind("/") + 1], (self.n_rows, self.n_features)
        self.column_names, self.row_ids = names_beside(
            names, lambda name: self._values_of(root[name], "names"), shape, address, id, group
        )
        label, column, self.notes = label_beside(
            labels, names, lambda name: tuple(root[name].shape), self.n_rows, group, self._member, address
        )
        self._has_label_here = label is not None
        if label is not None:
            at = f"{address}::{label}"
            self._y = clean_labels(one_column(self._values_of(root[label], "labels"), column, at), self.n_rows, at)

    def _check_array(self, array: StoredArray) -> None:
        """Refuse an array that the library would misread; nothing to check by default."""

    def _values_of(self, array: StoredArray, what: str) -> np.ndarray:
        with self._container.naming(f", {what}"):
            return self._container.values(array)

    def _rows_name(self, names: list[str], member: str | None) -> str:
        if member is None and names == [""]:
            return ""  # the container is a single array
        wanted = "X" if member is None else member.strip("/")
        if wanted in names:
            return wanted
        hint = ""
        if member is None and names:
            hint = f" Name the rows as '{self.name}::{names[0]}', and their labels as '::' followed by a name."
        raise DataError(f"{self.path}: no array {wanted!r}; it holds {', '.join(names) or 'no arrays'}.{hint}")

    @contextmanager
    def _opened(self) -> Iterator[Group]:
        """Open the container for the block: a mapping from names to arrays."""
        with self._container.opened() as root:
            yield root if is_group(root) else {"": root}

    @abstractmethod
    def _names(self, root: Group) -> list[str]:
        """Return the names of all arrays in the container, with ``/`` between the steps."""


class Hdf5Source(StoredArraySource):
    """The rows of a data set in an HDF5 file, ``X`` by default. Its first axis holds the rows.

    Parameters
    ----------
    path : str or path
        The file, or ``file.h5::train/X`` for a data set of another name; addresses work too.
    labels : str, array or file of labels, default=None
        Name of a data set (``y`` or ``::y``), or an array or file, see ``read_labels``. None takes ``y`` from the
        group of the rows if it is there.
    member : str, default=None
        The data set of the rows, an alternative to ``::member``.
    id : str or int, default=None
        The data set that names the rows. None takes ``row_ids``, ``ids``, ``row_names`` or ``sample_id`` beside them.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ImportError
        Without h5py.
    DataError
        If the rows cannot be read; the message names file, data set and rows.

    Examples
    --------
    >>> import numpy as np
    >>> import tempfile
    >>> import h5py
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with h5py.File(f"{folder}/data.h5", "w") as file:
    ...         file["X"], file["y"] = np.eye(3), ["a", "b", "a"]
    ...     source = Hdf5Source(f"{folder}/data.h5")
    ...     source.n_rows, source.labels()
    (3, array(['a', 'b', 'a'], dtype='<U1'))
    """

    _kind = Hdf5Container

    def _names(self, root: Group) -> list[str]:
        names: list[str] = []
        root.visititems(lambda name, item: names.append(name) if hasattr(item, "shape") else None)
        return names


class ZarrSource(StoredArraySource):
    """The rows of an array in a Zarr store, ``X`` by default. Its first axis holds the rows.

    A missing storage chunk counts as filled with the fill value of the array: Zarr does not write empty ones.

    Parameters
    ----------
    path : str or path
        The folder of a store or of a single array, or a store in a ``.zip``; ``store.zarr::train/X`` for an array of
        another name; addresses work too.
    labels : str, array or file of labels, default=None
        Name of an array (``y`` or ``::y``), or an array or file, see ``read_labels``. None takes ``y`` from the group
        of the rows if it is there.
    member : str, default=None
        The array of the rows, an alternative to ``::member``.
    id : str or int, default=None
        The array that names the rows. None takes ``row_ids``, ``ids``, ``row_names`` or ``sample_id`` beside them.

    Raises
    ------
    FileNotFoundError
        If the store does not exist.
    ImportError
        Without zarr.
    DataError
        If the rows cannot be read; the message names store, array and rows.

    Examples
    --------
    >>> import tempfile
    >>> import zarr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     root = zarr.open_group(f"{folder}/data.zarr", mode="w")
    ...     _ = root.create_array("X", data=np.eye(4), chunks=(2, 4))
    ...     _ = root.create_array("y", data=np.array([0, 1, 0, 1]))
    ...     source = ZarrSource(f"{folder}/data.zarr")
    ...     source.n_rows, source.labels()
    (4, array([0, 1, 0, 1]))
    """

    _kind = ZarrContainer

    def _names(self, root: Group) -> list[str]:
        if isinstance(root, dict):
            return list(root)
        return sorted(name for name, item in root.members(max_depth=None) if hasattr(item, "shape"))

    def _check_array(self, array: StoredArray) -> None:
        """Refuse a folder in place of a chunk: the library reads such a chunk as zeros."""
        home = os.path.join(self.path, *self._member.split("/"))
        if is_address(self.path) or not os.path.isdir(home):
            return
        key = re.compile(rf"(c[/.])?\d+([/.]\d+){{{array.ndim - 1}}}")
        for folder, folders, _ in os.walk(home):
            for inner in (os.path.relpath(os.path.join(folder, name), home).replace(os.sep, "/") for name in folders):
                if key.fullmatch(inner):
                    raise DataError(
                        f"{self.path}::{self._member}: a folder in place of chunk {inner}. Write the store again."
                    )

    def _content(self) -> JSON:
        rows = self.take(np.unique(np.linspace(0, self.n_rows - 1, 16).astype(np.int64)))
        return {"bytes": self._container.n_bytes, "digest": digest(_arrays.to_dense(rows))}
