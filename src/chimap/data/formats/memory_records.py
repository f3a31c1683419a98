"""Records in memory: values of one field, data frames, and data sets of other libraries that yield tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from chimap._frames import is_frame
from chimap._types import JSON
from chimap.data.formats.frames import checked_names_of, column_of, naming_index
from chimap.data.formats.records import BATCH, Batch, Records
from chimap.data.formats.streams import tables_of
from chimap.data.formats.table_batches import Tables

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class MemoryRecords(Records):
    """Records that are not in a file."""

    def content(self) -> JSON:
        """Return a digest as ``Records`` does."""
        total = hashlib.blake2b(digest_size=16)
        for batch in self.batches(self.columns):
            total.update(repr(batch).encode("utf-8", "surrogatepass"))
        return {"digest": total.hexdigest()}

    def check_unchanged(self) -> None:
        """Do nothing: values in memory need no check."""


class ListRecords(MemoryRecords):
    """Values of a single field."""

    def __init__(
        self, values: Iterable[object], column: str, address: str, row_names: np.ndarray | None
    ) -> None:
        self.address, self.columns, self._values = address, [column], list(values)
        self.row_names = row_names

    def batches(self, columns: list[str]) -> Iterator[Batch]:
        """Yield batches as ``Records`` does."""
        self.check_columns(columns)
        for start in range(0, len(self._values), BATCH):
            yield [(value,) for value in self._values[start : start + BATCH]]


class FrameRecords(MemoryRecords):
    """The rows of a data frame of pandas or polars, or of an Arrow table."""

    def __init__(self, table: pd.DataFrame | pl.DataFrame | pa.Table) -> None:
        self.address, self._table, self.row_names = type(table).__name__, table, naming_index(table)
        self.columns = checked_names_of(table, self.address)

    def batches(self, columns: list[str]) -> Iterator[Batch]:
        """Yield batches as ``Records`` does."""
        self.check_columns(columns)
        values = [column_of(self._table, self.columns.index(name)).tolist() for name in columns]
        for start in range(0, self._table.shape[0], BATCH):
            yield list(zip(*(column[start : start + BATCH] for column in values), strict=True))


class StreamRecords(MemoryRecords):
    """The rows of a lazy frame, a relation or a data set that yields Arrow tables."""

    def __init__(self, tables: Tables, address: str) -> None:
        self.address, self._tables = address, tables
        first = next(iter(tables()), None)
        self.columns = [] if first is None else list(first.schema.names)

    def batches(self, columns: list[str]) -> Iterator[Batch]:
        """Yield batches as ``Records`` does."""
        self.check_columns(columns)
        for table in self._tables():
            yield list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


def records_in(data: object, column: str) -> Records | None:
    """Return the records of an object in memory, or None if it holds no single fields, such as a matrix.

    Parameters
    ----------
    data : object
        A data frame, a data set, or a list, tuple, series or one-dimensional array of values.
    column : str
        Name of the field that a list of values holds.

    Examples
    --------
    >>> records_in(["a text", "a text"], "text").columns, records_in([[1, 2], [3, 4]], "text")
    (['text'], None)
    """
    if is_frame(data):
        return FrameRecords(data)
    if (tables := tables_of(data)) is not None:
        return StreamRecords(tables, type(data).__name__)
    values = _values_of(data)
    return None if values is None else ListRecords(values, column, type(data).__name__, naming_index(data))


def _values_of(data: object) -> Sequence[object] | None:
    """Return the values of a sequence, a series or a one-dimensional array; None if an entry is a row of values."""
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        is_row = len(data) > 0 and hasattr(data[0], "__len__") and not isinstance(data[0], str | bytes | dict)
        return None if is_row else data
    if hasattr(data, "to_pylist"):  # an Arrow array
        return list(data.to_pylist())
    if len(getattr(data, "shape", ())) != 1:
        return None
    to_list = getattr(data, "tolist", None) or getattr(data, "to_list", None)  # polars has the second only
    return None if to_list is None else list(to_list())
