"""The catalogue of readers: what opens each kind of file, folder and object of another library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._frames import is_collection, is_frame
from chimap._validation import DataError
from chimap.data.frames import check_same_order
from chimap.data.labels import Labels
from chimap.data.source import Source
from chimap.data.table import ColumnChoice, check_order, is_path
from chimap.data.views import select_columns
from chimap.readers.anndata import AnnDataSource, anndata_source, is_anndata, is_anndata_store
from chimap.readers.arrow import arrow_table
from chimap.readers.arrow_files import IPC, PARQUET
from chimap.readers.batches import is_stream, stream_source
from chimap.readers.biom import biom_source, biom_table_source, is_biom_table
from chimap.readers.csv import is_text_table
from chimap.readers.dask import DaskSource
from chimap.readers.io.containers import is_store
from chimap.readers.io.files import COMPRESSIONS, existing_file, is_folder, split_member
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
from chimap.readers.text_tables import text_table

GROUP = "chimap.readers"  # of entry points, by which other packages add readers

Open = Callable[[Any, Labels, ColumnChoice], Source]


def _nothing(data: object) -> bool:
    """Return False: data is opened by the ending of its file.

    Parameters
    ----------
    data : object
        A path, or an object.
    """
    return False


@dataclass(frozen=True)
class Reader:
    """What opens one kind of file, folder or object.

    Parameters
    ----------
    open : callable
        Makes a source of the data, given the path or object, the labels and a ``ColumnChoice``; see ``of_file``.
    endings : tuple of str, default=()
        How the names of such files end, in small letters.
    takes : callable, default=nothing
        Whether a path or an object is of this kind, by its content or type. It is asked before any ending is looked at.
    has_arrays : bool, default=False
        Whether such a file holds several arrays, which have names.
    can_transpose : bool, default=False
        Whether the columns of such a file may be the rows.
    ids : callable, default=None
        Returns the ids of the rows of an object.
    ids_call : str, default=""
        How a user writes them.
    """

    open: Open
    endings: tuple[str, ...] = ()
    takes: Callable[[Any], bool] = _nothing
    has_arrays: bool = False
    can_transpose: bool = False
    ids: Callable[[Any], np.ndarray] | None = None
    ids_call: str = ""


def of_file(source: Callable[[str, Labels], Source]) -> Open:
    """Return the ``open`` of a reader for files, whose columns are chosen behind it.

    Parameters
    ----------
    source : callable
        Returns the source of a path with labels.
    """

    def opened(path: str, labels: Labels, choice: ColumnChoice) -> Source:
        address, member = split_member(path)
        if member is not None:
            raise DataError(
                f"{address}: only .npz, .h5, .h5ad, .zarr, .parquet and .shared files have members, leave "
                f"'::{member}' out."
            )
        return select_columns(source(address, labels), choice)

    return opened


def _of_members(source: Callable[..., Source], *, with_ids: bool = False) -> Open:
    """Return ``open`` for a file with members, of which ``FILE::MEMBER`` names one; ``with_ids`` for one of ids too."""

    def opened(path: str, labels: Labels, choice: ColumnChoice) -> Source:
        named = [part for part in split_member(path) if part is not None]
        if not with_ids:
            return select_columns(source(named[0], labels, *named[1:]), choice)
        opened_rows = source(named[0], labels, *named[1:], id=choice.id)
        return select_columns(opened_rows, replace(choice, id=None))

    return opened


def _matrix_market(path: str, labels: Labels, choice: ColumnChoice) -> Source:
    transpose = bool(choice.transpose)
    return of_file(lambda path, labels: MatrixMarketSource(path, labels, transpose=transpose))(path, labels, choice)


def _svmlight(path: str, labels: Labels, choice: ColumnChoice) -> Source:
    """Return the rows of svmlight text, with the first column and the width of the model that they are read for."""
    zero_based: bool | str = "auto" if choice.first_column is None else choice.first_column == 0
    width = choice.width or 1
    opened = of_file(lambda path, labels: SvmlightSource(path, labels, zero_based=zero_based, least_features=width))
    return opened(path, labels, choice)


def _json_lines(path: str, labels: Labels, choice: ColumnChoice) -> Source:
    opened = of_file(lambda path, labels: jsonl_source(path, labels, id=choice.id))
    return opened(path, labels, replace(choice, id=None))


def _path_that(holds: Callable[[str], bool]) -> Callable[[object], bool]:
    return lambda data: isinstance(data, str) and holds(data)


def _compressed(*endings: str) -> tuple[str, ...]:
    return tuple(ending + packed for ending in endings for packed in COMPRESSIONS)


# The first that takes a path or an object opens it; where none does, the first with the ending of the file.
READERS: dict[str, Reader] = {
    "npy": Reader(of_file(NpySource), (".npy",)),
    "npz": Reader(_of_members(NpzSource, with_ids=True), (".npz",), has_arrays=True),
    "10x folder": Reader(of_file(TenXFolderSource), takes=_path_that(is_tenx_folder)),
    "10x": Reader(_of_members(TenXHdf5Source), takes=_path_that(is_tenx_file)),
    "h5ad": Reader(_of_members(AnnDataSource), (".h5ad",), _path_that(is_anndata_store)),
    "biom": Reader(of_file(biom_source), (".biom",)),
    "qza": Reader(of_file(qza_source), (".qza",)),
    "json lines": Reader(_json_lines, _compressed(*LINES)),
    "zarr": Reader(
        _of_members(ZarrSource, with_ids=True),
        (".zarr.zip",),
        _path_that(lambda path: is_folder(path) and is_store(path)),
        has_arrays=True,
    ),
    "arrow": Reader(arrow_table, PARQUET + IPC, _path_that(is_folder)),
    "hdf5": Reader(_of_members(Hdf5Source, with_ids=True), (".h5", ".hdf5", ".hdf"), has_arrays=True),
    "text": Reader(
        text_table,
        _compressed(".csv", ".tsv", ".tab", ".shared", ".count_table"),
        _path_that(is_text_table),
        can_transpose=True,
    ),
    "matrix market": Reader(_matrix_market, _compressed(".mtx"), can_transpose=True),
    "svmlight": Reader(_svmlight, _compressed(".svm", ".svmlight", ".libsvm", ".txt", ".dat")),
    "AnnData": Reader(
        anndata_source, takes=is_anndata, ids=lambda X: np.asarray(X.obs_names), ids_call="adata.obs_names"
    ),
    "biom.Table": Reader(
        biom_table_source, takes=is_biom_table, ids=lambda X: np.asarray(X.ids()), ids_call="table.ids()"
    ),
    "stream": Reader(stream_source, takes=is_stream),
    "Dask": Reader(DaskSource, takes=is_collection),
}


@cache
def _of_other_packages() -> tuple[Reader, ...]:
    """Return the readers of other packages that are installed: objects with ``takes`` and ``open``."""
    found = []
    for point in entry_points(group=GROUP):
        reader = point.load()
        if not (callable(getattr(reader, "takes", None)) and callable(getattr(reader, "open", None))):
            raise InputError(
                f"the entry point {point.name!r} of {GROUP}, {point.value}, is no reader: a reader has takes(data) and "
                f"open(data, labels, choice). Mend the package, or uninstall it."
            )
        found.append(Reader(reader.open, takes=reader.takes))
    return tuple(found)


def readers_in_order() -> Iterator[Reader]:
    """Return all readers: those of other packages, which know their files better, then those of this one."""
    return iter((*_of_other_packages(), *READERS.values()))


def reader_of_path(path: str) -> Reader:
    """Return the reader of a file or folder, without a member. Raises DataError where there is none."""
    found = next((reader for reader in readers_in_order() if reader.takes(path)), None)
    if found is not None:
        return found
    name = existing_file(path).name.lower()
    found = next((reader for reader in READERS.values() if name.endswith(reader.endings or ("/",))), None)
    if found is None:
        raise unread_file(path, [ending for reader in READERS.values() for ending in reader.endings])
    return found


def reader_of(data: object) -> Reader | None:
    """Return the reader of a path or an object in memory, or None for an array, a frame or a list.

    Raises DataError, with the remedy, for what cannot be read.
    """
    if _arrays.is_nameless(data):
        return None
    if is_path(data):
        return reader_of_path(split_member(data)[0])
    found = next((reader for reader in readers_in_order() if reader.takes(data)), None)
    if found is None:
        refuse_unreadable(data)
    return found


def opener_of(X: object) -> Open | None:
    """Return the function that makes a source of an object in memory, or None for arrays, frames, lists and texts.

    It takes the object, labels and a ``ColumnChoice``. Raises DataError, with the remedy, for an object that cannot be
    read.
    """
    reader = None if is_path(X) else reader_of(X)
    return None if reader is None else reader.open


def has_columns(X: object) -> bool:
    """Return whether data may have named columns besides their bins: files, data frames, objects of other libraries."""
    return is_path(X) or is_frame(X) or opener_of(X) is not None


def check_rows_order(X: object, **given: object) -> None:
    """Refuse labels, weights or groups whose index holds the index, or the ids, of the rows in another order.

    ``given`` are the values by the name of their argument. Raises DataError that names the first such row.
    """
    with_ids = [reader for reader in READERS.values() if reader.ids is not None and reader.takes(X)]
    for argument, values in given.items():
        check_same_order(X, values, argument=argument)
        for reader in with_ids:
            assert reader.ids is not None
            check_order(reader.ids(X), values, type(X).__name__, reader.ids_call, argument)
