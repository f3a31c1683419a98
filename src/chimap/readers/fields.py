"""Rows of bins made from one field of each record: words of a text, fingerprints of a molecule, counts by name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.data.frames import check_same_order
from chimap.data.label_kinds import numbers_or_text, why_text
from chimap.data.labels import IGNORE_LABELS, Labels, clean_labels
from chimap.data.reading import Fields, Reading
from chimap.data.table import ColumnChoice, checked_ids, is_path
from chimap.readers.label_files import labels_elsewhere
from chimap.readers.records import Records, has_records, records_in, records_of, refuse_undecoded
from chimap.readers.row_file import OrderedSource, RowFile
from chimap.readers.stored_matrices import checked_names

_REMEDY_FOR_REPEATS = Message("Give each record an id of its own, or name another column of ids with {id}.")


class FieldReading(Reading):
    """A reading of the fields of files, data frames, data sets and sequences."""

    def takes(self, data: object) -> bool:
        """Return whether the data hold fields of this reading, rather than rows of its bins.

        Parameters
        ----------
        data : object
            The path of a file or folder, or an object in memory.
        """
        if is_path(data):
            return has_records(os.fspath(data))
        records = records_in(data, self.column)
        return records is not None and not (self.names and {*self.names} <= {*records.columns})

    def source_of(self, X: object) -> FieldSource | None:
        """Return a source of the fields in X, or None if X holds rows of bins.

        Parameters
        ----------
        X : object
            Fields in a data frame or in a sequence, or rows.

        Raises
        ------
        DataError
            If X is a single text.
        """
        if isinstance(X, str | bytes):
            raise DataError(f"X is a single text, {X[:40]!r}; expected a list of them: [{X[:10]!r}, ...].")
        return self.source(X, IGNORE_LABELS) if self.takes(X) else None

    def column_of(self, data: Any, name: str) -> np.ndarray | None:
        """Return the values (n,) of another column of the data, as labels, without counting anything.

        None says that there is no column of this name.

        Parameters
        ----------
        data : str, path, data frame or sequence
            What ``source`` takes.
        name : str
            Name of the column.
        """
        records = records_of(os.fspath(data)) if is_path(data) else records_in(data, self.column)
        if records is None or name not in records.columns:
            return None
        values = [record[0] for batch in records.batches([name]) for record in batch]
        return _labels_in(records, values, name)

    def source(self, data: Any, labels: Labels = None, id: str | int | None = None) -> FieldSource:
        """Return the rows of a file, a folder, a data frame or a sequence of fields, made by this reading.

        Parameters
        ----------
        data : str, path, data frame or sequence
            A file or folder, a data frame or data set with the column, or a list, series or array of fields.
        labels : str, array or file of labels, default=None
            Name of a column, or an array or file, see ``read_labels``.
        id : str or int, default=None
            The column of ids.
        """
        if is_path(data):
            return FieldSource(records_of(os.fspath(data)), self, labels, id)
        records = records_in(data, self.column)
        if records is None:
            raise DataError(
                f"{type(data).__name__}: holds no fields {self.column!r}. Give a data frame with this column, a list "
                "of its values, or the path of a file."
            )
        check_same_order(data, labels, records.name)
        return FieldSource(records, self, labels, id)


class FieldSource(OrderedSource):
    """Rows that a reading makes from one column of a table.

    A first pass counts the rows, reads labels and ids and lets the reading learn, unless it has already. A second pass
    makes the rows and writes them as CSR to a temporary file, from which all later passes read. Fields that cannot be
    read have empty rows, and a reason in ``unread``. Without ``labels`` the
    column ``y`` or ``label`` is taken, without ``id`` a column ``id``, or else the first column if it is text without
    repeats.
    """

    def __init__(self, records: Records, reading: Reading, labels: Labels = None, id: str | int | None = None) -> None:
        self._records, self._stored, self.name = records, records.stored, records.name
        columns = records.columns
        reading = reading.headed(columns, records.address)
        self._field = reading.column
        label = labels if isinstance(labels, str) and labels in columns else None
        others = [name for name in columns if name != self._field]
        if labels is None:
            label = ColumnChoice().usual_label(others, records.address)
        if isinstance(id, int):
            id = columns[id]
        elif id is None:
            usual = ColumnChoice().usual_id([name for name in others if name != label], records.address)
            id = None if usual is None else [name for name in others if name != label][usual]
        may_be_guessed = id is None and records.row_names is None and len(columns) > 1
        is_guess = may_be_guessed and columns[0] not in (self._field, label)
        id = columns[0] if is_guess else id
        texts: Fields = []
        ids: Fields = []
        self.n_rows = 0
        first_pass = self._first_pass(label, id, texts, ids)
        if reading.is_learned:
            for _ in first_pass:
                pass
        else:
            reading = reading.learned(first_pass, records.address)
        if not self.n_rows:
            raise DataError(f"{records.address}: no records. Give at least one.")
        self.reading, self.dtype, self.is_sparse = reading, reading.dtype, reading.is_sparse
        self.column_names, self.n_features = reading.names, len(reading.names)
        self.row_ids = records.row_names
        if id is not None and not (is_guess and not _may_be_ids(ids, records.has_types)):
            where = f"{records.address}, column {id!r}"
            self.row_ids = checked_names(
                checked_ids(np.array(ids, object), where), self.n_rows, where, _REMEDY_FOR_REPEATS
            )
        if label is not None:
            self._y = _labels_in(records, texts, label)
        else:
            self._y = labels_elsewhere(labels, self.n_rows, records.address, columns)
        self._open()
        n_read = self.n_rows - len(self.unread)
        self.notes = (*self.notes, *reading.doubts(n_read - self._n_known, n_read, records.address))

    def _first_pass(self, label: str | None, id: str | None, labels: Fields, ids: Fields) -> Iterator[Fields]:
        """Yield the fields in batches, and append labels and ids to the lists."""
        others_read = [name for name in (label, id) if name is not None]
        for batch in self._records.batches([self._field, *others_read]):
            for place, column in enumerate(others_read, 1):
                values = [record[place] for record in batch]
                if column == id:
                    refuse_undecoded(values, self.n_rows, f"{self._records.address}, column {column!r}")
                (labels if column == label and place == 1 else ids).extend(values)
            self.n_rows += len(batch)
            yield [record[0] for record in batch]

    def _filled(self) -> RowFile:
        file = RowFile(self.n_rows, self.n_features, 128 * self.n_rows, self.dtype)
        start = n_known = 0
        reasons: dict[int, str] = {}
        for batch in self._records.batches([self._field]):
            X, unread = self.reading.rows([record[0] for record in batch], start, self._records.address)
            rows = X.tocoo()
            reasons |= {start + place: reason for place, reason in unread.items()}
            file.add(rows.row.astype(np.int64) + start, rows.col, rows.data)
            start += rows.shape[0]
            n_known += np.unique(rows.row).size
        file.finish()
        self._n_known, self.unread = n_known, reasons
        return file


def _labels_in(records: Records, values: Fields, label: str) -> np.ndarray:
    """Return the values of a column as labels."""
    where = f"{records.address}, column {label!r}"
    refuse_undecoded(values, 0, where)
    if all(value is None or isinstance(value, str) for value in values):
        return numbers_or_text(values, where, as_text=records.has_types)
    return clean_labels(np.array(values, dtype=object), len(values), where)


def _may_be_ids(values: Fields, has_types: bool) -> bool:
    """Return whether a column consists of text without repeats; without types, text is what does not print a number."""
    texts = {value for value in values if isinstance(value, str) and value.strip()}
    return len(texts) == len(values) and (has_types or why_text([*texts]) is not None)
