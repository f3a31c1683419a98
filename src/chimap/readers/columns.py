"""Tables as batches of Arrow, and what their columns are: bins, labels, ids."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from chimap._messages import shown
from chimap._validation import DataError
from chimap.data.label_kinds import is_text, order_of
from chimap.data.labels import LabelColumn, Labels
from chimap.data.rows import check_distinct
from chimap.data.source import Stored
from chimap.data.table import ColumnChoice, Roles, checked_ids, instead, named_rows, naming_note, roles_of
from chimap.readers.arrow_files import as_values, as_written, checked_codes, is_text_type, masked_values
from chimap.readers.io.encodings import odd_byte
from chimap.readers.io.files import base_name

if TYPE_CHECKING:
    import pyarrow as pa


BATCH = 1024  # records per batch


@dataclass(frozen=True)
class Values:
    """Columns of consecutive records as lists of objects, by name, read as those of a record batch of Arrow are."""

    columns: dict[str, list[Any]]
    num_rows: int

    def column(self, name: str) -> list[Any]:
        """Return the values of a column; None where a record has no such field."""
        return self.columns[name]


@dataclass(frozen=True)
class Undecoded:
    """A field whose bytes are not text; ``reason`` says why. Whoever needs no text of it goes on."""

    reason: str

    @classmethod
    def at(cls, byte: int, position: int) -> Undecoded:
        """Return a field with a byte that is not UTF-8."""
        return cls(f"not text in UTF-8: {odd_byte(byte, position)}")


_ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that are not text, as ``surrogateescape`` keeps them


def text_or_undecoded(field: str) -> str | Undecoded:
    """Return a field as it is, if all of its bytes are text."""
    found = None if field.isascii() else _ESCAPED.search(field)
    return field if found is None else Undecoded.at(ord(found[0]) - 0xDC00, found.start())


class DataTable(ABC):
    """Named columns that are read in record batches, the same in each pass. A new kind of table is a subclass.

    Attributes
    ----------
    address : str
        The file, folder or object, for messages.
    names : list of str
        Names of the columns.
    stored : Stored
        What the columns are read from.
    row_names : ndarray of shape (n_rows,), or None
        Names of the rows beside their columns, such as the index of a data frame.
    n_rows : int or None
        Number of rows, where it is known before they are read.
    has_names : bool
        Whether the names come from the data, rather than standing for positions.
    has_types : bool
        Whether the data tell text from numbers; a text table does not.
    index : sequence of str
        The columns that hold the index of a data frame, by metadata.
    lists, texts : sequence of str
        The columns that hold lists of numbers, and those of text; the first column of text names the rows.
    """

    address: str
    names: list[str]
    stored: Stored
    row_names: np.ndarray | None = None
    n_rows: int | None = None
    has_names = True
    has_types = True
    index: Sequence[str] = ()
    lists: Sequence[str] = ()
    texts: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The address without folders."""
        return base_name(self.address)

    @abstractmethod
    def batches(self, columns: list[str], n_rows: int = 2**16) -> Iterator[Any]:
        """Yield record batches of some columns, all rows in order, at most ``n_rows`` at a time if the data allow it.

        Raises DataError, which names the place, for what cannot be read.
        """

    def where(self, column: str) -> str:
        """Return the place of a column, for messages."""
        return f"{self.address}, column {column!r}"

    def values(self, columns: list[str]) -> Iterator[Values]:
        """Yield columns as objects of Python, None for missing ones."""
        for batch in self.batches(columns, BATCH):
            lists = {name: as_written(batch.column(name), self.where(name)).to_pylist() for name in columns}
            yield Values(lists, batch.num_rows)

    def label_column(self, name: str, missing: object) -> LabelColumn:
        """Return the labels of a column, before its first batch; ``missing`` marks a missing label."""
        return LabelColumn(self.where(name), missing, as_text=self.has_types)

    def add_labels(self, labels: LabelColumn, column: pa.Array, name: str) -> None:
        """Add the values of a column in the next batch to its labels."""
        add_column(labels, column, self.where(name))

    def ids(self, column: pa.Array, name: str) -> np.ndarray:
        """Return the values of a column of ids, None where one is missing."""
        return as_values(column, self.where(name))

    def checked_ids(self, parts: list[np.ndarray], name: str) -> np.ndarray:
        """Return the ids of all batches as text. Raises DataError, naming the row, where one is missing."""
        return checked_ids(np.concatenate(parts), self.where(name))

    def may_be_ids(self, column: pa.Array, name: str, *, is_text: bool | None) -> np.ndarray:
        """Return the values of a first column, text or numbers; ``is_text`` says what earlier batches were."""
        return as_values(column, self.where(name))

    def label_place(self, labels: Labels, choice: ColumnChoice) -> int | None:
        """Return the position of the column that ``labels`` names, or None where it names no column."""
        names = self.names
        if labels is None:
            usual = choice.usual_label(names, self.address) if self.has_names else None
            return None if usual is None else names.index(usual)
        if isinstance(labels, str) and labels in names:
            return names.index(labels)
        if isinstance(labels, int) or (isinstance(labels, str) and labels.removeprefix("-").isdecimal()):
            place = int(labels)
            if -len(names) <= place < len(names):
                return place % len(names)
            raise DataError(f"{self.address}: no column {place}; there are {len(names)}, the first is 0, the last -1.")
        return None


def add_column(labels: LabelColumn, column: pa.Array, where: str) -> None:
    """Add a column of Arrow, ``where``, to labels: text as it is encoded, or numbers, masked where they are null."""
    column = as_written(column, where)
    if not is_text_type(column.type):
        labels.add(masked_values(column))
        return
    labels.order = order_of(column)
    coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    labels.add_coded(coded.dictionary.to_pylist(), checked_codes(coded, where))


class TableColumns:
    """Which columns of a table are bins, labels and ids: one rule for all tables, in one pass over the few it needs.

    Parameters
    ----------
    table : DataTable
        The table.
    labels : Labels
        The name or position of the column of labels; None looks for one by its usual names.
    choice : ColumnChoice
        The caller's choice.
    bins : list of str, default=None
        The bins, where the caller names them by an argument of their own. None takes a single column of lists, else
        those of ``choice``.

    Attributes
    ----------
    roles : Roles
        Positions of bins, labels and ids; settled once the columns have been read.
    y : ndarray of shape (n_rows,), or None
        The labels, masked where they are missing; None if no column holds them.
    order : tuple or None
        The labels of an ordered category, in their order.
    ids : ndarray of shape (n_rows,), or None
        The ids of the rows.
    n_rows : int
        Number of rows.
    notes : tuple of str
        Sentences for the user.
    """

    def __init__(self, table: DataTable, labels: Labels, choice: ColumnChoice, bins: list[str] | None = None) -> None:
        self._table, names, where = table, table.names, table.address
        check_distinct(names, where)
        self.label = table.label_place(labels, choice)
        self.roles = self._roles(choice, bins)
        self.notes: tuple[str, ...] = ()
        first = self._first = self.roles.id_candidate(names, where, has_index=table.row_names is not None)
        if first is not None and first.name in table.texts and first.place in self.roles.bins:
            self.roles, self._first = self.roles.named_by(first), None  # text cannot be a bin
            self.notes = (naming_note(first.name, where),)
        self._label, self._id, self._guess = (
            None if place is None else names[place]
            for place in (self.label, self.roles.id, None if self._first is None else self._first.place)
        )
        self._labels = None if self._label is None else table.label_column(self._label, choice.missing)
        self._ids: list[np.ndarray] = []
        self._guess_is_text: bool | None = None
        self.n_rows = 0
        self.y: np.ndarray | None = None
        self.order: tuple[object, ...] | None = None
        self.ids: np.ndarray | None = None

    def _roles(self, choice: ColumnChoice, bins: list[str] | None) -> Roles:
        table = self._table
        names, where = table.names, table.address
        lists = [name for name in table.lists if name not in choice.aside and names.index(name) != self.label]
        knows_names = choice.names is not None and {*choice.names} <= {*names}
        if bins is None and len(lists) == 1 and choice.columns is None and not knows_names:
            bins = lists
        if bins is None:
            return roles_of(names, self.label, choice, where, index=table.index, has_names=table.has_names)
        missing = [name for name in bins if name not in names]
        if missing:
            there = instead(missing[0], names, f"it holds {shown(names, 10)}")
            raise DataError(f"{where}: no column {missing[0]!r}{there}.")
        others = roles_of(names, self.label, ColumnChoice(id=choice.id), where, index=table.index)
        return Roles([*map(names.index, bins)], self.label, others.id, True, is_index=others.is_index)

    def read(self) -> None:
        """Read the columns that hold labels and ids, or may hold ids; without any, count the rows."""
        for _ in self.passing():
            pass
        self.finish()

    def passing(self, *others: str) -> Iterator[Any]:
        """Yield the batches of the pass, with other columns besides; ``finish`` follows behind the last one."""
        table, first = self._table, self._first
        own = [name for name in (self._label, self._id, self._guess) if name is not None]
        wanted = [*dict.fromkeys((*own, *others))]
        is_open, knows_size = first is not None, table.n_rows is not None
        is_text_so_far: bool | None = None
        for batch in table.batches(wanted or table.names[:1]) if wanted or not knows_size else ():
            if self._labels is not None and self._label is not None:
                table.add_labels(self._labels, batch.column(self._label), self._label)
            if self._id is not None:
                self._ids.append(table.ids(batch.column(self._id), self._id))
            if is_open and first is not None:
                values = table.may_be_ids(batch.column(first.name), first.name, is_text=is_text_so_far)
                is_text_so_far, is_open = is_text(values), first.add(values)
            self.n_rows += batch.num_rows
            yield batch
            if not is_open and knows_size and wanted == [self._guess]:
                break

    def finish(self) -> None:
        """Settle labels, ids and roles, once all batches have been read."""
        table = self._table
        self.n_rows = table.n_rows or self.n_rows
        if self._labels is not None and self.n_rows:
            self.y, self.order = self._labels.finish(), self._labels.order
        ids = None
        if self._id is not None and self._ids:
            ids = table.checked_ids(self._ids, self._id)
        self.roles, ids, notes = named_rows(self.roles, table.names, table.address, ids, self._first)
        self.ids, self.notes = table.row_names if ids is None else ids, (*notes, *self.notes)
