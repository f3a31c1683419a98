"""Parquet, Feather and Arrow IPC: a single file, or a folder of parts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from chimap import _arrays
from chimap._frames import INDEX
from chimap._messages import Message
from chimap._types import JSON
from chimap._unicode import composed_names
from chimap._validation import DataError
from chimap.data.gaps import are_gaps_kept
from chimap.data.labels import IGNORE_LABELS, Labels, numbers_or_text
from chimap.data.rows import check_distinct, chunk_dtype, digest
from chimap.data.source import BLOCK_BYTES, SeekableStream
from chimap.data.table import ColumnChoice
from chimap.readers.arrow_files import (
    ArrowPart,
    files_of,
    find_parts,
    is_decimal,
    is_list,
    is_number,
    is_written_as_text,
    part_files,
)
from chimap.readers.columns import DataTable, TableColumns
from chimap.readers.io.files import base_name, plain_path, split_member
from chimap.readers.label_files import labels_elsewhere

if TYPE_CHECKING:
    import pyarrow as pa


class FeatureColumns:
    """The bins of a table: a single column of lists, or numeric columns.

    ``schema`` is that of the first part; all others must have its bins, ``names``, and no column that it lacks unless
    the bins were chosen. ``width`` is None while the length of the lists is not known.
    """

    def __init__(self, schema: pa.Schema, where: str, names: list[str], *, are_chosen: bool = True) -> None:
        types = _types(schema, where)
        self.names = names
        self._types = {name: types[name] for name in names}
        lists = [name for name in names if is_list(self._types[name])]
        self.is_list = bool(lists)
        self._known = None if are_chosen or lists else {*schema.names}
        if self.is_list and len(names) > 1:
            raise DataError(
                f"{where}: {len(lists)} columns of lists among the features {self.names}. Name as "
                "features one column of lists, or one or more numeric columns."
            )
        self._decimals = {name for name, kind in self._types.items() if is_decimal(kind)}
        stored = {name: kind.value_type if self.is_list else kind for name, kind in self._types.items()}
        for name, kind in stored.items():
            if not is_number(kind) and name not in self._decimals:
                raise DataError(
                    f"{where}: column {name!r} is {self._types[name]}, expected numbers. Encode it, name it as the "
                    "labels or ids, or leave it out with exclude=."
                )
        dtypes = (float if name in self._decimals else kind.to_pandas_dtype() for name, kind in stored.items())
        self.dtype = np.result_type(*(chunk_dtype(dtype, where) for dtype in dtypes))
        self.width: int | None = len(self.names)
        self._keeps_gaps = are_gaps_kept()
        if self.is_list:
            self.width = getattr(self._types[self.names[0]], "list_size", None)

    def check(self, part: ArrowPart, first: ArrowPart) -> None:
        """Refuse a part that lacks a column, has one of another type than the first part, or has further columns."""
        types = _types(part.schema, str(part.file))
        for name in self.names:
            check_column(part, first, name, "column")
        extra = [name for name in types if self._known and name not in self._known and not INDEX.fullmatch(name)]
        if extra:
            raise DataError(
                f"{part.file}: column {extra[0]!r} is not in {first.file.name}, whose {len(self.names)} columns are "
                "the bins. Write the part again with the columns of the others, or take it out."
            )

    def rows(self, batch: pa.RecordBatch, where: str, first_row: int) -> np.ndarray:
        """Return the rows of a record batch, C-contiguous and of type ``dtype``.

        ``where``, the row group, and ``first_row``, the index of the first row within it, are for errors. Raises
        DataError for null values and for lists of other lengths.
        """
        for name in self.names if not self._keeps_gaps else ():
            _check_no_nulls(batch.column(name), name, where, first_row)
        if self.is_list:
            return self._from_lists(batch.column(self.names[0]), where, first_row)
        out = np.empty((batch.num_rows, len(self.names)), self.dtype)
        for place, name in enumerate(self.names):
            column = batch.column(name)
            column = column.cast("float64") if name in self._decimals else column
            out[:, place] = column.to_numpy(zero_copy_only=False)
        return out

    def _from_lists(self, column: pa.ChunkedArray, where: str, first_row: int) -> np.ndarray:
        name, values = self.names[0], column.flatten()
        if not hasattr(column.type, "list_size"):
            lengths = np.diff(column.offsets.to_numpy())
            if self.width is None:
                self.width = int(lengths[0]) if lengths.size else None
            bad = np.flatnonzero(lengths != self.width)
            if bad.size:
                raise DataError(
                    f"{where}, row {first_row + bad[0]}: {lengths[bad[0]]} values in {name!r}, expected "
                    f"{self.width} as in the first row. Fill or remove the row; lists must have one length."
                )
        if values.null_count:
            place = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0]
            raise DataError(
                f"{where}, row {first_row + place // (self.width or 1)}: a null in the list of {name!r}. Every bin "
                "must be a finite number; fill it or remove the row."
            )
        flat = values.to_numpy(zero_copy_only=False)
        return _arrays.as_rows(flat.reshape(len(column), -1), self.dtype)


def check_column(part: ArrowPart, first: ArrowPart, name: str, what: str) -> None:
    """Refuse a part that lacks a column, ``what`` it is, or has it in another type than the first part."""
    actual, expected = (_types(each.schema, str(each.file)).get(name) for each in (part, first))
    if actual is None or expected is None or not _same_type(actual, expected):
        came = "there is none" if actual is None else f"it is {actual}"
        raise DataError(
            f"{part.file}: {what} {name!r} must be {expected} as in {first.file.name}, but {came}. Write the part "
            "again with the columns of the others, or take it out."
        )


def _types(schema: pa.Schema, where: str) -> dict[str, pa.DataType]:
    check_distinct(schema.names, where)
    return dict(zip(schema.names, schema.types, strict=True))


def _same_type(first: pa.DataType, second: pa.DataType) -> bool:
    """Return whether two types are equal, apart from the names of list items and the codes of a dictionary."""
    first, second = (getattr(kind, "value_type", kind) if not is_list(kind) else kind for kind in (first, second))
    if is_list(first) and is_list(second):
        sizes = [getattr(kind, "list_size", None) for kind in (first, second)]
        return first.id == second.id and sizes[0] == sizes[1] and first.value_type == second.value_type
    return bool(first == second)


def _check_no_nulls(column: pa.ChunkedArray, name: str, where: str, first_row: int) -> None:
    if column.null_count:
        place = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0]
        raise DataError(
            Message(
                "{}, row {}: null in column {!r}. Every row needs a value there: fill it, take missing counts as zero "
                "with {missing_counts='zero'}, or remove the row, as {missing_counts='drop-row'} does.",
                where,
                first_row + place,
                name,
            )
        )


def pandas_index(schema: pa.Schema) -> list[str]:
    """Return the columns that hold the index of a data frame, according to pandas' metadata in the file."""
    text = (schema.metadata or {}).get(b"pandas")
    try:
        columns = json.loads(text)["index_columns"] if text else []
    except (ValueError, KeyError, TypeError):
        return []
    return [name for name in columns if isinstance(name, str)]


# Arrow assembles lists in buffers that grow, beside the levels of their values, and keeps the memory that it frees.
# Lists are therefore decoded in small batches, and planned at sixteen times the bytes of a batch.
_LIST_BYTES, _LIST_SHARE = 2**20, 16


class ArrowTable(DataTable):
    """A Parquet, Feather or Arrow IPC file, or a folder of such files; ``groups`` are the row groups in order."""

    def __init__(self, address: str) -> None:
        self.address, self.parts = address, find_parts(address)
        self.stored = files_of(self.parts)
        self.schema = self.parts[0].schema
        self.names, self.index = list(self.schema.names), pandas_index(self.schema)
        self.lists = [field.name for field in self.schema if is_list(field.type)]
        self.texts = [field.name for field in self.schema if is_written_as_text(field.type)]
        self.groups = [(place, group) for place, part in enumerate(self.parts) for group in range(len(part.group_rows))]
        self.group_rows = np.array([self.parts[p].group_rows[g] for p, g in self.groups], dtype=np.int64)
        self.n_rows = int(self.group_rows.sum())

    def batches(self, columns: list[str], n_rows: int = 2**16) -> Iterator[pa.RecordBatch]:
        """Yield record batches as ``DataTable`` does."""
        for part, group in self.groups:
            yield from self.parts[part].batches(group, columns, n_rows)

    def reorder(self, order: np.ndarray) -> None:
        """Put the row groups in another order."""
        self.groups, self.group_rows = [self.groups[place] for place in order.tolist()], self.group_rows[order]


class ArrowSource(SeekableStream):
    """The rows of a Parquet, Feather (version 2) or Arrow IPC file, or of a folder of such files.

    The parts of a folder follow each other in the order of their paths, and their row groups in the order of the file.
    In folders named ``key=value`` (Hive partitions), the key can be the labels. A row group is decoded a few MiB at a
    time, so that memory does not grow with its size.

    Parameters
    ----------
    path : str or path
        File or folder; addresses work too.
    labels : str, array or file of labels, default=None
        Name of the column or partition key of labels, or an array or file, see ``read_labels``. None takes the column
        ``y``, else ``label``, if there is one.
    features : str or list of str, default=None
        Name of a column of lists of equal length, or names of numeric columns. None takes the column of lists if there
        is exactly one, else all columns except the labels.
    shuffle : bool, default=False
        Whether row groups come in a random order, the same in each pass: for files that are sorted by class, and
        learners that look at some rows first.
    random_state : int, default=None
        Seed of that order.
    choice : Choice, default=None
        Which columns are bins and ids.

    Raises
    ------
    FileNotFoundError
        If the file or folder does not exist.
    DataError
        For columns that are missing or of another type in a part, nulls, lists of different lengths, and damaged
        files. The message names part, row group and row.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow, pyarrow.parquet
    >>> table = pyarrow.table({"a": [0.5, 0.0], "b": [0.5, 1.0], "species": ["cat", "dog"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pyarrow.parquet.write_table(table, f"{folder}/rows.parquet")
    ...     source = ArrowSource(f"{folder}/rows.parquet", labels="species")
    ...     next(source.chunks(2)).X, source.labels()
    (array([[0.5, 0.5],
           [0. , 1. ]]), array(['cat', 'dog'], dtype='<U3'))
    """

    is_sparse = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        labels: Labels = None,
        features: str | list[str] | None = None,
        *,
        shuffle: bool = False,
        random_state: int | None = None,
        choice: ColumnChoice | None = None,
    ) -> None:
        self.path = plain_path(path)
        self.name = base_name(self.path)
        table = self._table = ArrowTable(self.path)
        self._stored = table.stored
        if not table.names:
            raise DataError(f"{self.path}: no columns of numbers besides the labels. Name another file.")
        if not table.n_rows:
            raise DataError(f"{self.path}: no rows. Write it again.")
        self.n_rows, self.stored_rows = table.n_rows, int(table.group_rows.max())
        stored = np.split(np.arange(self.n_rows), np.cumsum(table.group_rows)[:-1])
        order = np.arange(len(stored))
        if shuffle:
            order = np.random.default_rng(random_state).permutation(len(stored))
            table.reorder(order)
        self._ends = np.cumsum(table.group_rows)  # number of rows up to the end of each row group, in order of a pass
        choice, names, first = choice or ColumnChoice(), table.names, table.parts[0]
        if labels is None:
            labels = choice.usual_label([*names, *first.keys], self.path)
        is_key = isinstance(labels, str) and labels in first.keys and labels not in names
        named = [features] if isinstance(features, str) else features
        columns = TableColumns(table, IGNORE_LABELS if labels is None or is_key else labels, choice, named)
        if columns.label is not None:
            for part in table.parts[1:]:
                check_column(part, first, names[columns.label], "the labels")
        columns.read()
        roles, self.row_ids, self.notes = columns.roles, columns.ids, columns.notes
        bins = named or [names[place] for place in roles.bins]
        are_chosen = roles.is_explicit or choice.exclude is not None
        self._columns = FeatureColumns(first.schema, str(first.file), bins, are_chosen=are_chosen)
        for part in table.parts[1:]:
            self._columns.check(part, first)
        self._y, self.label_order = columns.y, columns.order
        if is_key:
            keys = [table.parts[p].keys[str(labels)] for p, _ in table.groups]
            values = numbers_or_text(keys, f"partition key {labels!r} of {self.path}")
            self._y = np.repeat(values, table.group_rows)
        elif columns.label is None:
            self._y = labels_elsewhere(labels, self.n_rows, self.path, names)
            if self._y is not None:
                self._y = self._y[np.concatenate([stored[place] for place in order])]
        if not self._columns.is_list:
            self.column_names = composed_names(bins)
        self.columns_aside = roles.aside(names)
        self.n_features, self.dtype = self._width(), self._columns.dtype
        self.row_bytes = float(self.n_features * self.dtype.itemsize)
        self.held_bytes = float(
            max(part.held_bytes(bins, self.row_bytes) for part in table.parts)
            + self._columns.is_list * _LIST_SHARE * _LIST_BYTES
            + (0 if self.row_ids is None else self.row_ids.nbytes)
        )

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows with these increasing indices; row groups without any of them are not read."""
        out, done = np.empty((len(rows), self.n_features), self.dtype), 0
        starts = np.concatenate([[0], self._ends])
        for place, (p, g) in enumerate(self._table.groups):
            last = int(np.searchsorted(rows, starts[place + 1]))
            wanted = rows[done:last] - starts[place]
            if not wanted.size:
                continue
            for start, block in self._decoded(self._table.parts[p], g):
                local = wanted[(wanted >= start) & (wanted < start + block.shape[0])] - start
                out[done : done + local.size] = block[local]
                done += local.size
        return out

    def _blocks_between(self, first: int, stop: int) -> Iterator[np.ndarray]:
        self._check_unchanged()
        starts = np.concatenate([[0], self._ends])
        for place, (p, g) in enumerate(self._table.groups):
            if starts[place + 1] <= first or starts[place] >= stop:
                continue
            for start, block in self._decoded(self._table.parts[p], g):
                begins = int(starts[place]) + start
                wanted = block[max(0, first - begins) : max(0, stop - begins)]
                if wanted.shape[0]:
                    yield wanted

    def _decoded(self, part: ArrowPart, group: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield consecutive blocks of a row group, each with the index of its first row within the group."""
        start = 0
        block = _LIST_BYTES if self._columns.is_list else BLOCK_BYTES
        for batch in part.batches(group, self._columns.names, max(1, int(block / self.row_bytes))):
            yield start, self._columns.rows(batch, _where(part, group), start)
            start += batch.num_rows

    def _width(self) -> int:
        """Return the number of bins per row; if lists have no fixed length, the length of the first one."""
        if self._columns.width is None:
            p, g = self._table.groups[int(np.flatnonzero(self._table.group_rows)[0])]
            part = self._table.parts[p]
            self._columns.rows(next(part.batches(g, self._columns.names, 1)), _where(part, g), 0)
        if not self._columns.width:
            raise DataError(f"{self.path}: the lists of the first row are empty. Every row needs its bins.")
        return self._columns.width

    def _content(self) -> JSON:
        content = super()._content()
        read = [content["digest"], str(self._columns.names), str(self._table.groups)]
        return {**content, "digest": digest(np.array(read))}

    def _check_unchanged(self) -> None:
        super()._check_unchanged()
        if len(part_files(self.path)) != len(self._table.parts):
            raise DataError(
                f"{self.path}: the folder has other parts than when it was opened. All passes must read the same rows; "
                "wait until it is written completely, then open it again."
            )


def _where(part: ArrowPart, group: int) -> str:
    return f"{part.file}, row group {group}"


def arrow_table(path: str, labels: Labels, choice: ColumnChoice) -> ArrowSource:
    """Return the rows of a Parquet, Feather or Arrow file, or of a folder; ``FILE::COLUMN`` names a column of lists."""
    address, column = split_member(path)
    return ArrowSource(address, labels, column, choice=choice)
