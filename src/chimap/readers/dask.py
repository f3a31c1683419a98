"""Dask arrays and data frames as sources, whose blocks are computed where the workers are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from chimap import _arrays
from chimap._frames import is_collection
from chimap._types import JSON, Rows
from chimap._validation import DataError
from chimap.data.frames import check_number, checked_names_of, column_of, frame_roles
from chimap.data.labels import Labels
from chimap.data.rows import chunk_dtype
from chimap.data.source import SeekableStream
from chimap.data.table import ColumnChoice
from chimap.readers.label_files import read_labels

if TYPE_CHECKING:
    import dask.array as da
    import dask.dataframe as dd


class DaskSource(SeekableStream):
    """Rows of a Dask array, or of the numeric columns of a Dask data frame.

    With ``engine="dask"`` blocks are computed by the workers and stay there. Otherwise they are computed here one
    after the other, each once in a pass. Unknown block lengths are computed first. Names of columns are kept, and an
    index of text names the rows.

    Parameters
    ----------
    X : dask array or data frame of shape (n, bins)
        The rows.
    labels : dask or numpy array of shape (n,), series, str or int, default=None
        Labels of the rows, or the name or position of a column of the data frame. None takes the column ``y``, else
        ``label``.
    choice : ColumnChoice, default=None
        Which columns of a data frame are bins and ids.

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
    from_files = False

    def __init__(self, X: da.Array | dd.DataFrame, labels: Labels = None, choice: ColumnChoice | None = None):
        self.name = type(X).__name__.lower()
        if hasattr(X, "columns"):
            X, labels = self._columns(X, labels, choice or ColumnChoice())
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
        self._y = read_labels(_computed(labels) if is_collection(labels) else labels, self.n_rows)

    def _columns(self, frame: dd.DataFrame, labels: Labels, choice: ColumnChoice) -> tuple[da.Array, Labels]:
        """Return the bins of a data frame as an array, and the labels; keep the names of columns and rows."""
        import dask

        names, index = checked_names_of(frame, self.name), None
        lengths: list[int] | bool = True
        if frame.index.dtype.kind not in "iufbM":  # numbers start anew in each partition, and name no row
            parts = dask.compute(*frame.index.to_delayed())
            index = np.concatenate([part.astype(str).to_numpy() for part in parts])
            lengths = [len(part) for part in parts]

        def column(place: int) -> np.ndarray:
            values = column_of(frame.iloc[:, [place]].compute(), 0)
            _refuse_lists(values, f"{self.name}, column {names[place]!r}")
            return values

        roles, self.row_ids, self.notes = frame_roles(names, labels, choice, self.name, column, index)
        self.column_names = tuple(names[place] for place in roles.bins)
        self.columns_aside = roles.aside(names)
        for place in roles.bins:
            check_number(frame.dtypes.iloc[place], names[place], self.name)
        y = labels if roles.label is None else column(roles.label)
        return frame.iloc[:, roles.bins].to_dask_array(lengths=lengths), y

    def take(self, rows: np.ndarray) -> Rows:
        return _arrays.as_rows(_computed(self._X[np.asarray(rows)]), self.dtype)

    def lazy(self, start: int, stop: int) -> da.Array:
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


def _refuse_lists(values: np.ndarray, where: str) -> None:
    """Raise DataError for text that was a list, which Dask has written as text."""
    for word in {value for value in values.tolist() if isinstance(value, str) and value[:1] in ("[", "(", "{")}:
        value: object = None
        with suppress(ValueError, SyntaxError):
            value = ast.literal_eval(word)
        if isinstance(value, list | tuple | set | dict):
            raise DataError(
                f"{where}: {word[:60]!r} is a {type(value).__name__} that Dask has written as text, and a label is a "
                "single value. Give a column for each label; for objects as they are, set "
                "dask.config.set({'dataframe.convert-string': False}) before the data frame is made."
            )


def _computed(collection: da.Array | dd.DataFrame) -> np.ndarray:
    """Return a lazy or plain array as a numpy array."""
    return np.asarray(collection.compute() if hasattr(collection, "compute") else collection)
