"""Dask arrays and data frames as sources, whose blocks are computed where the workers are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from chimap import _arrays
from chimap._types import JSON, Rows
from chimap._validation import DataError
from chimap.data.io.stream import SeekableStream
from chimap.data.labels import UNREAD, Labels, check_labels
from chimap.data.rows import chunk_dtype

if TYPE_CHECKING:
    import dask.array as da
    import dask.dataframe as dd


def is_collection(X: object) -> bool:
    """Return whether X is a Dask array or data frame, without importing Dask."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


class DaskSource(SeekableStream):
    """Rows of a Dask array, or of the numeric columns of a Dask data frame.

    With ``engine="dask"`` blocks are computed by the workers and stay there. Otherwise they are computed here one
    after the other, each once in a pass. Unknown block lengths are computed first.

    Parameters
    ----------
    X : dask array or data frame of shape (n, bins)
        The rows.
    labels : dask or numpy array of shape (n,), series or str, default=None
        Labels of the rows, or the name of a column of the data frame.

    Raises
    ------
    DataError
        If the data frame has no such column, or X is not a matrix.

    Examples
    --------
    >>> import dask.array as da
    >>> source = DaskSource(da.ones((6, 3), chunks=(2, 3)))
    >>> [chunk.X.shape for chunk in source.chunks(4)]
    [(4, 3), (2, 3)]
    """

    is_sparse = False

    def __init__(self, X: da.Array | dd.DataFrame, labels: Labels = None):
        self.name, labels = type(X).__name__.lower(), None if labels is UNREAD else labels
        if hasattr(X, "columns"):
            if isinstance(labels, str):
                if labels not in X.columns:
                    raise DataError(
                        f"the data frame has no column {labels!r}; it has {', '.join(map(str, X.columns))}."
                    )
                labels, X = X[labels], X.drop(columns=labels)
            X = X.to_dask_array(lengths=True)
        if X.ndim != 2:
            raise DataError(f"{self.name}: rows must be a matrix, (n, bins); got {X.ndim} axes.")
        if np.isnan(X.shape[0]):
            X = X.compute_chunk_sizes()
        self._X = X
        self.n_rows, self.n_features = (int(n) for n in X.shape)
        self.dtype = chunk_dtype(X.dtype, self.name)
        self.row_bytes = float(self.n_features * self.dtype.itemsize)
        self.stored_rows = int(max(X.chunks[0]))
        self.held_bytes = self.stored_rows * self.n_features * (float(X.dtype.itemsize) + self.dtype.itemsize)
        self._y = (
            None if labels is None else check_labels(_computed(labels), self.n_rows, f"labels of {self.name}")
        )
        self.has_labels = self._y is not None

    def take(self, rows: np.ndarray) -> Rows:
        """Return the rows with these increasing indices."""
        return _arrays.as_rows(_computed(self._X[np.asarray(rows)]), self.dtype)

    def lazy(self, start: int, stop: int) -> Rows:
        """Return the rows from ``start`` up to ``stop`` as a Dask array.

        Parameters
        ----------
        start, stop : int
            Index of the first row, and index after the last.
        """
        return self._X[start:stop]

    def _blocks_between(self, first: int, stop: int) -> Iterator[np.ndarray]:
        borders = np.concatenate([[0], np.cumsum(self._X.chunks[0])])
        for start, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            if start < stop and end > first:
                block = _computed(self.lazy(max(start, first), min(end, stop)))
                yield _arrays.as_rows(block, self.dtype)

    def _content(self) -> JSON:
        """Return Dask's name of the graph, which changes with its inputs."""
        return {"graph": self._X.name}


def _computed(collection: da.Array | dd.DataFrame) -> np.ndarray:
    """Return a lazy or plain array as a numpy array."""
    return np.asarray(collection.compute() if hasattr(collection, "compute") else collection)
