"""Views: a source restricted to some of its columns or rows, or with other labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import JSON, Rows
from chimap._unicode import composed_names
from chimap._validation import DataError, check_counted
from chimap.data.label_kinds import whole_numbers
from chimap.data.overlap import Overlap, TrainingMass
from chimap.data.rows import check_exact, csr_rows, digest, regroup
from chimap.data.source import Chunk, RowsInChunks, Source
from chimap.data.table import ColumnChoice, counters_among, counters_note, ignored, roles_of, unique_ids

# What a view has of the source behind it, unless it says otherwise.
_SHARED = {*RowsInChunks.__annotations__, *Source.__annotations__} - {"unlabelled", "column_kinds"}


_PIECE_ROWS = 256  # dense rows that become CSR at once


class View(Source):
    """All that another source, ``whole``, holds; a subclass says what differs."""

    def __init__(self, source: Source) -> None:
        self.whole = source
        for name in _SHARED:
            setattr(self, name, getattr(source, name))

    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        return (self._changed(chunk) for chunk in self.whole.chunks(chunk_rows))

    def chunks_from(self, first: int, chunk_rows: int, stop: int | None = None) -> Iterator[Chunk]:
        """Yield chunks as ``Source`` does."""
        return (self._changed(chunk) for chunk in self.whole.chunks_from(first, chunk_rows, stop))

    def labels(self) -> np.ndarray | None:
        return self.whole.labels()

    def take(self, rows: np.ndarray) -> Rows:
        return self.whole.take(rows)

    def places_in_file(self) -> np.ndarray:
        """Return positions as ``Source`` does."""
        return self.whole.places_in_file()

    def kept_column(self, name: str, missing: object) -> np.ndarray | None:
        """Return a column as ``Source`` does."""
        return self.whole.kept_column(name, missing)

    def _changed(self, chunk: Chunk) -> Chunk:
        """Return a chunk of the whole as this view has it."""
        return chunk


class ChosenColumns(View):
    """Some columns of a source, in the order of ``places``.

    Parameters
    ----------
    source : Source
        The source to read.
    places : sequence of int
        Positions of the ``n_features`` columns in the source, each at most once; -1 for a column of zeros.
    names : tuple of str, default=None
        Names of these columns; None for those of the source.

    Examples
    --------
    >>> from chimap.data import ArraySource
    >>> view = ChosenColumns(ArraySource(np.eye(3), [0, 1, 2]), [2, 0])
    >>> next(view.chunks(3)).X.tolist()
    [[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
    """

    def __init__(
        self, source: Source, places: Sequence[int] | np.ndarray, names: tuple[str, ...] | None = None
    ) -> None:
        super().__init__(source)
        self._places = np.asarray(places, dtype=np.int64)
        self._there = np.flatnonzero(self._places >= 0)
        self._are_first = bool((self._places == np.arange(self._places.size)).all())
        self.n_features, self.n_optional = self._places.size, 0
        if names is not None:
            self.column_names = names
        elif source.column_names is not None:
            self.column_names = tuple(source.column_names[place] for place in self._places)
        for other in ("other_names", "lineages"):
            values = getattr(source, other)
            setattr(self, other, None if names or values is None else tuple(values[place] for place in self._places))
        # A chunk of the source and the columns taken from it are in memory together.
        self.held_bytes = source.held_bytes + source.row_bytes
        share = self.n_features / source.n_features
        self.row_bytes = source.row_bytes if self.is_sparse else source.row_bytes * max(1.0, share)

    def take(self, rows: np.ndarray) -> Rows:
        return self._taken(self.whole.take(rows))

    def fingerprint(self) -> JSON:
        """Return the fingerprint of the whole, together with the columns chosen."""
        whole = self.whole.fingerprint()
        return {**whole, "shape": [self.n_rows, self.n_features], "columns": digest(self._places)}

    def _changed(self, chunk: Chunk) -> Chunk:
        return replace(chunk, X=self._taken(chunk.X))

    def _taken(self, X: Rows) -> Rows:
        if self._there.size < self._places.size:
            return self._with_zeros(X)
        taken = X[:, : self._places.size] if self._are_first else X[:, self._places]
        if _arrays.is_sparse(taken):
            taken.sort_indices()
            return taken
        return np.ascontiguousarray(taken)

    def _with_zeros(self, X: Rows) -> Rows:
        """Return the columns that are there, and zeros for the others."""
        taken = X[:, self._places[self._there]]
        if not _arrays.is_sparse(taken):
            rows = np.zeros((taken.shape[0], self.n_features), taken.dtype)
            rows[:, self._there] = taken
            return rows
        columns = self._there.astype(taken.indices.dtype)[taken.indices]
        return csr_rows(taken.data, columns, taken.indptr, self.n_features, taken.dtype)


def bins_of(source: Source, n_covariates: int) -> Source:
    """Return the rows without the columns of covariates behind their bins."""
    return ChosenColumns(source, range(source.n_features - n_covariates)) if n_covariates else source


class InForm(View):
    """The rows of a source in one form: dense, or CSR without explicit zeros."""

    def __init__(self, source: Source, is_sparse: bool) -> None:
        super().__init__(source)
        self.is_sparse = is_sparse

    def take(self, rows: np.ndarray) -> Rows:
        return self._formed(self.whole.take(rows))

    def fingerprint(self) -> JSON:
        """Return the fingerprint of the whole."""
        return self.whole.fingerprint()

    def _changed(self, chunk: Chunk) -> Chunk:
        return replace(chunk, X=self._formed(chunk.X))

    def _formed(self, X: Rows) -> Rows:
        if not self.is_sparse:
            return _arrays.to_dense(X)
        if _arrays.is_sparse(X):
            return _arrays.without_zeros(X)
        # SciPy takes several times the memory of what it converts.
        return _arrays.stack_rows([_arrays.to_sparse(X[piece]) for piece in _arrays.slices(X.shape[0], _PIECE_ROWS)])


class ChosenRows(View):
    """Some rows of a source at increasing indices, with labels of their own, or none."""

    def __init__(self, source: Source, rows: np.ndarray, y: np.ndarray | None) -> None:
        super().__init__(source)
        self._rows, self._y = np.asarray(rows, dtype=np.int64), y
        self.n_rows = self._rows.size
        if self.n_rows == 0:
            raise DataError(f"{self.name}: no rows are left. Check labels and ids.")
        if source.row_ids is not None:
            self.row_ids = source.row_ids[self._rows]
        if source.weights is not None:
            self.weights = source.weights[self._rows]
        if source.counts is not None:
            self.counts = source.counts[self._rows]
        if source.hidden is not None:
            self.hidden = source.hidden[self._rows]
        if source.covariates is not None:
            self.covariates = source.covariates.take(self._rows)
        if source.images is not None:
            self.images = source.images.take(self._rows)
        self.n_left_out = source.n_left_out + source.n_rows - self.n_rows
        if source.unread:
            places = zip(range(self.n_rows), self._rows.tolist(), strict=True)
            self.unread = {place: source.unread[row] for place, row in places if row in source.unread}
        self.stored_rows = max(1, -(-source.stored_rows * self.n_rows // source.n_rows))

    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        """Yield the chosen rows in order; ``start`` counts chosen rows."""
        yield from self._numbered(self.whole.chunks(max(1, chunk_rows // 4)), 0, self.n_rows, chunk_rows)

    def chunks_from(self, first: int, chunk_rows: int, stop: int | None = None) -> Iterator[Chunk]:
        """Yield chunks as ``Source`` does; where the source can seek, rows that lie before ``first`` are not read."""
        stop = self.n_rows if stop is None else stop
        if not self.can_seek:
            yield from Source.chunks_from(self, first, chunk_rows, stop)
        elif first < stop:
            read = self.whole.chunks_from(
                int(self._rows[first]), max(1, chunk_rows // 4), int(self._rows[stop - 1]) + 1
            )
            yield from self._numbered(read, first, stop, chunk_rows)

    @property
    def places(self) -> np.ndarray:
        """Indices of these rows in the whole, of shape (n_rows,)."""
        return self._rows

    def places_in_file(self) -> np.ndarray:
        return np.asarray(self.whole.places_in_file()[self._rows])

    def labels(self) -> np.ndarray | None:
        """Return the labels of the chosen rows, or None."""
        return self._y

    def take(self, rows: np.ndarray) -> Rows:
        """Return the rows with these increasing indices among the chosen ones."""
        return self.whole.take(self._rows[rows])

    def fingerprint(self) -> JSON:
        """Return the fingerprint of the whole, together with the rows chosen and a digest of their labels."""
        return {
            **self.whole.fingerprint(),
            "rows": digest(self._rows),
            "labels": None if self._y is None else digest(self._y),
        }

    def _numbered(self, read: Iterator[Chunk], first: int, stop: int, chunk_rows: int) -> Iterator[Chunk]:
        start = first
        for X in regroup(self._chosen_blocks(read, first, stop), chunk_rows, stop - first):
            end = start + X.shape[0]
            yield Chunk(X, None if self._y is None else self._y[start:end], start)
            start = end

    def _chosen_blocks(self, read: Iterator[Chunk], first: int, stop: int) -> Iterator[Rows]:
        chosen_rows = self._rows[first:stop]
        for chunk in read:
            low, high = np.searchsorted(chosen_rows, (chunk.start, chunk.start + chunk.X.shape[0]))
            if high > low:
                yield _arrays.take_rows(chunk.X, chosen_rows[low:high] - chunk.start)


class WithLabels(View):
    """All rows of a source, with other labels.

    Parameters
    ----------
    source : Source
        The source to read.
    y : ndarray of shape (n_rows,) or (n_rows, t)
        Labels; NaN where an entry of several tasks is missing.
    names : tuple of str or None, default=None
        Names of the t tasks.

    Examples
    --------
    >>> from chimap.data import ArraySource
    >>> view = WithLabels(ArraySource(np.eye(2)), np.array([[0.0, 1.0], [1.0, np.nan]]), ("a", "b"))
    >>> next(view.chunks(2)).y.shape, view.task_names
    ((2, 2), ('a', 'b'))
    """

    def __init__(self, source: Source, y: np.ndarray, names: tuple[str, ...] | None = None) -> None:
        super().__init__(source)
        self._y, self.task_names = y, names
        self.has_object_labels, self.label_order, self.unlabelled = False, None, source.unlabelled

    def labels(self) -> np.ndarray:
        """Return the labels of all rows, of shape (n_rows,) or (n_rows, t)."""
        return self._y

    def fingerprint(self) -> JSON:
        """Return the fingerprint of the rows, together with a digest of their labels."""
        return {**self.whole.fingerprint(), "labels": digest(self._y)}

    def _changed(self, chunk: Chunk) -> Chunk:
        return replace(chunk, y=self._y[chunk.start : chunk.start + chunk.X.shape[0]])


GENES = "Gene Expression"  # the kind of column of 10x Genomics that is a bin by default


def matched(
    source: Source,
    names: Sequence[str] | None,
    n_features: int,
    owner: str,
    mass: TrainingMass | None = None,
    missing_columns: str | None = None,
) -> Source:
    """Return the source with the columns that a model was fitted on, in the model's order.

    Columns are matched by name: the same name, or a name that differs in the version of an Ensembl id, in case or in
    the form of Unicode, with a note. Unknown ones are ignored, with a note. Missing ones are taken as zero, with a
    note, where the model was fitted on counts and the others hold 80 % of their mass. Where the source or the model has
    no names, columns are taken by position and their number must agree.

    Parameters
    ----------
    source : Source
        The rows.
    names : sequence of str or None
        Names of the model's columns.
    n_features : int
        Number of the model's columns.
    owner : str
        Class of the model, for errors.
    mass : TrainingMass or None, default=None
        What the model's columns hold of the rows that it was fitted on; None refuses missing columns.
    missing_columns : {"zero", "refuse"} or None, default=None
        Whether missing columns are taken as zero where the others hold enough; None is "zero" for counts.

    Returns
    -------
    Source

    Raises
    ------
    DataError
        If columns are missing that are not taken as zero (the message names them), or if their number differs and
        there are no names.

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
        if source.n_features != n_features:
            raise DataError(
                f"{source.name}: {source.n_features:,} bins per row, but {owner} was fitted on {n_features:,}. Give "
                "rows with the same bins in the same order."
            )
        if source.column_names is not None:
            check_counted(source.column_names, source.name)
        return source
    model_names, source_names = composed_names(names), composed_names(source.column_names)
    if model_names == source_names:
        return source
    other_bins = None if mass is None else mass.other_names
    overlap = Overlap.of(model_names, source_names, source.other_names, source.columns_aside, other_bins)
    told = [*overlap.notes(source.name)]
    if not overlap.is_complete:
        told.append(overlap.check(mass, missing_columns, source.name))
    view = ChosenColumns(source, overlap.places, model_names)
    taken = {*overlap.places.tolist()}
    n_sure = source.n_features - source.n_optional
    if overlap.places.max() < n_sure:  # nothing is said of optional columns to a model that does without
        source_names = source_names[:n_sure]
    unknown = [name for i, name in enumerate(source_names) if i not in taken]
    view.notes = (*source.notes, *ignored(unknown, source.name), *told)
    return view


def select_columns(source: Source, choice: ColumnChoice) -> Source:
    """Return the columns that a caller chose from a source that was opened without the choice.

    Positions stand in for names that the source does not have. A column that names the rows is read once, as a whole.
    """
    columns = choice.columns
    if choice.names is not None and columns is None:
        columns = range(source.n_features)  # those of the model are found among all
    if columns is None:
        source = _without_counters(_genes(source))
    if choice.is_silent:
        return source
    names = source.column_names or tuple(map(str, range(source.n_features)))
    rank = choice.rank if source.lineages is None else None  # by lineages, bins are summed (``data.clade_sums``)
    without_model = replace(choice, names=None, columns=columns, rank=rank)
    roles = roles_of(names, None, without_model, source.name, has_names=source.column_names is not None)
    if choice.id is not None and roles.id is not None:
        blocks = [chunk.X[:, [roles.id]] for chunk in source.chunks(4096)]
        values = np.concatenate([_arrays.to_dense(block) for block in blocks])[:, 0]
        check_exact(values, f"{source.name}: the id")
        id_numbers = whole_numbers(values.astype(np.float64))
        source.row_ids = unique_ids(id_numbers.astype(str), source.name)
    return source if roles.bins == [*range(source.n_features)] else ChosenColumns(source, roles.bins)


def _genes(source: Source) -> Source:
    """Return only the genes of a source that says it has columns of other kinds too, such as proteins, with a note."""
    others = [kind for kind in dict.fromkeys(source.column_kinds or ()) if kind != GENES]
    if source.column_kinds is None or not others or GENES not in source.column_kinds:
        return source
    genes = [place for place, kind in enumerate(source.column_kinds) if kind == GENES]
    view = ChosenColumns(source, genes)
    note = Message(
        "{}: {:,} columns that measure no genes ({}) are left out, as scanpy does. Name the bins with {columns} to "
        "have them.",
        source.name,
        source.n_features - len(genes),
        ", ".join(others),
    )
    view.notes = (*source.notes, note)
    return view


def _without_counters(source: Source) -> Source:
    """Return the columns of a source but those that count reads of no gene, with a note."""
    names = source.column_names or ()
    counters = counters_among(names, range(len(names)))
    if not counters or len(counters) == source.n_features:
        return source
    view = ChosenColumns(source, np.setdiff1d(np.arange(source.n_features), counters))
    view.notes = (*source.notes, *counters_note([names[place] for place in counters], source.name))
    return view
