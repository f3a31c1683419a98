"""Zarr stores, of format 2 and 3."""

from __future__ import annotations

import os
import re

import numpy as np

from chimap._types import JSON, Group, StoredArray
from chimap._validation import DataError
from chimap.data.formats.stored_array import StoredArraySource
from chimap.data.io.containers import ZarrContainer
from chimap.data.io.files import is_address
from chimap.data.rows import digest


class ZarrSource(StoredArraySource):
    """The rows of an array of a Zarr store, ``X`` unless named; its first axis are rows.

    path: the folder of a store or of a single array, or a store in a ``.zip``; ``store.zarr::train/X`` for an array of
    another name; an address, too.
    labels: name of an array (``y`` or ``::y``), or array or file, see ``read_labels``; None takes ``y`` from the
    group of the rows if it is there.
    member: the same as ``::member``.
    A storage chunk that is not there counts as filled with the fill value of the array: Zarr does not write empty ones.
    Raises FileNotFoundError, ImportError without zarr, and DataError that names store, array and rows.

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
        """Refuse a folder in the place of a chunk: the library reads such a chunk as filled with zeros."""
        home = os.path.join(self.path, *self._member.split("/"))
        if is_address(self.path) or not os.path.isdir(home):
            return
        key = re.compile(rf"(c[/.])?\d+([/.]\d+){{{array.ndim - 1}}}")
        for at, folders, _ in os.walk(home):
            for inner in (
                os.path.relpath(os.path.join(at, name), home).replace(os.sep, "/") for name in folders
            ):
                if key.fullmatch(inner):
                    raise DataError(
                        f"{self.path}::{self._member}: a folder in the place of chunk {inner}. Write it again."
                    )

    def _content(self) -> JSON:
        some = self.take(np.unique(np.linspace(0, self.n_rows - 1, 16).astype(np.int64)))
        return {"bytes": self._container.n_bytes, "digest": digest(some)}
