"""Rows that are in memory already: numpy arrays and scipy sparse matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._frames import is_frame, names_of
from chimap._types import JSON, MatrixLike, Rows
from chimap._validation import DataError
from chimap.data.label_kinds import order_of
from chimap.data.labels import Labels, given_labels
from chimap.data.rows import chunk_dtype, csr_row_bytes, csr_rows, digest, matrix_shape
from chimap.data.source import RangeSource, Read
from chimap.data.table import as_names


class ArraySource(RangeSource):
    """The rows of an array in memory.

    Integers become floats chunk by chunk: the array itself is neither converted nor copied.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_features)
        Dense, scipy sparse of any format, or anything that ``np.asarray`` takes. Further axes are flattened, so that
        (n, 28, 28) gives 784 bins.
    y : array or file of labels, default=None
        Labels of the rows, see ``read_labels``.
    name : str, default="array"
        Name for messages.
    column_names : iterable of str, default=None
        Names of the columns.

    Raises
    ------
    DataError
        For Python objects, text, empty arrays, arrays with a single axis, and labels that do not fit.

    Examples
    --------
    >>> source = ArraySource(np.arange(6, dtype=np.uint8).reshape(3, 2), y=[0, 1, 1])
    >>> [(chunk.start, chunk.X.shape, chunk.X.dtype.name) for chunk in source.chunks(2)]
    [(0, (2, 2), 'float32'), (2, (1, 2), 'float32')]
    """

    from_files = False

    def __init__(
        self, X: MatrixLike, y: Labels = None, name: str = "array", column_names: Iterable[object] | None = None
    ) -> None:
        if column_names is None and is_frame(X):
            column_names = names_of(X)
        self.name = name
        if column_names is not None:
            self.column_names = as_names(column_names)
        self.is_sparse = _arrays.is_sparse(X)
        self._X: Any = _arrays.as_csr(X) if _arrays.is_sparse(X) else _dense(X, name)
        self.n_rows, self.n_features = matrix_shape(self._X.shape, name)
        self.dtype = chunk_dtype(self._X.dtype, name)
        self._y = given_labels(y, self.n_rows)
        self.has_object_labels = getattr(getattr(y, "dtype", None), "kind", "") == "O"
        self.label_order = order_of(y)
        self.row_bytes = (
            csr_row_bytes(self._X.nnz, self.n_rows, self.dtype)
            if _arrays.is_sparse(self._X)
            else float(self.n_features * self.dtype.itemsize)
        )

    def take(self, rows: np.ndarray) -> Rows:
        return self._rows(rows)

    def fingerprint(self) -> JSON:
        """Return name, shape, dtype, and digests of the labels and of 64 evenly spaced rows."""
        rows = self.take(np.unique(np.linspace(0, self.n_rows - 1, 64).astype(np.int64)))
        content = (
            digest(rows.data, rows.indices, rows.indptr) if _arrays.is_sparse(rows) else digest(_arrays.to_dense(rows))
        )
        return {
            "name": self.name,
            "shape": [self.n_rows, self.n_features],
            "dtype": str(self._X.dtype.newbyteorder("=")),
            "digest": content,
            "labels": None if self._y is None else digest(self._y),
        }

    @contextmanager
    def _reading(self) -> Iterator[Read]:
        yield lambda start, stop: self._rows(slice(start, stop))

    def _rows(self, rows: slice | np.ndarray) -> Rows:
        block = self._X[rows]
        if self.is_sparse:
            return csr_rows(block.data, block.indices, block.indptr, self.n_features, self.dtype)
        return _arrays.as_rows(block.reshape(block.shape[0], -1), self.dtype)


def _dense(X: MatrixLike, name: str) -> np.ndarray:
    if np.ma.is_masked(X):
        raise DataError(f"{name}: a masked array with masked entries. Fill them first, X.filled(0).")
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise DataError(f"{name}: not a table of numbers ({error}). Give rows of the same length.") from error
    if array.dtype == object:
        raise DataError(
            f"{name}: holds Python objects (dtype object), expected numbers. Text, missing values or "
            "columns of mixed types cause this: encode or drop them, then X.astype(float)."
        )
    return array
