"""Sources: rows of histograms on disk or in memory, read in chunks under a memory budget.

``open_source`` finds the right one by type and file ending. A new kind of file is one new module with a
``Source`` and one line in ``ENDINGS``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from chimap._validation import DataError
from chimap.data.class_splits import PerClassSplits
from chimap.data.formats.arrays import ArraySource
from chimap.data.formats.arrow import ArrowSource
from chimap.data.formats.arrow_parts import IPC, PARQUET
from chimap.data.formats.batches import BatchSource
from chimap.data.formats.csv import CsvSource
from chimap.data.formats.dask import DaskSource, is_collection
from chimap.data.formats.hdf5 import Hdf5Source
from chimap.data.formats.matrix_market import MatrixMarketSource
from chimap.data.formats.npy import NpySource
from chimap.data.formats.npz import NpzSource
from chimap.data.formats.svmlight import SvmlightSource
from chimap.data.formats.zarr import ZarrSource, is_store
from chimap.data.io.compressed import COMPRESSIONS
from chimap.data.io.files import existing_file, is_folder, split_member
from chimap.data.labels import check_labels, read_labels
from chimap.data.layouts import LAYOUT_ENDINGS, MEMBERED, layout_of, opener_of
from chimap.data.source import Chunk, Source
from chimap.data.split import split_source
from chimap.data.synthetic import write_histograms

__all__ = [
    "open_source",
    "Source",
    "Chunk",
    "ArraySource",
    "NpySource",
    "NpzSource",
    "ArrowSource",
    "ZarrSource",
    "Hdf5Source",
    "CsvSource",
    "MatrixMarketSource",
    "BatchSource",
    "DaskSource",
    "SvmlightSource",
    "split_source",
    "PerClassSplits",
    "write_histograms",
    "check_labels",
    "read_labels",
    "ENDINGS",
]

_TEXT = (".svm", ".svmlight", ".libsvm", ".txt", ".dat")

ENDINGS: dict[str, Callable[..., Source]] = {
    ".npy": NpySource,
    ".npz": NpzSource,
    **LAYOUT_ENDINGS,
    **dict.fromkeys(PARQUET + IPC, ArrowSource),
    ".zarr.zip": ZarrSource,
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), Hdf5Source),
    **{text + packed: CsvSource for text in (".csv", ".tsv") for packed in COMPRESSIONS},
    **{".mtx" + packed: MatrixMarketSource for packed in COMPRESSIONS},
    **{text + packed: SvmlightSource for text in _TEXT for packed in COMPRESSIONS},
}

WITH_MEMBERS = (NpzSource, ArrowSource, ZarrSource, Hdf5Source, *MEMBERED)


def open_source(path_or_array: Any, labels: Any = None) -> Source:
    """A source for an array or a file; a source comes back as it is.

    path_or_array: numpy array, scipy sparse matrix, data frame, Dask array or data frame; or the path or
    address (``s3://...``) of a file whose ending is in ``ENDINGS``, of a folder of Parquet or Feather files, or
    of a Zarr store; ``file.npz::member`` names an array in a file that holds several, or the column of lists;
    or a function that gives batches, see ``BatchSource``. labels: array; name of a column or array in the same
    file; or file of labels (``.npy``, ``.npz::member``, ``.csv``, text with one label a line); None takes the
    labels in the file, if there are any. Raises FileNotFoundError for a missing file, DataError for one that
    cannot be read or has an unknown ending, ValueError for labels on top of a source.

    >>> import numpy as np
    >>> open_source(np.eye(3), labels=["a", "b", "a"]).n_rows
    3
    """
    if isinstance(path_or_array, Source):
        if labels is not None:
            raise ValueError("labels must be None for a Source, which has its own.")
        return path_or_array
    if is_collection(path_or_array):
        return DaskSource(path_or_array, labels)
    if (opener := opener_of(path_or_array)) is not None:
        return opener(path_or_array, labels)
    if callable(path_or_array) and labels is None:
        return BatchSource(path_or_array)
    if not isinstance(path_or_array, str | os.PathLike):
        return ArraySource(path_or_array, labels)
    path, member = split_member(path_or_array)
    kind = _kind_of(path)
    if member is None:
        return kind(path, labels)
    if kind not in WITH_MEMBERS:
        raise DataError(
            f"{path}: only .npz, .h5, .zarr and .parquet files have members, so leave '::{member}' out."
        )
    return kind(path, labels, member)


def _kind_of(path: str) -> Callable[..., Source]:
    """What reads this file or folder."""
    if is_folder(path):
        return layout_of(path) or (ZarrSource if is_store(path) else ArrowSource)
    name = existing_file(path).name.lower()
    if (opener := layout_of(path)) is not None:
        return opener
    kind = next((ENDINGS[ending] for ending in ENDINGS if name.endswith(ending)), None)
    if kind is None:
        raise DataError(f"{path}: unknown kind of file. Endings that can be read: {', '.join(ENDINGS)}.")
    return kind
