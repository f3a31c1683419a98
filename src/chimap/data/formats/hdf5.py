"""HDF5 files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from chimap.data.formats.stored_array import StoredArraySource
from chimap.data.io.files import DataFile, existing_file, file_digest, needed


class Hdf5Source(StoredArraySource):
    """The rows of a data set of an HDF5 file, ``X`` unless named; its first axis are rows.

    path: the file, or ``file.h5::train/X`` for a data set of another name; an address, too.
    labels: name of a data set (``y`` or ``::y``), or array or file, see ``read_labels``; None takes ``y`` from the
    group of the rows if it is there.
    member: the same as ``::member``.
    Raises FileNotFoundError, ImportError without h5py, and DataError that names file, data set and rows.

    >>> import tempfile
    >>> import h5py
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with h5py.File(f"{folder}/data.h5", "w") as file:
    ...         file["X"], file["y"] = np.eye(3), ["a", "b", "a"]
    ...     source = Hdf5Source(f"{folder}/data.h5")
    ...     source.n_rows, source.labels()
    (3, array(['a', 'b', 'a'], dtype='<U1'))
    """

    path: DataFile

    def _locate(self, address: str) -> DataFile:
        return existing_file(address)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        h5py = needed("h5py", "HDF5 files")
        opened = self.path.open()  # for a local file a check that it is there, unchanged
        with opened:
            with self._naming():
                root = h5py.File(self.path.address if self.path.is_local else opened, "r")
            with root:
                yield root

    def _names(self, root: Any) -> list[str]:
        names: list[str] = []
        root.visititems(lambda name, item: names.append(name) if hasattr(item, "shape") else None)
        return names

    def _label_values(self, array: Any) -> np.ndarray:
        h5py = needed("h5py", "HDF5 files")
        is_text = h5py.check_string_dtype(array.dtype) is not None
        return np.asarray(array.asstr()[...] if is_text else array[...])

    def _content(self) -> dict[str, Any]:
        return {"bytes": self.path.size, "digest": file_digest(self.path)}

    def _check_unchanged(self) -> None:
        self.path.check_unchanged()
