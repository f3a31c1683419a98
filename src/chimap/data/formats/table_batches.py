"""Batches of Arrow tables as rows: which columns are bins, which one holds the labels, and which one names the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from chimap._unicode import composed_names
from chimap._validation import DataError, check_histograms
from chimap.data.formats.batches import BatchSource
from chimap.data.ids import check_not_counting, counts, index_notes, naming_note, unique_ids
from chimap.data.io.files import needed
from chimap.data.label_names import shown
from chimap.data.labels import Unread, clean_labels
from chimap.data.rows import check_distinct
from chimap.data.table import ColumnChoice, Roles, check_same_names, roles_of

if TYPE_CHECKING:
    import pyarrow as pa


Tables: TypeAlias = "Callable[[], Iterator[pa.Table]]"


class TableBatches:
    """Batches (X, y) of an object that yields Arrow tables.

    All columns of numbers except the labels are bins, or the single column of lists, unless the caller chose others. A
    first column of text without repeats names the rows.

    Parameters
    ----------
    tables : callable
        Returns a new iterator of tables or record batches at each call.
    name : str
        Name for messages.
    label : str, UNREAD or None
        The column of labels; None takes ``y`` or ``label``, if there is one.
    choice : ColumnChoice
        Which columns are bins and ids.
    class_names : dict from str to list of str
        Names of the classes, for columns that hold their numbers.

    Attributes
    ----------
    ids : ndarray of shape (n,) or None
        Names of the rows.
    notes, columns_aside : tuple of str
        Notes for the user, and the columns that are neither bins, labels nor ids.
    """

    def __init__(
        self,
        tables: Tables,
        name: str,
        label: str | Unread | None,
        choice: ColumnChoice,
        class_names: Mapping[str, Sequence[str]],
    ) -> None:
        self._types = needed("pyarrow", name).types
        self._tables, self._name, schema = tables, name, schema_of(tables, name)
        names = self._columns = list(schema.names)
        if isinstance(label, str) and label not in names:
            raise DataError(f"{name}: no column {label!r} for labels; there are {shown(names)}.")
        self._label = label if isinstance(label, str) else None
        if label is None:
            self._label = choice.usual_label(names, name)
        self._class_names = class_names.get(self._label or "")
        lists = [field.name for field in schema if _is_list(self._types, field.type)]
        roles = _roles(names, self._label, lists, choice, name)
        bins = [names[place] for place in roles.bins]
        self._id = None if roles.id is None else names[roles.id]
        self.ids, notes = None, roles.notes(name, self._id)
        if self._id is not None:
            ids = np.array(self._texts(self._id))
            notes = (*notes, *index_notes(self._id, ids, name)) if roles.is_index else notes
            repeats = roles.is_index and np.unique(ids).size < ids.size
            self.ids = None if repeats else unique_ids(ids, name)
        first = next((word for word in names if word != self._label), None)
        if first is not None and self._id is None and (first not in bins or not roles.is_explicit):
            bins, notes = self._without_index(schema, first, bins, notes)
        self._list = bins[0] if len(bins) == 1 and bins[0] in lists else None
        self._check(schema, bins)
        self.columns_aside = tuple(word for word in names if word not in {*bins, self._label, self._id})
        if self._list and self.columns_aside:
            notes = (
                *notes,
                f"{name}: the lists in {self._list!r} are the bins; {shown(self.columns_aside)} set aside.",
            )
        self._bins, self.notes = bins, notes

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns; None for lists."""
        return None if self._list else composed_names(self._bins)

    def __call__(self) -> Iterator[object]:
        """Yield X, or (X, y), of each batch."""
        first_row = 0
        for number, table in enumerate(self._tables()):
            if table.num_rows:
                check_same_names(table.schema.names, self._columns, f"{self._name}, batch {number}")
                X = self._rows(table, number)
                check_histograms(X, name=self._name, signed=True, first_row=first_row, columns=self.names)
                first_row += table.num_rows
                yield X if self._label is None else (X, self._labels(table, number))

    def _without_index(
        self, schema: pa.Schema, first: str, bins: list[str], notes: tuple[str, ...]
    ) -> tuple[list[str], tuple[str, ...]]:
        """Take a first column of text without repeats for ids, and refuse one that counts the rows."""
        kind = schema.field(first).type
        is_bin = first in bins
        if is_bin and len(bins) == 1:
            return bins, notes
        if _is_text(self._types, kind):
            texts = [value for table in self._tables() for value in table.column(first).to_pylist()]
            if None not in texts and len({*texts}) == len(texts):
                self._id, self.ids = first, np.array(texts)
                return [name for name in bins if name != first], (*notes, naming_note(first, self._name))
        elif is_bin and (self._types.is_integer(kind) or self._types.is_floating(kind)):
            n_counted = 0
            for table in self._tables():
                column = table.column(first)
                if column.null_count or not counts(column.to_numpy(zero_copy_only=False), n_counted):
                    return bins, notes
                n_counted += table.num_rows
            check_not_counting(first, n_counted, self._name)
        return bins, notes

    def _check(self, schema: pa.Schema, bins: list[str]) -> None:
        """Refuse bins that are neither numbers nor a single column of lists."""
        if self._list:
            return
        wrong = [schema.field(name) for name in bins if not _is_number(self._types, schema.field(name).type)]
        if wrong:
            raise DataError(
                f"{self._name}: expected columns of numbers or a single column of lists beside the labels, but "
                f"{wrong[0].name!r} is {wrong[0].type}. Leave it out with exclude=, name the bins with columns=, or "
                "name it as the labels or, if no value repeats, as the ids (id=)."
            )

    def _texts(self, name: str) -> list[str]:
        """Return all values of a column of ids as text."""
        values = [value for table in self._tables() for value in table.column(name).to_pylist()]
        if None in values:
            raise DataError(
                f"{self._name}, row {values.index(None)}, column {name!r}: no id. Each row needs one; fill it, or name "
                "another column."
            )
        return [str(value) for value in values]

    def _rows(self, table: pa.Table, number: int) -> np.ndarray:
        columns = []
        for name in self._bins:
            column = table.column(name)
            if column.null_count:
                raise DataError(f"{self._name}, batch {number}: nulls in column {name!r}. Fill them first.")
            columns.append(column.combine_chunks() if hasattr(column, "combine_chunks") else column)
        if self._list:
            try:
                X = np.array(columns[0].to_pylist(), dtype=np.float64)
            except (ValueError, TypeError) as error:
                raise DataError(
                    f"{self._name}, batch {number}: lists of different lengths in {self._list!r}, or not of numbers "
                    f"({error}). Each row must have all its bins."
                ) from error
            return X.reshape(X.shape[0], -1)
        return np.stack([np.asarray(each.to_numpy(zero_copy_only=False), np.float64) for each in columns], 1)

    def _labels(self, table: pa.Table, number: int) -> np.ndarray:
        """Return the labels of a batch, masked where they are missing."""
        column, where = table.column(self._label), f"{self._name}, batch {number}, column {self._label!r}"
        if self._types.is_decimal(column.type):
            column = column.cast(needed("pyarrow", self._name).float64())
        values = column.to_pylist()
        if self._class_names is not None:
            values = _named(values, self._class_names, where)
        has_missing = any(value is None for value in values)
        return clean_labels(np.array(values, object if has_missing else None), table.num_rows, where)


class TableSource(BatchSource):
    """The rows of ``TableBatches``, with names of columns and ids of rows."""

    def __init__(self, batches: TableBatches, name: str) -> None:
        super().__init__(batches, name)
        self.column_names, self.row_ids, self.notes = batches.names, batches.ids, batches.notes
        self.columns_aside = batches.columns_aside


def schema_of(tables: Tables, name: str) -> pa.Schema:
    """Return the schema of the tables. Raises DataError if there are none, or two columns have the same name."""
    first = next(iter(tables()), None)
    if first is None:
        raise DataError(f"{name}: no batches. Give at least one row.")
    check_distinct(first.schema.names, name)
    return first.schema


def _roles(names: list[str], label: str | None, lists: list[str], choice: ColumnChoice, where: str) -> Roles:
    """Return the roles of the columns; a single column of lists holds all bins unless the caller named others."""
    place = None if label is None else names.index(label)
    knows_names = choice.names is not None and {*choice.names} <= {*names}
    lists = [name for name in lists if name not in (label, *choice.aside)]
    if len(lists) == 1 and choice.columns is None and not knows_names:
        aside = roles_of(names, place, ColumnChoice(id=choice.id), where)
        return Roles([names.index(lists[0])], place, aside.id, True)
    return roles_of(names, place, choice, where)


def _named(codes: list[int | None], names: Sequence[str], where: str) -> list[str | None]:
    """Return the names of classes by their numbers; a negative number stands for no label."""
    wrong = [code for code in codes if code is not None and code >= len(names)]
    if wrong:
        raise DataError(
            f"{where}: class {wrong[0]}, but there are {len(names)} names of classes. Cast the column to a ClassLabel "
            "with all names."
        )
    return [None if code is None or code < 0 else names[code] for code in codes]


def _is_text(types: ModuleType, kind: pa.DataType) -> bool:
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_list(types: ModuleType, kind: pa.DataType) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_number(types: ModuleType, kind: pa.DataType) -> bool:
    is_plain = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return bool(is_plain or types.is_decimal(kind))
