"""Rows of bins made from one field of each record: words of a text, fingerprints of a molecule, counts by name."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.data.frames import check_same_order
from chimap.data.labels import IGNORE_LABELS, Labels
from chimap.data.reading import Reading
from chimap.data.table import ColumnChoice, instead, is_path
from chimap.readers.columns import TableColumns
from chimap.readers.label_files import labels_elsewhere
from chimap.readers.records import Records, has_records, records_in, records_of
from chimap.readers.row_file import OrderedSource, RowFile

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
        return records is not None and not (self.names and {*self.names} <= {*records.names})

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
        if records is None or name not in records.names:
            return None
        labels = records.label_column(name, None)
        for batch in records.batches([name]):
            records.add_labels(labels, batch.column(name), name)
        return labels.finish()

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
        reading = reading.headed(records.names, records.address)
        field = self._field = reading.column
        if field not in records.names:
            there = instead(field, records.names, f"there are {', '.join(records.names) or 'none'}")
            raise DataError(f"{records.address}: no column {field!r}{there}. Name one of them.")
        columns = TableColumns(records, labels, ColumnChoice(id=id, columns=[field]))
        first_pass = (batch.column(field) for batch in columns.passing(field))
        if reading.is_learned:
            for _ in first_pass:
                pass
        else:
            reading = reading.learned(first_pass, records.address)
        self.n_rows = columns.n_rows
        if not self.n_rows:
            raise DataError(f"{records.address}: no records. Give at least one.")
        columns.finish()
        self.reading, self.dtype, self.is_sparse = reading, reading.dtype, reading.is_sparse
        self.column_names, self.n_features = reading.names, len(reading.names)
        self.n_optional = reading.n_optional
        self.row_ids, self._y = columns.ids, columns.y
        if columns.label is None:
            self._y = labels_elsewhere(labels, self.n_rows, records.address, records.names)
        self._open()
        n_read = self.n_rows - len(self.unread)
        self.notes = (*self.notes, *reading.doubts(n_read - self._n_known, n_read, records.address))

    def _filled(self) -> RowFile:
        file = RowFile(self.n_rows, self.n_features, 128 * self.n_rows, self.dtype)
        start = n_known = 0
        reasons: dict[int, str] = {}
        for batch in self._records.batches([self._field]):
            X, unread = self.reading.rows(batch.column(self._field), start, self._records.address)
            rows = X.tocoo()
            reasons |= {start + place: reason for place, reason in unread.items()}
            file.add(rows.row.astype(np.int64) + start, rows.col, rows.data)
            start += rows.shape[0]
            n_known += np.unique(rows.row).size
        file.finish()
        self._n_known, self.unread = n_known, reasons
        return file
