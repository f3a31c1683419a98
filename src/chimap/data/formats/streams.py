"""Objects of other libraries that yield batches: lazy frames, relations, data sets and loaders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from chimap._validation import DataError
from chimap.data.formats.batches import BatchSource
from chimap.data.io.files import needed
from chimap.data.label_names import shown
from chimap.data.labels import Labels, check_labels
from chimap.data.source import Source
from chimap.data.table import LABEL_NAMES

if TYPE_CHECKING:
    import pyarrow as pa


Tables: TypeAlias = "Callable[[], Iterator[pa.Table]]"
BATCH = 4096  # rows that are requested at a time


class TableBatches:
    """Batches (X, y) of an object that yields Arrow tables.

    All columns of numbers except the labels are bins, or the single column of lists; a first column of text names the
    rows.

    Parameters
    ----------
    tables : callable
        Returns a new iterator of tables or record batches at each call.
    name : str
        Name for messages.
    label : str or None
        The column of labels; None takes ``y`` or ``label``, if there is one.
    """

    def __init__(self, tables: Tables, name: str, label: str | None) -> None:
        types = needed("pyarrow", name).types
        first = next(iter(tables()), None)
        if first is None:
            raise DataError(f"{name}: no batches. Give at least one row.")
        self._tables, self._name, schema = tables, name, first.schema
        if label is not None and label not in schema.names:
            raise DataError(f"{name}: no column {label!r} for labels; there are {shown(schema.names)}.")
        self._label = label or next((column for column in LABEL_NAMES if column in schema.names), None)
        fields = [field for field in schema if field.name != self._label]
        self._id = fields[0].name if fields and _is_text(types, fields[0].type) else None
        bins = [field for field in fields if field.name != self._id]
        lists = [field.name for field in bins if _is_list(types, field.type)]
        self._list = lists[0] if lists and len(bins) == 1 else None
        wrong = [field for field in bins if not (self._list or _is_number(types, field.type))]
        if wrong or not bins:
            fault = f"{wrong[0].name!r} is {wrong[0].type}" if wrong else f"there are {shown(schema.names)}"
            raise DataError(
                f"{name}: expected columns of numbers or a single column of lists beside the labels, but {fault}. "
                "Select the columns first, or name the labels."
            )
        self._bins = [field.name for field in bins]

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns; None for lists."""
        return None if self._list else tuple(self._bins)

    def __call__(self) -> Iterator[object]:
        """Yield X, or (X, y), of each batch."""
        for number, table in enumerate(self._tables()):
            if table.num_rows:
                X, where = self._rows(table, number), f"{self._name}, batch {number}"
                yield X if self._label is None else (X, self._labels(table, where))

    def ids(self) -> np.ndarray | None:
        """Return the ids of the rows, read in a separate pass, or None."""
        if self._id is None:
            return None
        return np.array(
            [str(value) for table in self._tables() for value in table.column(self._id).to_pylist()]
        )

    def _rows(self, table: pa.Table, number: int) -> np.ndarray:
        columns = []
        for name in self._bins:
            column = table.column(name)
            if column.null_count:
                raise DataError(f"{self._name}, batch {number}: nulls in column {name!r}. Fill them first.")
            columns.append(column)
        if self._list:
            try:
                return np.array(columns[0].to_pylist(), dtype=np.float64)
            except ValueError as error:
                raise DataError(
                    f"{self._name}, batch {number}: lists of different lengths in {self._list!r} ({error}). Each row "
                    "must have all its bins."
                ) from error
        return np.stack(
            [np.asarray(column.to_numpy(zero_copy_only=False), np.float64) for column in _flat(columns)], 1
        )

    def _labels(self, table: pa.Table, where: str) -> np.ndarray:
        column = table.column(self._label)
        if column.null_count:
            raise DataError(
                f"{where}: labels {self._label!r} are missing in some rows. Fill or drop them first."
            )
        return check_labels(np.array(column.to_pylist()), table.num_rows, where)


class TableSource(BatchSource):
    """The rows of ``TableBatches``, with names of columns and ids of rows."""

    def __init__(self, batches: TableBatches, name: str) -> None:
        super().__init__(batches, name)
        self.column_names, self.row_ids = batches.names, batches.ids()


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


def stream_source(X: object, labels: Labels = None) -> Source:
    """Return a source of the batches of a lazy or streaming object of another library.

    Parameters
    ----------
    X : object
        A polars LazyFrame, a DuckDB relation, a pyarrow Dataset, a Hugging Face Dataset or a torch DataLoader.
    labels : str, default=None
        Name of a column; None for a DataLoader, whose batches are (X, y).
    """
    opener = _opener(X)
    if opener is None:
        raise TypeError(f"{type(X).__name__} does not yield batches.")
    return opener(X, labels)


def _opener(X: object) -> Callable[[object, Labels], Source] | None:
    modules = type(X).__module__.split(".")
    if modules[:3] == ["torch", "utils", "data"] and hasattr(X, "batch_size"):
        return _loader_source
    return _table_source if tables_of(X) is not None else None


def _loader_source(X: Any, labels: Labels) -> Source:
    if labels is not None:
        raise DataError("DataLoader: labels are in its batches, (X, y); leave labels out.")
    return BatchSource(LoaderBatches(X), "DataLoader")


def _table_source(X: object, labels: Labels) -> Source:
    tables, name = tables_of(X), type(X).__name__
    if labels is not None and not isinstance(labels, str):
        raise DataError(f"{name}: labels must name one of its columns; got {type(labels).__name__}.")
    assert tables is not None
    return TableSource(TableBatches(tables, name, labels), name)


def tables_of(X: object) -> Tables | None:
    """Return a function that makes a new iterator of the Arrow tables of a lazy or streaming object, or None."""
    modules, name = type(X).__module__.split("."), type(X).__name__
    is_known = (
        (modules[0], name) == ("polars", "LazyFrame")
        or modules[0] in ("duckdb", "_duckdb", "datasets")
        or (modules[0] == "pyarrow" and modules[-1] == "_dataset")
    )
    return _tables_of(X) if is_known else None


def _tables_of(X: object) -> Tables | None:
    if hasattr(X, "collect_batches"):  # polars
        return lambda: (
            frame.to_arrow() for frame in X.collect_batches(chunk_size=BATCH, maintain_order=True)
        )
    if hasattr(X, "with_format") and hasattr(X, "iter"):  # Hugging Face
        return lambda: X.with_format("arrow").iter(batch_size=BATCH)
    if hasattr(X, "__arrow_c_stream__"):  # DuckDB, and others
        return lambda: iter(needed("pyarrow", "Arrow streams").RecordBatchReader.from_stream(X))
    if hasattr(X, "to_batches"):  # pyarrow
        return lambda: iter(X.to_batches(batch_size=BATCH))
    return None


def _flat(columns: list[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
    return [column.combine_chunks() if hasattr(column, "combine_chunks") else column for column in columns]


def _is_text(types: ModuleType, kind: pa.DataType) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_list(types: ModuleType, kind: pa.DataType) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_number(types: ModuleType, kind: pa.DataType) -> bool:
    is_plain = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return bool(is_plain or types.is_decimal(kind))
