"""HDF5 files."""

from __future__ import annotations

from chimap._types import Group
from chimap.data.formats.stored_array import StoredArraySource
from chimap.data.io.containers import Hdf5Container


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
