"""Parquet, Feather and Arrow IPC: a single file, or a folder of parts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from chimap import _arrays
from chimap._messages import Message, shown
from chimap._types import JSON
from chimap._unicode import composed_names
from chimap._validation import DataError
from chimap.data.gaps import are_gaps_kept
from chimap.data.label_kinds import TextLabels, numbers_or_text
from chimap.data.labels import Labels, clean_labels
from chimap.data.rows import check_distinct, chunk_dtype, digest
from chimap.data.source import BLOCK_BYTES, SeekableStream
from chimap.data.table import ColumnChoice, IdCandidate, Roles, checked_ids, instead, naming_note, roles_of, unique_ids
from chimap.readers.arrow_files import (
    ArrowPart,
    as_values,
    as_written,
    files_of,
    find_parts,
    is_decimal,
    is_list,
    is_number,
    is_written_as_text,
    part_files,
)
from chimap.readers.io.files import base_name, plain_path, split_member
from chimap.readers.label_files import labels_elsewhere

if TYPE_CHECKING:
    import pyarrow as pa

_INDEX = re.compile(r"__index_level_\d+__")  # the column in which pandas stores the index of a data frame


class FeatureColumns:
    """The bins of a table: a single column of lists, or numeric columns.

    ``schema`` is that of the first part; all others must have its columns. ``features`` names a column of lists or
    numeric columns; None takes the column of lists if there is exactly one, else all columns except ``label``.
    ``besides`` names columns that are set aside while all others are bins; None says that they were chosen. ``width``
    is None while the length of the lists is not known.
    """

    def __init__(
        self,
        schema: pa.Schema,
        where: str,
        features: str | list[str] | None,
        label: str | None,
        besides: tuple[str, ...] | None = None,
    ) -> None:
        types = _types(schema, where)
        names = [features] if isinstance(features, str) else features
        self.names = _default_columns(types, label, where) if names is None else list(names)
        self._types = {name: _type_of(types, name, where) for name in self.names}
        lists = [name for name in self.names if is_list(self._types[name])]
        self.is_list = bool(lists)
        self._takes_all = not lists and (names is None or besides is not None)
        self._label, self._besides = label, besides or ()
        if not self.names or (self.is_list and len(self.names) > 1):
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
        for name, expected in self._types.items():
            actual = types.get(name)
            if actual is None or not _same_type(actual, expected):
                came = "there is none" if actual is None else f"it is {actual}"
                raise DataError(
                    f"{part.file}: column {name!r} must be {expected} as in {first.file.name}, but {came}. "
                    "Write the part again with the columns of the others, or take it out."
                )
        others = _default_columns(types, self._label, str(part.file)) if self._takes_all else []
        extra = [name for name in others if name not in {*self.names, *self._besides}]
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


def find_label(part: ArrowPart, labels: Labels, choice: ColumnChoice, where: str) -> str | None:
    """Return the column or partition key that ``labels`` names, for None one of the usual names, else None."""
    names = [*part.schema.names, *part.keys]
    if labels is None:
        return choice.usual_label(names, where)
    return labels if isinstance(labels, str) and labels in names else None


def check_label(part: ArrowPart, first: ArrowPart, label: str) -> None:
    """Refuse a part that lacks the column of labels, or has it in another type than the first part."""
    if label in part.keys and label in first.keys:
        return
    actual, expected = (_types(each.schema, str(each.file)).get(label) for each in (part, first))
    if actual is None or expected is None or not _same_type(actual, expected):
        came = "there is none" if actual is None else f"it is {actual}"
        raise DataError(
            f"{part.file}: the labels {label!r} must be {expected or 'in the name of its folder'} as in "
            f"{first.file.name}, but {came}. Write the part again with the columns of the others, or take it out."
        )


def checked_codes(column: pa.ChunkedArray, where: str) -> np.ndarray:
    """Return the codes of a dictionary-encoded column, -1 where a value is missing; refuse codes it does not hold."""
    codes = column.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    if codes.size and (codes.min() < -1 or codes.max() >= len(column.dictionary)):
        raise DataError(f"{where}: a code outside its dictionary. The file is damaged; write it again.")
    return codes


def _default_columns(types: dict[str, pa.DataType], label: str | None, where: str) -> list[str]:
    others = [name for name in types if name != label and not _INDEX.fullmatch(name)]
    lists = [name for name in others if is_list(types[name])]
    names = lists if len(lists) == 1 else others
    if not names:
        raise DataError(f"{where}: no columns of numbers besides the labels. Name another file.")
    return names


def _types(schema: pa.Schema, where: str) -> dict[str, pa.DataType]:
    check_distinct(schema.names, where)
    return dict(zip(schema.names, schema.types, strict=True))


def _type_of(types: dict[str, pa.DataType], name: str, where: str) -> pa.DataType:
    if name not in types:
        there = instead(name, [*types], f"it holds {shown([*types], 10)}")
        raise DataError(f"{where}: no column {name!r}{there}.")
    return types[name]


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


def _lists(names: list[str], kinds: list[pa.DataType], label: str | None) -> bool:
    """Return whether a single column of lists besides the labels holds the bins."""
    return sum(is_list(kind) for name, kind in zip(names, kinds, strict=True) if name != label) == 1


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
        self._parts = find_parts(self.path)
        self._stored = files_of(self._parts)
        first, where = self._parts[0], str(self._parts[0].file)
        choice = choice or ColumnChoice()
        label = find_label(first, labels, choice, self.path)
        self._missing = choice.missing
        names, kinds = list(first.schema.names), list(first.schema.types)
        roles, first_column = self._roles(names, kinds, label, choice, features)
        self._id = None if roles.id is None else names[roles.id]
        if features is None and not _lists(names, kinds, label):
            features = [names[place] for place in roles.bins]
            takes_all = not roles.is_explicit and choice.exclude is None
            others = tuple(name for place, name in enumerate(names) if place not in {*roles.bins})
            self._columns = FeatureColumns(first.schema, where, features, label, others if takes_all else None)
        else:
            self._columns = FeatureColumns(first.schema, where, features, label)
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
        self._ends = np.cumsum(rows[order])  # number of rows up to the end of each row group, in the order of a pass
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
        self._read_ids(roles, first_column)
        used = {*self._columns.names, label, self._id}
        self.columns_aside = tuple(name for name in first.schema.names if name not in used)
        if self.row_ids is not None:
            self.held_bytes += self.row_ids.nbytes

    def _roles(
        self,
        names: list[str],
        kinds: list[pa.DataType],
        label: str | None,
        choice: ColumnChoice,
        features: str | list[str] | None,
    ) -> tuple[Roles, IdCandidate | None]:
        """Return the roles of the columns, and the first one where it may name the rows or count them."""
        index = pandas_index(self._parts[0].schema)
        place = names.index(label) if label in names else None
        if features is not None or _lists(names, kinds, label):
            return roles_of(names, place, ColumnChoice(id=choice.id), self.path, index=index), None
        roles = roles_of(names, place, choice, self.path, index=index)
        first = roles.id_candidate(names, self.path)
        if first is not None and is_written_as_text(kinds[first.place]) and first.place in roles.bins:
            named = roles.named_by(first)  # text cannot be a bin
            self.notes = (*roles.notes(self.path, first.name), naming_note(first.name, self.path))
            return named, None
        self.notes = roles.notes(self.path, None if roles.id is None else names[roles.id])
        return roles, first

    def _read_ids(self, roles: Roles, first: IdCandidate | None) -> None:
        """Read the ids of the rows, or find out whether the first column holds them or counts the rows."""
        if self._id is not None:
            where = f"{self.path}, column {self._id!r}"
            ids = np.concatenate([checked_ids(values, where) for values in self._values(self._id)])
            self.row_ids = unique_ids(ids, self.path)
        elif first is not None:
            for values in self._values(first.name):
                if not first.add(values):
                    return
            self.row_ids = first.ids()
            if self.row_ids is not None:
                self._id = first.name
                self.notes = (*roles.notes(self.path, first.name), naming_note(first.name, self.path))

    def _values(self, name: str) -> Iterator[np.ndarray]:
        """Yield the values of a column, up to 2**16 rows at a time."""
        for p, g in self._groups:
            for batch in self._parts[p].batches(g, [name], 2**16):
                yield as_values(batch.column(name), f"{self.path}, column {name!r}")

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
            return np.repeat(numbers_or_text(keys.tolist(), f"partition key {label!r} of {self.path}"), counts)
        where = f"column {label!r} of {self.path}"
        if is_written_as_text(first.schema.field(label).type):
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
                yield as_written(batch.column(label), f"column {label!r} of {self.path}")

    def _content(self) -> JSON:
        content = super()._content()
        read = [content["digest"], str(self._columns.names), str(self._groups)]
        return {**content, "digest": digest(np.array(read))}

    def _check_unchanged(self) -> None:
        super()._check_unchanged()
        if len(part_files(self.path)) != len(self._parts):
            raise DataError(
                f"{self.path}: the folder has other parts than when it was opened. All passes must read the same rows; "
                "wait until it is written completely, then open it again."
            )


def _masked(column: pa.ChunkedArray) -> np.ma.MaskedArray:
    """Return a column that is not text as an array, masked where it is null; objects if they are no plain numbers."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    missing = column.is_null().to_numpy(zero_copy_only=False)
    if pyarrow.types.is_null(column.type):
        return np.ma.MaskedArray(np.zeros(len(column)), missing)
    if not pyarrow.types.is_primitive(column.type):
        return np.ma.MaskedArray(np.array([*column.to_pylist(), None], dtype=object)[:-1], missing)
    if column.null_count:
        column = column.fill_null(False if pyarrow.types.is_boolean(column.type) else 0)
    return np.ma.MaskedArray(column.to_numpy(zero_copy_only=False), missing)


def _where(part: ArrowPart, group: int) -> str:
    return f"{part.file}, row group {group}"


def arrow_table(path: str, labels: Labels, choice: ColumnChoice) -> ArrowSource:
    """Return the rows of a Parquet, Feather or Arrow file, or of a folder; ``FILE::COLUMN`` names a column of lists."""
    address, column = split_member(path)
    return ArrowSource(address, labels, column, choice=choice)
