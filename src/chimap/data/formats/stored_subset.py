"""Some rows and columns of a stored matrix, in any order."""

from __future__ import annotations

import numpy as np

from chimap import _arrays
from chimap._types import Group, Rows
from chimap._validation import DataError
from chimap.data.formats.stored_rows import PIECE_BYTES, Read, StoredRows


class StoredSubset(StoredRows):
    """The rows and columns at these positions of a stored matrix.

    Consecutive rows that are scattered over the whole matrix cost a pass over it each time they are read.

    Parameters
    ----------
    whole : StoredRows
        The matrix.
    rows, columns : ndarray of int
        Positions in the matrix, in the order that they are read in.

    Raises
    ------
    DataError
        For positions that lie outside of the matrix.
    """

    def __init__(self, whole: StoredRows, rows: np.ndarray, columns: np.ndarray) -> None:
        for what, places, size in (("row", rows, whole.n_rows), ("column", columns, whole.n_features)):
            if places.size and places.max() >= size:
                raise DataError(
                    f"{whole.where}: it has {size} {what}s, but {what} {places.max()} is chosen. Open the file again."
                )
        super().__init__((rows.size, columns.size), whole.dtype, whole.where)
        self._whole, self._rows, self._columns = whole, rows, columns
        self.is_sparse, self.stored_rows = whole.is_sparse, whole.stored_rows
        # Rows are read as a whole, and columns and order taken from a copy of them.
        self.row_bytes = 2 * whole.row_bytes
        self.held_bytes = whole.held_bytes + 2 * PIECE_BYTES

    def reader(self, root: Group) -> Read:
        """Return a reader as ``StoredRows`` does."""
        return lambda start, stop: self._read(root, self._rows[start:stop])

    def _read(self, root: Group, rows: np.ndarray) -> Rows:
        order = np.argsort(rows, kind="stable")
        taken = _arrays.take_columns(self._whole.take(root, rows[order]), self._columns)
        if not np.array_equal(order, np.arange(order.size)):
            taken = _arrays.take_rows(taken, np.argsort(order))
        if _arrays.is_sparse(taken):
            taken.sort_indices()
        return taken
