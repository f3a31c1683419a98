"""The catalogue of what holds rows: files by their ending or content, and objects of other libraries by their type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chimap import _arrays
from chimap._frames import is_collection, is_frame
from chimap.data.frames import check_same_order
from chimap.data.source import Source
from chimap.data.table import check_order, is_path
from chimap.readers.anndata import AnnDataSource, anndata_source, is_anndata, is_anndata_store
from chimap.readers.arrow import ArrowSource
from chimap.readers.arrow_files import IPC, PARQUET
from chimap.readers.batches import is_stream, stream_source
from chimap.readers.biom import biom_source, biom_table_source, is_biom_table
from chimap.readers.csv import CsvSource, is_text_table
from chimap.readers.dask import DaskSource
from chimap.readers.io.containers import is_store
from chimap.readers.io.files import COMPRESSIONS, existing_file, is_folder
from chimap.readers.matrix_market import MatrixMarketSource
from chimap.readers.named_counts import jsonl_source
from chimap.readers.npy import NpySource
from chimap.readers.npz import NpzSource
from chimap.readers.qiime import qza_source
from chimap.readers.records import LINES
from chimap.readers.remedies import refuse_unreadable, unread_file
from chimap.readers.stored_arrays import Hdf5Source, ZarrSource
from chimap.readers.svmlight import SvmlightSource
from chimap.readers.tenx import TenXFolderSource, TenXHdf5Source, is_tenx_file, is_tenx_folder

Opener = Callable[..., Source]

# Tests on the content of a file or folder, tried in this order before its ending decides.
LAYOUTS: tuple[tuple[Callable[[str], bool], Opener], ...] = (
    (is_tenx_folder, TenXFolderSource),
    (is_tenx_file, TenXHdf5Source),
    (is_anndata_store, AnnDataSource),
    (is_text_table, CsvSource),
)


OBJECTS: tuple[tuple[Callable[[object], bool], Opener], ...] = (
    (is_anndata, anndata_source),
    (is_biom_table, biom_table_source),
    (is_stream, stream_source),
    (is_collection, DaskSource),
)

# The ids of the rows of objects, and how a user writes them.
_IDS: tuple[tuple[Callable[[object], bool], Callable[..., np.ndarray], str], ...] = (
    (is_anndata, lambda X: np.asarray(X.obs_names), "adata.obs_names"),
    (is_biom_table, lambda X: np.asarray(X.ids()), "table.ids()"),
)


TEXT_TABLES = (".csv", ".tsv", ".tab", ".shared", ".count_table")
_SVMLIGHT_ENDINGS = (".svm", ".svmlight", ".libsvm", ".txt", ".dat")

ENDINGS: dict[str, Callable[..., Source]] = {
    ".npy": NpySource,
    ".npz": NpzSource,
    ".h5ad": AnnDataSource,
    ".biom": biom_source,
    ".qza": qza_source,
    **{ending + packed: jsonl_source for ending in LINES for packed in COMPRESSIONS},
    **dict.fromkeys(PARQUET + IPC, ArrowSource),
    ".zarr.zip": ZarrSource,
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), Hdf5Source),
    **{text + packed: CsvSource for text in TEXT_TABLES for packed in COMPRESSIONS},
    **{".mtx" + packed: MatrixMarketSource for packed in COMPRESSIONS},
    **{text + packed: SvmlightSource for text in _SVMLIGHT_ENDINGS for packed in COMPRESSIONS},
}

CONTAINERS = (NpzSource, ZarrSource, Hdf5Source)
WITH_IDS = (*CONTAINERS, jsonl_source)  # which are told the array, or field, of ids when they are opened
WITH_MEMBERS = (*CONTAINERS, CsvSource, ArrowSource, AnnDataSource, TenXHdf5Source)


def layout_of(path: str) -> Opener | None:
    """Return the function that opens a file or folder, chosen by its content, or None."""
    return next((opener for holds, opener in LAYOUTS if holds(path)), None)


def opener_of(X: object) -> Opener | None:
    """Return the function that makes a source of an object in memory, or None for a plain array.

    It takes the object, labels and a ``ColumnChoice``.

    Raises DataError, with the remedy, for an object that cannot be read.
    """
    if _arrays.is_nameless(X):
        return None
    opener = next((opener for fits, opener in OBJECTS if fits(X)), None)
    if opener is None:
        refuse_unreadable(X)
    return opener


def has_columns(X: object) -> bool:
    """Return whether data may have named columns besides their bins: files, data frames, objects of other libraries."""
    return is_path(X) or is_frame(X) or opener_of(X) is not None


def check_rows_order(X: object, **given: object) -> None:
    """Refuse labels, weights or groups whose index holds the index, or the ids, of the rows in another order.

    ``given`` are the values by the name of their argument. Raises DataError that names the first such row.
    """
    for argument, values in given.items():
        check_same_order(X, values, argument=argument)
        for fits, ids, call in _IDS:
            if fits(X):
                check_order(ids(X), values, type(X).__name__, call, argument)


def opener_of_path(path: str) -> Callable[..., Source]:
    """Return the class or function that reads this file or folder."""
    if is_folder(path):
        return layout_of(path) or (ZarrSource if is_store(path) else ArrowSource)
    name = existing_file(path).name.lower()
    if (opener := layout_of(path)) is not None:
        return opener
    kind = next((ENDINGS[ending] for ending in ENDINGS if name.endswith(ending)), None)
    if kind is None:
        raise unread_file(path, ENDINGS)
    return kind
