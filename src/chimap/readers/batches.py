"""Rows in batches: from a function of the user, or from lazy frames, relations, data sets and loaders."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._frames import is_frame, without_index
from chimap._messages import shown
from chimap._types import JSON, Rows
from chimap._unicode import composed_names
from chimap._validation import DataError, check_histograms
from chimap.data.frames import checked_names_of, matrix_of, naming_index
from chimap.data.label_kinds import is_text
from chimap.data.labels import IGNORE_LABELS, IgnoreLabels, LabelColumn, Labels, clean_labels
from chimap.data.rows import check_distinct, chunk_dtype, csr_rows, digest, matrix_shape
from chimap.data.source import Source, StreamSource
from chimap.data.table import ColumnChoice, check_same_names, instead
from chimap.data.views import select_columns
from chimap.readers.arrow import FeatureColumns
from chimap.readers.arrow_files import is_list
from chimap.readers.columns import DataTable, TableColumns, add_column

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class BatchSource(StreamSource):
    """Rows from an iterator of batches, such as a data loader or the chunks of a data frame.

    All batches are read once when the source is made, to learn the size and the labels.

    Parameters
    ----------
    make_batches : callable
        A function without arguments that returns a new iterator at each call, over the same rows in the same order. A
        batch is X of shape (rows, n_features), dense or scipy sparse, or a tuple (X, y). Batches may have any size,
        but a batch is in memory as a whole. The columns of data frames are matched by name to those of the first
        one, and their indices name the rows.
    name : str, default="batches"
        Name for messages.
    reads_labels : bool, default=True
        Whether y is read; rows to predict need none.

    Raises
    ------
    ValueError
        If ``make_batches`` cannot be called.
    DataError
        If a pass gives another width, other labels, or more or fewer rows than the first one; the message names the
        batch.

    Examples
    --------
    >>> X, y = np.eye(5), np.arange(5)
    >>> source = BatchSource(lambda: ((X[i : i + 2], y[i : i + 2]) for i in range(0, 5, 2)))
    >>> [chunk.X.shape for chunk in source.chunks(3)], source.labels()
    ([(3, 5), (2, 5)], array([0, 1, 2, 3, 4]))
    """

    from_files = False

    def __init__(
        self, make_batches: Callable[[], Iterable[object]], name: str = "batches", *, reads_labels: bool = True
    ) -> None:
        if not callable(make_batches):
            raise InputError(
                f"make_batches must be a function that gives a new iterator at each call; got "
                f"{type(make_batches).__name__}. An iterator serves one pass only; pass the function that makes it."
            )
        self._make, self.name, self._reads_labels = make_batches, name, reads_labels
        self._names: tuple[str, ...] | None = None  # of the first data frame, if batches are data frames
        self.n_rows = self.n_features = n_bytes = 0
        dtypes, labels, sums, ids = [], [], [], []
        for number, batch in enumerate(self._make()):
            X, y = self._parts(batch, number)
            ids.append(naming_index(batch[0] if isinstance(batch, tuple) else batch))
            if number == 0:
                self.n_features, self.is_sparse = (matrix_shape(X.shape, self._where(0))[1], _arrays.is_sparse(X))
                self._gives_labels = y is not None
            self._check(X, y, number)
            dtypes.append(chunk_dtype(X.dtype, self._where(number)))
            labels.append(y)
            sums.append(float(_arrays.stored_values(X).sum(dtype=np.float64)))
            size = _arrays.stored_bytes(X)
            n_bytes += size
            self.held_bytes = max(self.held_bytes, 2.0 * size)
            self.n_rows += X.shape[0]
        if self.n_rows == 0:
            raise DataError(f"{self.name}: no batches. Give at least one row.")
        self.column_names, self.dtype = self._names, np.result_type(*dtypes)
        dense = self.n_features * self.dtype.itemsize
        self.row_bytes = float(n_bytes / self.n_rows if self.is_sparse else dense)
        self._digest = digest(np.array(sums))
        known = [part for part in ids if part is not None]
        if len(known) == len(ids):
            self.row_ids = np.concatenate(known)
        self._y = _joined([y for y in labels if y is not None], self.name, self.n_rows)

    def _blocks(self) -> Iterator[Rows]:
        start = 0
        for number, batch in enumerate(self._make()):
            X, y = self._parts(batch, number)
            self._check(X, y, number)
            stop = start + X.shape[0]
            if self._y is not None and stop <= self.n_rows and _differ(y, self._y[start:stop]):
                raise DataError(
                    f"{self._where(number)}: other labels than in the first pass. Each call must give the same rows in "
                    "the same order; switch shuffling off."
                )
            start = stop
            rows = _arrays.as_rows(X, self.dtype)
            if _arrays.is_sparse(rows):
                rows = csr_rows(rows.data, rows.indices, rows.indptr, self.n_features, self.dtype)
            yield rows

    def _parts(self, batch: object, number: int) -> tuple[Rows, np.ndarray | None]:
        """Return X, with two axes, and y."""
        where = self._where(number)
        X, y = batch if isinstance(batch, tuple) and len(batch) == 2 else (batch, None)
        is_named = is_frame(X)
        if number and is_named != (self._names is not None):
            raise DataError(
                f"{where}: {'' if is_named else 'no '}names of columns, unlike the first batch. Give data frames, or "
                "arrays, in all batches."
            )
        if is_named:
            X = self._by_name(X, where)
        elif _arrays.is_sparse(X):
            X = _arrays.as_csr(X)
        else:
            try:
                X = np.asarray(X)
            except ValueError as error:
                raise DataError(f"{where}: not a table of numbers ({error}). Give X or (X, y).") from error
            if X.ndim < 2:
                raise DataError(f"{where}: expected rows of bins, got shape {X.shape}. Give X or (X, y).")
            X = X.reshape(X.shape[0], math.prod(X.shape[1:]))
        return X, clean_labels(y, X.shape[0], where) if y is not None and self._reads_labels else None

    def _by_name(self, frame: pd.DataFrame | pl.DataFrame | pa.Table, where: str) -> np.ndarray:
        """Return the columns of a data frame in the order of the first batch, whose names are kept."""
        frame = without_index(frame)
        names = checked_names_of(frame, where)
        self._names = self._names or tuple(names)
        check_same_names(names, self._names, where)
        places = {name: place for place, name in enumerate(names)}
        return matrix_of(frame, [places[name] for name in self._names], names, where)

    def _check(self, X: Rows, y: np.ndarray | None, number: int) -> None:
        """Refuse a batch that differs in kind from the first one."""
        if X.shape[1] != self.n_features:
            raise DataError(
                f"{self._where(number)}: {X.shape[1]} bins per row, expected {self.n_features} as in the first batch. "
                "All batches must have the same bins in the same order."
            )
        for what, has, expected in (
            ("sparse", _arrays.is_sparse(X), self.is_sparse),
            ("with labels", y is not None, self._gives_labels),
        ):
            if has != expected:
                raise DataError(
                    f"{self._where(number)}: {'' if has else 'not '}{what}, unlike the first batch. Give all batches "
                    "in the same form, X or (X, y)."
                )

    def _where(self, number: int) -> str:
        return f"{self.name}, batch {number}"

    def _content(self) -> JSON:
        return {"digest": self._digest}


def _joined(labels: list[np.ndarray], name: str, n_rows: int) -> np.ndarray | None:
    """Return the labels of all batches, masked where they are missing."""
    known = [y for y in labels if not np.ma.getmaskarray(y).all()]
    for number, y in enumerate(labels):
        if not np.ma.getmaskarray(y).all() and is_text(y) != is_text(known[0]):
            raise DataError(
                f"{name}, batch {number}: labels {y.dtype}, but {known[0].dtype} in the first batch. Labels must be "
                "all text or all numbers."
            )
    if not labels or labels[0].ndim == 2:
        return clean_labels(np.concatenate(labels), n_rows, name) if labels else None
    column = LabelColumn(name)
    for y in labels:
        column.add(y)
    return column.finish()


def _differ(y: np.ndarray | None, known: np.ndarray) -> bool:
    """Return whether labels, or which of them are missing, differ between two passes."""
    missing = np.ma.getmaskarray(known)
    if y is None or not np.array_equal(np.ma.getmaskarray(y), missing):
        return True
    found, first = np.ma.getdata(y)[~missing], np.ma.getdata(known)[~missing]
    both_nan = (found != found) & (first != first)  # entries of tasks that are missing
    return bool(np.any((found != first) & ~both_nan))


Tables: TypeAlias = "Callable[[], Iterator[pa.Table]]"


class StreamTable(DataTable):
    """The columns of an object that yields Arrow tables; ``tables`` returns a new iterator of them at each call.

    ``class_names`` holds the names of classes of columns that hold their numbers, which are read as these names.
    """

    def __init__(self, tables: Tables, address: str, class_names: Mapping[str, Sequence[str]]) -> None:
        self.address, self.tables, self._class_names = address, tables, class_names
        first = next(iter(tables()), None)
        if first is None:
            raise DataError(f"{address}: no batches. Give at least one row.")
        self.schema, self.names = first.schema, list(first.schema.names)
        self.lists = [field.name for field in first.schema if is_list(field.type)]
        check_distinct(self.names, address)

    def batches(self, columns: list[str], n_rows: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield record batches as ``DataTable`` does, in batches of the object."""
        return (self.named(_one_batch(table, columns)) for table in self.tables() if table.num_rows)

    def named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with names of classes in place of their numbers; a negative number stands for no label."""
        import pyarrow

        for place, column in enumerate(batch.schema.names):
            names = self._class_names.get(column)
            if names is None:
                continue
            codes = batch.column(place).to_pylist()
            wrong = [code for code in codes if code is not None and code >= len(names)]
            if wrong:
                raise DataError(
                    f"{self.where(column)}: class {wrong[0]}, but there are {len(names)} names of classes. Cast the "
                    "column to a ClassLabel with all names."
                )
            texts = [None if code is None or code < 0 else names[code] for code in codes]
            batch = batch.set_column(place, column, pyarrow.array(texts, "string"))
        return batch


def _one_batch(table: pa.Table, columns: list[str]) -> pa.RecordBatch:
    """Return some columns of a table, which has rows, as a single record batch."""
    chosen = table.select(columns)
    return chosen.combine_chunks().to_batches()[0] if hasattr(chosen, "combine_chunks") else chosen


class TableSource(BatchSource):
    """The rows of an object that yields Arrow tables: all columns of numbers, or the single column of lists.

    The labels are in one of its columns, or nowhere.
    """

    def __init__(self, table: StreamTable, label: str | IgnoreLabels | None, choice: ColumnChoice) -> None:
        if isinstance(label, str) and label not in table.names:
            there = instead(label, table.names, f"there are {shown(table.names)}")
            raise DataError(f"{table.address}: no column {label!r} for labels{there}.")
        self._table, where = table, table.address
        columns = TableColumns(table, label, choice)
        self._label = None if columns.label is None else table.names[columns.label]
        columns.read()
        self._bins = FeatureColumns(table.schema, where, [table.names[place] for place in columns.roles.bins])
        names = None if self._bins.is_list else composed_names(self._bins.names)
        super().__init__(lambda: self._batches(names), where)
        self.column_names, self.row_ids, self.notes = names, columns.ids, columns.notes
        self.columns_aside = columns.roles.aside(table.names)
        if self._bins.is_list and self.columns_aside:
            lists = self._bins.names[0]
            note = f"{where}: the lists in {lists!r} are the bins; {shown(self.columns_aside)} set aside."
            self.notes = (*self.notes, note)

    def _batches(self, names: tuple[str, ...] | None) -> Iterator[object]:
        """Yield X, or (X, y), of each batch."""
        first_row = 0
        for number, table in enumerate(self._table.tables()):
            if table.num_rows:
                where = self._where(number)
                check_same_names(table.schema.names, self._table.names, where)
                X = self._bins.rows(_one_batch(table, self._bins.names), where, 0)
                check_histograms(X, name=self.name, signed=True, first_row=first_row, columns=names)
                first_row += table.num_rows
                yield X if self._label is None else (X, self._labels(_one_batch(table, [self._label]), where))

    def _labels(self, batch: pa.RecordBatch, where: str) -> np.ndarray:
        """Return the labels of a batch, masked where they are missing."""
        where = f"{where}, column {self._label!r}"
        labels = LabelColumn(where)
        add_column(labels, self._table.named(batch).column(0), where)
        return labels.finish()


BATCH = 4096  # rows that are requested at a time


class LoaderBatches:
    """Batches of a torch ``DataLoader``: X, or (X, y), as numpy arrays."""

    def __init__(self, loader: Iterable[object]) -> None:
        if type(getattr(loader, "sampler", None)).__name__ in ("RandomSampler", "WeightedRandomSampler"):
            raise DataError(
                "DataLoader: it shuffles, so that each pass would read the rows in another order. Make it with "
                "shuffle=False; the order does not matter to a fit."
            )
        self._loader = loader

    def __call__(self) -> Iterator[object]:
        """Yield X, or (X, y), of each batch."""
        for batch in self._loader:
            if isinstance(batch, list | tuple) and len(batch) in (1, 2):
                yield tuple(np.asarray(part) for part in batch) if len(batch) == 2 else np.asarray(batch[0])
            elif isinstance(batch, dict):
                raise DataError(
                    f"DataLoader: batches are dictionaries of {shown(sorted(map(str, batch)))}. Give "
                    "open_source(lambda: ((b['x'], b['y']) for b in loader))."
                )
            else:
                yield np.asarray(batch)


def is_stream(X: object) -> bool:
    """Return whether X yields batches, without importing any library."""
    return _opener(X) is not None


def stream_source(X: object, labels: Labels = None, choice: ColumnChoice | None = None) -> Source:
    """Return a source of the batches of a lazy or streaming object of another library.

    It is a polars LazyFrame, a DuckDB relation, a pyarrow Dataset or Scanner, a Hugging Face Dataset or a torch
    DataLoader, whose batches are (X, y), so that no column is named as labels.
    """
    opener = _opener(X)
    if opener is None:
        raise TypeError(f"{type(X).__name__} does not yield batches.")
    return opener(X, labels, choice or ColumnChoice())


def stream_columns(X: object) -> tuple[str, ...] | None:
    """Return the names of all columns of an object that yields tables; None for any other object."""
    tables = tables_of(X) if _opener(X) is _table_source else None
    return None if tables is None else tuple(StreamTable(tables, type(X).__name__, {}).names)


def _opener(X: object) -> Callable[[object, Labels, ColumnChoice], Source] | None:
    modules = type(X).__module__.split(".")
    if modules[:3] == ["torch", "utils", "data"] and hasattr(X, "batch_size"):
        return _loader_source
    return _table_source if tables_of(X) is not None else None


def _loader_source(X: Any, labels: Labels, choice: ColumnChoice) -> Source:
    if labels is not None and labels is not IGNORE_LABELS:
        raise DataError("DataLoader: labels are in its batches, (X, y); leave labels out.")
    batches = BatchSource(LoaderBatches(X), "DataLoader", reads_labels=labels is not IGNORE_LABELS)
    return select_columns(batches, choice)


def _table_source(X: object, labels: Labels, choice: ColumnChoice) -> Source:
    tables, name = tables_of(X), type(X).__name__
    if labels is not None and labels is not IGNORE_LABELS and not isinstance(labels, str):
        raise DataError(
            f"{name}: labels must name one of its columns, or several with commas between them, 'a,b'; got "
            f"{type(labels).__name__}. Add the labels to it as a column."
        )
    assert tables is not None
    return TableSource(StreamTable(tables, name, _class_names(X)), labels, choice)


def _class_names(X: object) -> dict[str, list[str]]:
    """Return the names of the classes of each column that holds their numbers, as Hugging Face's ``ClassLabel``."""
    features = getattr(X, "features", None) or {}
    return {name: list(kind.names) for name, kind in features.items() if type(kind).__name__ == "ClassLabel"}


def tables_of(X: object) -> Tables | None:
    """Return a function that makes a new iterator of the Arrow tables of a lazy or streaming object, or None."""
    modules, name = type(X).__module__.split("."), type(X).__name__
    is_known = (
        (modules[0], name) == ("polars", "LazyFrame")
        or modules[0] in ("duckdb", "_duckdb", "datasets")
        or (modules[0] == "pyarrow" and modules[-1] == "_dataset")
    )
    return _tables_of(X) if is_known else None


def _tables_of(X: Any) -> Tables | None:
    if hasattr(X, "collect_batches"):  # polars
        return lambda: (frame.to_arrow() for frame in X.collect_batches(chunk_size=BATCH, maintain_order=True))
    if hasattr(X, "with_format") and hasattr(X, "iter"):  # Hugging Face
        return lambda: X.with_format("arrow").iter(batch_size=BATCH)
    if hasattr(X, "__arrow_c_stream__"):  # DuckDB, and others
        from pyarrow import RecordBatchReader

        return lambda: iter(RecordBatchReader.from_stream(X))
    if hasattr(X, "scanner"):  # a data set of pyarrow
        return lambda: iter(X.to_batches(batch_size=BATCH))
    if hasattr(X, "to_batches"):  # a scanner of pyarrow, which has the size of its batches
        return lambda: iter(X.to_batches())
    return None
