"""Parquet, Feather and Arrow IPC: a single file, or a folder of parts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from chimap._types import JSON
from chimap._unicode import composed_names
from chimap._validation import DataError
from chimap.data.formats.arrow_columns import (
    FeatureColumns,
    as_values,
    check_label,
    checked_codes,
    find_label,
    is_text,
)
from chimap.data.formats.arrow_parts import ArrowPart, find_parts, part_files
from chimap.data.formats.arrow_roles import columns_of
from chimap.data.ids import check_not_counting, checked_ids, counts, unique_ids
from chimap.data.io.files import base_name, file_digest, needed, plain_path
from chimap.data.io.stream import BLOCK_BYTES, SeekableStream
from chimap.data.label_names import labels_elsewhere
from chimap.data.label_text import TextLabels
from chimap.data.labels import Labels, clean_labels, numbers_or_text
from chimap.data.rows import digest
from chimap.data.table import ColumnChoice

if TYPE_CHECKING:
    import pyarrow as pa


# Arrow assembles lists in buffers that grow, beside the levels of their values, and keeps the memory that it frees.
# Lists are therefore decoded in small batches, and planned at sixteen times the bytes of a batch.
_LIST_BYTES, _LIST_SHARE = 2**20, 16


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
    ImportError
        Without pyarrow.
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
    from_files = True

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
        self._parts = find_parts(self.path)
        first = self._parts[0]
        choice = choice or ColumnChoice()
        label = find_label(first, labels, choice, self.path)
        self._missing = choice.missing
        roles = columns_of(first, label, choice, features, self.path)
        self._id, self.notes = roles.id, roles.notes
        self._columns = FeatureColumns(first, roles.features, label, roles.beside)
        if not self._columns.is_list:
            self.column_names = composed_names(self._columns.names)
        for part in self._parts[1:]:
            self._columns.check(part, first)
        groups = [(p, g) for p, part in enumerate(self._parts) for g in range(len(part.group_rows))]
        rows = np.array([self._parts[p].group_rows[g] for p, g in groups], dtype=np.int64)
        self.n_rows, self.stored_rows = int(rows.sum()), int(rows.max(initial=1))
        if self.n_rows == 0:
            raise DataError(f"{self.path}: no rows. Write it again.")
        order = np.arange(len(groups))
        if shuffle:
            order = np.random.default_rng(random_state).permutation(len(groups))
        self._groups = [groups[i] for i in order]
        self._ends = np.cumsum(
            rows[order]
        )  # number of rows up to the end of each row group, in the order of a pass
        self.n_features, self.dtype = self._width(), self._columns.dtype
        self.row_bytes = float(self.n_features * self.dtype.itemsize)
        self.held_bytes = float(
            max(part.held_bytes(self._columns.names, self.row_bytes) for part in self._parts)
            + self._columns.is_list * _LIST_SHARE * _LIST_BYTES
        )
        if label is None:
            self._y = labels_elsewhere(labels, self.n_rows, str(self.path), first.schema.names)
            if self._y is not None and shuffle:
                stored = np.split(np.arange(self.n_rows), np.cumsum(rows)[:-1])
                self._y = self._y[np.concatenate([stored[i] for i in order])]
        else:
            self._y = self._label_column(label)
        self.has_labels = self._y is not None
        self._read_ids(roles.check_first)
        used = {*self._columns.names, label, self._id}
        self.columns_aside = tuple(name for name in first.schema.names if name not in used)
        if self.row_ids is not None:
            self.held_bytes += self.row_ids.nbytes

    def _read_ids(self, first: str | None) -> None:
        """Read the ids of the rows, or check whether the first column is an index."""
        if self._id is not None:
            where = f"{self.path}, column {self._id!r}"
            ids = np.concatenate([checked_ids(values, where) for values in self._values(self._id)])
            self.row_ids = unique_ids(ids, self.path)
        elif first is not None:
            start = 0
            for values in self._values(first):
                if values.dtype.kind not in "iuf" or not counts(values, start):
                    return
                start += values.size
            check_not_counting(first, start, self.path)

    def _values(self, name: str) -> Iterator[np.ndarray]:
        """Yield the values of a column, up to 2**16 rows at a time."""
        for p, g in self._groups:
            for batch in self._parts[p].batches(g, [name], 2**16):
                yield as_values(batch.column(name))

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows with these increasing indices; row groups without any of them are not read."""
        out, done = np.empty((len(rows), self.n_features), self.dtype), 0
        starts = np.concatenate([[0], self._ends])
        for place, (p, g) in enumerate(self._groups):
            last = int(np.searchsorted(rows, starts[place + 1]))
            wanted = rows[done:last] - starts[place]
            if not wanted.size:
                continue
            for start, block in self._decoded(self._parts[p], g):
                local = wanted[(wanted >= start) & (wanted < start + block.shape[0])] - start
                out[done : done + local.size] = block[local]
                done += local.size
        return out

    def _blocks_between(self, first: int, stop: int) -> Iterator[np.ndarray]:
        self._check_unchanged()
        starts = np.concatenate([[0], self._ends])
        for place, (p, g) in enumerate(self._groups):
            if starts[place + 1] <= first or starts[place] >= stop:
                continue
            for start, block in self._decoded(self._parts[p], g):
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
            p, g = next(pg for pg in self._groups if self._parts[pg[0]].group_rows[pg[1]])
            batch = next(self._parts[p].batches(g, self._columns.names, 1))
            self._columns.rows(batch, _where(self._parts[p], g), 0)
        if not self._columns.width:
            raise DataError(f"{self.path}: the lists of the first row are empty. Every row needs its bins.")
        return self._columns.width

    def _label_column(self, label: str) -> np.ndarray:
        first = self._parts[0]
        for part in self._parts:
            check_label(part, first, label)
        if label in first.keys:
            keys = np.array([self._parts[p].keys[label] for p, _ in self._groups], dtype=object)
            counts = np.diff(self._ends, prepend=0)
            return np.repeat(
                numbers_or_text(keys.tolist(), f"partition key {label!r} of {self.path}"), counts
            )
        where = f"column {label!r} of {self.path}"
        if is_text(first, label):
            return self._text_labels(label, where)
        batches = [_masked(batch) for batch in self._columns_of(label)]
        return clean_labels(np.ma.concatenate(batches), self.n_rows, where)

    def _text_labels(self, label: str, where: str) -> np.ndarray:
        """Return labels of text, encoded as they are read. Text stays text, even where all of it are numbers."""
        texts = TextLabels(where, self._missing, as_text=True)
        for column in self._columns_of(label):
            coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
            texts.add_coded(coded.dictionary.to_pylist(), checked_codes(coded, where))
        return texts.finish()

    def _columns_of(self, label: str) -> Iterator[pa.ChunkedArray]:
        for p, g in self._groups:
            for batch in self._parts[p].batches(g, [label], 2**16):
                yield batch.column(label)

    def _content(self) -> JSON:
        places = [(part.file.name, part.file.size, file_digest(part.file)) for part in self._parts]
        return {
            "bytes": sum(size for _, size, _ in places),
            "digest": digest(np.array([str(places), str(self._columns.names), str(self._groups)])),
        }

    def _check_unchanged(self) -> None:
        for part in self._parts:
            part.file.check_unchanged()
        if len(part_files(self.path)) != len(self._parts):
            raise DataError(
                f"{self.path}: the folder has other parts than when it was opened. All passes must read the same rows; "
                "wait until it is written completely, then open it again."
            )


def _masked(column: pa.ChunkedArray) -> np.ma.MaskedArray:
    """Return a column that is not text as an array, masked where it is null; objects if they are no plain numbers."""
    pyarrow = needed("pyarrow", "Arrow files")
    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pyarrow.types.is_decimal(column.type):
        column = column.cast(pyarrow.float64())
    missing = column.is_null().to_numpy(zero_copy_only=False)
    if pyarrow.types.is_null(column.type):
        return np.ma.MaskedArray(np.zeros(len(column)), missing)
    if not pyarrow.types.is_primitive(column.type) or pyarrow.types.is_temporal(column.type):
        return np.ma.MaskedArray(np.array([*column.to_pylist(), None], dtype=object)[:-1], missing)
    if column.null_count:
        column = column.fill_null(False if pyarrow.types.is_boolean(column.type) else 0)
    return np.ma.MaskedArray(column.to_numpy(zero_copy_only=False), missing)


def _where(part: ArrowPart, group: int) -> str:
    return f"{part.file}, row group {group}"
