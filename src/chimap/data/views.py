"""A source seen through a choice of its columns or of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from chimap import _arrays
from chimap._types import JSON, Rows
from chimap._validation import DataError, check_width
from chimap.data.ids import unique_ids
from chimap.data.label_text import whole_numbers
from chimap.data.rows import digest, regroup
from chimap.data.source import Chunk, Source
from chimap.data.table import Choice, ignored, present_names, roles_of


class _View(Source):
    """What a view has of the source behind it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.name, self.notes = source.name, source.notes
        self.n_rows, self.n_features, self.dtype = source.n_rows, source.n_features, source.dtype
        self.is_sparse, self.has_labels = source.is_sparse, source.has_labels
        self.row_bytes, self.held_bytes = source.row_bytes, source.held_bytes
        self.from_files, self.can_seek = source.from_files, source.can_seek
        self.column_names, self.row_ids = source.column_names, source.row_ids
        self.weights = source.weights
        self.task_names, self.has_object_labels = source.task_names, source.has_object_labels
        self.reading, self.origin, self.columns_aside = source.reading, source.origin, source.columns_aside
        self.metadata, self.matrices = source.metadata, source.matrices
        self.stored_rows, self.n_left_out, self.id_name = (
            source.stored_rows,
            source.n_left_out,
            source.id_name,
        )

    @property
    def whole(self) -> Source:
        """The source behind."""
        return self._source

    def places_in_file(self) -> np.ndarray:
        """See ``Source``."""
        return self._source.places_in_file()


class ChosenColumns(_View):
    """Some columns of a source, in an order of their own.

    source : what is read. places : of its columns, (n_features,), each once.

    >>> from chimap.data import ArraySource
    >>> view = ChosenColumns(ArraySource(np.eye(3), [0, 1, 2]), [2, 0])
    >>> next(view.chunks(3)).X.tolist()
    [[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
    """

    def __init__(self, source: Source, places: Sequence[int]) -> None:
        super().__init__(source)
        self._places = np.asarray(places, dtype=np.int64)
        self.n_features = self._places.size
        if source.column_names is not None:
            self.column_names = tuple(source.column_names[place] for place in self._places)
        # What is read and what is given are in memory together.
        self.held_bytes = source.held_bytes + source.row_bytes
        share = self.n_features / source.n_features
        self.row_bytes = source.row_bytes if self.is_sparse else source.row_bytes * max(1.0, share)

    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        """All rows, in order."""
        for chunk in self._source.chunks(chunk_rows):
            yield Chunk(self._taken(chunk.X), chunk.y, chunk.start)

    def chunks_from(self, first: int, chunk_rows: int, stop: int | None = None) -> Iterator[Chunk]:
        """See ``Source``."""
        for chunk in self._source.chunks_from(first, chunk_rows, stop):
            yield Chunk(self._taken(chunk.X), chunk.y, chunk.start)

    def labels(self) -> np.ndarray | None:
        """Labels of all rows, or None."""
        return self._source.labels()

    def take(self, rows: np.ndarray) -> Rows:
        """The rows with these increasing indices."""
        return self._taken(self._source.take(rows))

    def fingerprint(self) -> JSON:
        """That of the whole, and which columns these are."""
        whole = self._source.fingerprint()
        return {**whole, "shape": [self.n_rows, self.n_features], "columns": digest(self._places)}

    def _taken(self, X: Rows) -> Rows:
        taken = X[:, self._places]
        if _arrays.is_sparse(taken):
            taken.sort_indices()
            return taken
        return np.ascontiguousarray(taken)


class ChosenRows(_View):
    """Some rows of a source, in their order, with labels of their own.

    source : what is read. rows : increasing indices, (n_rows,). y : labels of these rows, or None.
    """

    def __init__(self, source: Source, rows: np.ndarray, y: np.ndarray | None) -> None:
        super().__init__(source)
        self._rows, self._y = np.asarray(rows, dtype=np.int64), y
        self.n_rows, self.has_labels = self._rows.size, y is not None
        if self.n_rows == 0:
            raise DataError(f"{self.name}: no rows are left. Check labels and ids.")
        if source.row_ids is not None:
            self.row_ids = source.row_ids[self._rows]
        if source.weights is not None:
            self.weights = source.weights[self._rows]
        self.n_left_out = source.n_left_out + source.n_rows - self.n_rows
        self.stored_rows = max(1, -(-source.stored_rows * self.n_rows // source.n_rows))

    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        """The rows, in order; ``start`` counts those that are left."""
        yield from self._numbered(self._source.chunks(max(1, chunk_rows // 4)), 0, self.n_rows, chunk_rows)

    def chunks_from(self, first: int, chunk_rows: int, stop: int | None = None) -> Iterator[Chunk]:
        """See ``Source``; where the source can seek, what lies before its rows is not read."""
        stop = self.n_rows if stop is None else stop
        if not self.can_seek:
            yield from super().chunks_from(first, chunk_rows, stop)
        elif first < stop:
            read = self._source.chunks_from(
                int(self._rows[first]), max(1, chunk_rows // 4), int(self._rows[stop - 1]) + 1
            )
            yield from self._numbered(read, first, stop, chunk_rows)

    @property
    def every_row(self) -> Source:
        """See ``Source``."""
        return self._source.every_row

    def places_in_file(self) -> np.ndarray:
        """See ``Source``."""
        return np.asarray(self._source.places_in_file()[self._rows])

    def labels(self) -> np.ndarray | None:
        """Labels of the rows, or None."""
        return self._y

    def take(self, rows: np.ndarray) -> Rows:
        """The rows with these increasing indices among those that are left."""
        return self._source.take(self._rows[rows])

    def fingerprint(self) -> JSON:
        """That of the whole, which rows these are, and a digest of their labels."""
        return {
            **self._source.fingerprint(),
            "rows": digest(self._rows),
            "labels": None if self._y is None else digest(self._y),
        }

    def _numbered(self, read: Iterator[Chunk], first: int, stop: int, chunk_rows: int) -> Iterator[Chunk]:
        start = first
        for X in regroup(self._of(read, first, stop), chunk_rows, stop - first):
            end = start + X.shape[0]
            yield Chunk(X, None if self._y is None else self._y[start:end], start)
            start = end

    def _of(self, read: Iterator[Chunk], first: int, stop: int) -> Iterator[Rows]:
        wanted = self._rows[first:stop]
        for chunk in read:
            low, high = np.searchsorted(wanted, (chunk.start, chunk.start + chunk.X.shape[0]))
            if high > low:
                yield _arrays.take_rows(chunk.X, wanted[low:high] - chunk.start)


class Labelled(_View):
    """All rows of a source, with labels of several tasks.

    source : what is read. y : labels (n_rows, t), NaN where one is missing. names : of the tasks.

    >>> from chimap.data import ArraySource
    >>> view = Labelled(ArraySource(np.eye(2)), np.array([[0.0, 1.0], [1.0, np.nan]]), ("a", "b"))
    >>> next(view.chunks(2)).y.shape, view.task_names
    ((2, 2), ('a', 'b'))
    """

    def __init__(self, source: Source, y: np.ndarray, names: tuple[str, ...]) -> None:
        super().__init__(source)
        self._y, self.has_labels, self.task_names = y, True, names

    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        """All rows, in order."""
        return self._with_labels(self._source.chunks(chunk_rows))

    def chunks_from(self, first: int, chunk_rows: int, stop: int | None = None) -> Iterator[Chunk]:
        """See ``Source``."""
        return self._with_labels(self._source.chunks_from(first, chunk_rows, stop))

    def labels(self) -> np.ndarray:
        """Labels of all rows, (n_rows, t)."""
        return self._y

    def take(self, rows: np.ndarray) -> Rows:
        """The rows with these increasing indices."""
        return self._source.take(rows)

    def fingerprint(self) -> JSON:
        """That of the rows, and a digest of their labels."""
        return {**self._source.fingerprint(), "labels": digest(self._y)}

    def _with_labels(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        for chunk in chunks:
            own = self._y[chunk.start : chunk.start + chunk.X.shape[0]]
            yield replace(chunk, y=own)


def matched(source: Source, names: Sequence[str] | None, n_features: int, owner: str) -> Source:
    """The source with the columns that a model knows, in its order.

    Columns are matched by name; those that the model does not know are ignored, with a note. Where one side has no
    names they are taken by place, and must be as many.

    names : of the model's columns, or None. n_features : how many it has. owner : its class, for errors.
    Raises DataError that names columns which are missing, and for another number of columns without names.

    Examples
    --------
    >>> import pandas as pd
    >>> from chimap import open_source
    >>> source = open_source(pd.DataFrame({"b": [1.0], "c": [2.0], "a": [3.0]}))
    >>> view = matched(source, ["a", "b"], 2, "HistogramClassifier")
    >>> view.column_names, view.block(0, 1).X.tolist()
    (('a', 'b'), [[3.0, 1.0]])
    """
    if names is None or source.column_names is None:
        check_width(np.empty((0, source.n_features)), n_features, owner)
        return source
    wanted = tuple(str(name) for name in names)
    if wanted == source.column_names:
        return source
    place = {name: i for i, name in enumerate(source.column_names)}
    places = [place[name] for name in present_names(wanted, place, source.name)]
    view = ChosenColumns(source, places)
    known = {*wanted}
    more = [name for name in source.column_names if name not in known]
    view.notes = (*source.notes, *ignored(more, source.name))
    return view


def chosen(source: Source, choice: Choice) -> Source:
    """The columns of a source that a caller chose, where the source knows nothing of choices.

    Places stand for names that the source does not have. A column that names the rows is read once, as a whole.
    """
    if choice.is_silent:
        return source
    names = source.column_names or tuple(map(str, range(source.n_features)))
    spoken = replace(choice, names=None)
    roles = roles_of(names, None, spoken, source.name, has_names=source.column_names is not None)
    if choice.id is not None and roles.id is not None:
        parts = [chunk.X[:, [roles.id]] for chunk in source.chunks(4096)]
        values = np.concatenate([_arrays.to_dense(part) for part in parts])[:, 0]
        whole = whole_numbers(values.astype(np.float64))
        source.row_ids = unique_ids(whole.astype(str), source.name)
    return source if roles.bins == [*range(source.n_features)] else ChosenColumns(source, roles.bins)
