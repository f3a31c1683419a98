"""Containers of named arrays, HDF5 files and Zarr stores, behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from chimap._types import JSON, Group, StoredArray
from chimap._validation import DataError
from chimap.data.rows import digest
from chimap.readers.io.files import (
    StoredFiles,
    base_name,
    existing_file,
    files_under,
    has_file,
    is_address,
    is_folder,
    needed,
)

if TYPE_CHECKING:
    from zarr.storage import StoreLike


ZARR_MARKS = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")  # the folder of a store has one of these files


class Container(ABC):
    """Named arrays, and groups of them, in one file or folder.

    Attributes
    ----------
    address : str
        Path or address, for messages.
    n_bytes : int
        Size of all files together.
    """

    address: str
    n_bytes: int

    @property
    def name(self) -> str:
        """The address without folders."""
        return base_name(self.address)

    @abstractmethod
    def opened(self) -> AbstractContextManager[Group]:
        """Open the root group for the block: ``root[name]``, ``name in root``, ``root.attrs``."""

    @abstractmethod
    def content(self) -> JSON:
        """Return bytes and digest, for fingerprints."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Raise DataError if the container has been rewritten since it was opened."""

    @abstractmethod
    def values(self, array: StoredArray) -> np.ndarray:
        """Return all of an array; text as an object array of str."""

    @contextmanager
    def naming(self, place: str = "") -> Iterator[None]:
        """Turn errors in the block into DataError with the place. Decoders raise any type, so all errors are caught."""
        try:
            yield
        except (DataError, ImportError, MemoryError):
            raise
        except Exception as error:
            raise DataError(
                f"{self.address}{place}: cannot be read ({type(error).__name__}: {error}). It is damaged, cut off or "
                "of another kind; copy or write it again."
            ) from error


class Hdf5Container(Container):
    """An HDF5 file."""

    def __init__(self, address: str) -> None:
        self._file = existing_file(address)
        self.address, self.n_bytes = self._file.address, self._file.size

    @contextmanager
    def opened(self) -> Iterator[Group]:
        """Open the root as ``Container`` does."""
        h5py = needed("h5py", "HDF5 files")
        with self._file.open() as opened:
            with self.naming():
                root = h5py.File(self._file.address if self._file.is_local else opened, "r")
            with root:
                yield root

    def content(self) -> JSON:
        """Return bytes and digest as ``Container`` does."""
        return self._file.content()

    def check_unchanged(self) -> None:
        """Check the file as ``Container`` does."""
        self._file.check_unchanged()

    def values(self, array: StoredArray) -> np.ndarray:
        """Return an array as ``Container`` does."""
        h5py = needed("h5py", "HDF5 files")
        is_text = h5py.check_string_dtype(array.dtype) is not None
        return np.asarray(array.asstr()[...].astype(object) if is_text else array[...])


class ZarrContainer(Container):
    """A Zarr store of format 2 or 3: a folder, an address, or a ``.zip``."""

    def __init__(self, address: str) -> None:
        self.address = address if is_folder(address) else existing_file(address).address
        self._stamp, self.n_bytes = _stamp_of(self.address)

    @contextmanager
    def opened(self) -> Iterator[Group]:
        """Open the root as ``Container`` does."""
        zarr = needed("zarr", "Zarr stores")
        self.check_unchanged()
        with self.naming():
            root = zarr.open(_store(zarr, self.address), mode="r")
        try:
            yield root
        finally:
            root.store.close()

    def content(self) -> JSON:
        """Return bytes and digest as ``Container`` does."""
        return _files_of(self.address).content()

    def check_unchanged(self) -> None:
        """Check the store as ``Container`` does."""
        if _stamp_of(self.address) != (self._stamp, self.n_bytes):
            raise DataError(
                f"{self.address}: the store has changed since it was opened. All passes must read the same rows; "
                "wait until it is written completely, then open it again."
            )

    def values(self, array: StoredArray) -> np.ndarray:
        """Return an array as ``Container`` does."""
        values = np.asarray(array[...])
        return values.astype(object) if values.dtype.kind in "TU" else values


def container_of(address: str) -> Container:
    """Return the container at an address: a Zarr store for a folder or a ``.zip``, else an HDF5 file."""
    is_zarr = is_folder(address) or address.lower().endswith(".zip")
    return ZarrContainer(address) if is_zarr else Hdf5Container(address)


def is_store(folder: str) -> bool:
    """Return whether a folder is a Zarr store or array."""
    return any(has_file(folder, name) for name in ZARR_MARKS)


def is_group(node: Group | StoredArray) -> bool:
    """Return whether a node of a container is a group rather than an array."""
    return not hasattr(node, "shape")


def children(node: Group | StoredArray) -> list[str]:
    """Return the names of the direct members of a group; none for an array."""
    return sorted(str(key) for key in node) if is_group(node) else []


def _store(zarr: ModuleType, address: str) -> StoreLike:
    if is_address(address):
        return zarr.storage.FsspecStore.from_url(address, read_only=True)
    if address.lower().endswith(".zip"):
        return zarr.storage.ZipStore(address, mode="r")
    return address


def _files_of(address: str) -> StoredFiles:
    return StoredFiles(files_under(address) if is_folder(address) else {"": existing_file(address)})


def _stamp_of(address: str) -> tuple[str, int]:
    """Return a digest of names, sizes and times of all files of a store, and the sum of their sizes."""
    stored = _files_of(address)
    listing = [f"{inner} {file.size} {file.stamp}" for inner, file in stored.files.items()]
    return digest(np.array(listing)), stored.n_bytes
