"""Zarr stores of format 2 and 3."""

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
            for inner in (
                os.path.relpath(os.path.join(folder, name), home).replace(os.sep, "/") for name in folders
            ):
                if key.fullmatch(inner):
                    raise DataError(
                        f"{self.path}::{self._member}: a folder in place of chunk {inner}. Write the store again."
                    )

    def _content(self) -> JSON:
        rows = self.take(np.unique(np.linspace(0, self.n_rows - 1, 16).astype(np.int64)))
        return {"bytes": self._container.n_bytes, "digest": digest(rows)}
