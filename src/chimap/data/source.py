"""Sources: rows that can be read again and again, in chunks, under a memory budget."""

from __future__ import annotations

import contextvars
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from chimap import _arrays
from chimap._types import JSON, Rows
from chimap._validation import DataError, check_positive
from chimap.data.label_kinds import words_for_missing
from chimap.data.rows import digest, regroup, row_ranges

if TYPE_CHECKING:
    import dask.array as da


class Stored(Protocol):
    """What a source reads: a file, several files, a container of arrays or records."""

    def content(self) -> JSON:
        """Return plain values that change with the content: its bytes, and a digest of some of them."""
        ...

    def check_unchanged(self) -> None:
        """Raise DataError if it has changed since it was opened."""
        ...


TAKEN_BYTES = 2**24  # size of the chunks from which ``take`` picks scattered rows


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a source.

    The arrays may be views of the memory of the source: read them, do not write to them.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (rows, n_features)
        Bins as float32 or float64.
    y : ndarray of shape (rows,) or (rows, t), or None
        Labels or targets, with one column a task if there are several; None if the source has no labels.
    start : int
        Index of the first row in the source.

    Examples
    --------
    >>> from chimap import open_source
    >>> source = open_source(np.arange(12.0).reshape(6, 2), labels=list("aabbab"))
    >>> [(chunk.start, chunk.X.shape, chunk.y.tolist()) for chunk in source.chunks(4)]
    [(0, (4, 2), ['a', 'a', 'b', 'b']), (4, (2, 2), ['a', 'b'])]
    """

    X: Rows
    y: np.ndarray | None
    start: int


@dataclass(frozen=True, eq=False)
class CovariateTable:
    """The values of covariates of the same rows.

    Parameters
    ----------
    names : tuple of str
        Names of the covariates.
    values : tuple of masked arrays of shape (n,)
        float64, or text for levels of a category; masked where a value is missing.
    words : tuple of str, default=()
        The words that named columns of the data; empty where values were given.
    """

    names: tuple[str, ...]
    values: tuple[np.ma.MaskedArray, ...]
    words: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.values[0].size)

    def take(self, rows: np.ndarray) -> CovariateTable:
        """Return the covariates of some rows."""
        return CovariateTable(self.names, tuple(values[rows] for values in self.values), self.words)


_NOTHING_UNREAD: Mapping[int, str] = {}


class RowsInChunks(ABC):
    """Rows on disk or in memory, as passes over them need them.

    They know their size before they are read, and come in the same order in each pass. No more than a chunk of them is
    held in memory, unless they are in memory already.

    Attributes
    ----------
    name : str
        Name for messages and reports: a file name or "array".
    n_rows, n_features : int
        Shape of the whole.
    dtype : dtype
        float32 or float64, the type of the chunks.
    is_sparse : bool
        Whether chunks are CSR.
    has_labels : bool
        Whether chunks carry ``y``, as ``labels()`` is not None.
    row_bytes : float
        Mean bytes of a row within a chunk, for planning memory.
    held_bytes : float
        Bytes that reading keeps in memory besides chunks, such as an open row group; for planning memory too.
    from_files : bool
        Whether rows are read from files, so that reading a chunk ahead makes a pass faster.
    can_seek : bool
        Whether rows in the middle can be read without those before them.
    weights : ndarray of shape (n_rows,), or None
        Weights of the rows in every sum, as float64; None if all are 1.
    stored_rows : int
        Number of rows that are stored and decoded together, such as a row group: reading some of them costs as much as
        reading all.

    Examples
    --------
    >>> import numpy as np
    >>> from chimap import open_source
    >>> source = open_source(np.eye(5, 3), labels=["a", "b", "a", "b", "b"])
    >>> source.n_rows, [chunk.X.shape for chunk in source.chunks(2)]
    (5, [(2, 3), (2, 3), (1, 3)])
    """

    name: str
    n_rows: int
    n_features: int
    dtype: np.dtype
    is_sparse: bool
    row_bytes: float
    held_bytes: float = 0.0
    from_files: bool = False
    can_seek: bool = False
    weights: np.ndarray | None = None
    stored_rows: int = 1

    @property
    def has_labels(self) -> bool:
        """Whether chunks carry ``y``."""
        return self.labels() is not None

    @abstractmethod
    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        """Yield all rows in order, ``chunk_rows`` at a time; the last chunk may be shorter.

        Parameters
        ----------
        chunk_rows : int
            Rows per chunk.

        Yields
        ------
        Chunk
        """

    def chunks_from(self, first: int, chunk_rows: int, stop: int | None = None) -> Iterator[Chunk]:
        """Yield the chunks of ``chunks`` from row ``first`` up to row ``stop``.

        Sources that cannot seek read the rows before ``first`` and skip them.

        Parameters
        ----------
        first : int
            Index of the first row, a multiple of ``chunk_rows``.
        chunk_rows : int
            Rows per chunk.
        stop : int, default=None
            Index after the last row; None stands for the end.

        Yields
        ------
        Chunk
        """
        stop = self.n_rows if stop is None else stop
        if self.can_seek:
            for start in range(first, stop, chunk_rows):
                yield self.block(start, min(start + chunk_rows, stop))
            return
        for chunk in self.chunks(chunk_rows):
            if chunk.start >= stop:
                return
            if chunk.start >= first:
                yield chunk

    def block(self, start: int, stop: int) -> Chunk:
        """Return the rows from ``start`` up to ``stop`` as one chunk.

        Parameters
        ----------
        start, stop : int
            Index of the first row, and index after the last.
        """
        y = self.labels()
        return Chunk(self.take(np.arange(start, stop)), None if y is None else y[start:stop], start)

    def lazy(self, start: int, stop: int) -> da.Array | None:
        """Return the rows from ``start`` up to ``stop`` as a Dask array, which workers compute; None for others.

        Parameters
        ----------
        start, stop : int
            Index of the first row, and index after the last.
        """
        return None

    @abstractmethod
    def labels(self) -> np.ndarray | None:
        """Return the labels or targets of all rows, of shape (n_rows,) or (n_rows, t), or None."""

    @abstractmethod
    def fingerprint(self) -> JSON:
        """Return plain values that change when the data change: name, shape, size, a digest of some of the content."""

    def take(self, rows: np.ndarray) -> Rows:
        """Return the rows with the given indices, of the same kind as the chunks.

        This makes one pass over all chunks; sources that can seek read only these rows.

        Parameters
        ----------
        rows : ndarray of shape (m,)
            Increasing indices of rows.

        Returns
        -------
        ndarray or CSR matrix of shape (m, n_features)
        """
        blocks, rows_a_chunk = [], max(1, int(TAKEN_BYTES / max(1.0, self.row_bytes)))
        for chunk in self.chunks(rows_a_chunk):
            first, last = np.searchsorted(rows, (chunk.start, chunk.start + chunk.X.shape[0]))
            if last > first:
                blocks.append(_arrays.take_rows(chunk.X, rows[first:last] - chunk.start))
        return _arrays.stack_rows(blocks)

    def sample(self, n: int, random_state: int | np.random.RandomState | None = None) -> Rows:
        """Return ``n`` rows drawn uniformly without replacement, in their order; all rows if there are fewer.

        Parameters
        ----------
        n : int
            Number of rows.
        random_state : int or RandomState, default=None
            Seed of the draw; None draws anew at each call.

        Returns
        -------
        ndarray or CSR matrix of shape (min(n, n_rows), n_features)
        """
        return self.take(choose_rows(self.n_rows, n, random_state))


class Source(RowsInChunks):
    """Rows with what is known of them: names of columns, ids, labels, weights, covariates, and notes for the user.

    Attributes
    ----------
    column_names : tuple of str, or None
        Names of the ``n_features`` columns, where the data have them. Models match columns by these names.
    other_names : tuple of str, or None
        Second names of these columns, such as the ids of genes beside their symbols, by which models may know them.
    lineages : tuple of str, or None
        Lineages of these columns in a tree, such as the taxonomy of a BIOM table, where the data have them beside names
        that are none; "" for a column without one.
    has_object_labels : bool
        Whether labels came as Python objects, so that classes must be objects too.
    task_names : tuple of str, or None
        Names of the t columns of labels of several tasks, where the data have them.
    label_order : tuple or None
        The labels in their order, where the data say that they have one.
    row_ids : ndarray of shape (n_rows,), or None
        Ids that name the rows; predictions are written beside them.
    id_name : str
        Name of the column of ids.
    counts : ndarray of shape (n_rows,), or None
        Number of equal rows that each row stands for; None if each is one row, whatever its weight.
    hidden : ndarray of bool of shape (n_rows,), or None
        Rows whose labels weights of bins have not learned from, which alone are scored; None for all.
    covariates : CovariateTable or None
        Columns of other kinds beside the bins, such as age and sex, where a fit or a model takes them.
    n_optional : int
        How many of the last columns a fit may do without, such as pairs of words.
    unlabelled : Source or None
        The rows that were left out because they have no label.
    n_left_out : int
        Number of rows of the data that this source leaves out, for want of a label for example.
    n_unreadable : int
        Number of these whose record could not be read.
    unread : mapping of int to str
        Why the record of a row could not be read, by row, such as a broken image. Such a row is empty, a fit leaves it
        out, and it has no prediction.
    notes : tuple of str
        Sentences for the user about how the data were read.
    reading : Reading or None
        How rows were made of text, molecules or named counts; models keep it.
    images : ImageSet or None
        The images whose histograms the rows are, in the order of the rows.
    columns_aside : tuple of str
        Names of columns of the data that are neither bins, labels nor ids, as far as they are known.
    metadata, matrices : tuple of str
        Names of the metadata columns of the rows, and of other matrices of the same rows, where a file has them.
    read_column : callable or None
        Reads a column of the data that the rows were opened from, see ``column``; arguments: name, source, missing.
    column_kinds : tuple of str, or None
        What each column measures, where the data say it of columns of several kinds, as of genes and proteins.
    is_logged : bool
        Whether the data say that the rows are logarithms of counts.
    first_column : int or None
        The number that a file of numbered columns gives the first of them, 0 or 1; None for other data.

    Examples
    --------
    >>> import pandas as pd
    >>> from chimap import open_source
    >>> source = open_source(pd.DataFrame({"red": [1, 0], "fox": [2, 5]}, index=["s1", "s2"]), labels=["a", "b"])
    >>> source.column_names, source.row_ids.tolist()
    (('red', 'fox'), ['s1', 's2'])
    """

    column_names: tuple[str, ...] | None = None
    other_names: tuple[str, ...] | None = None
    lineages: tuple[str, ...] | None = None
    row_ids: np.ndarray | None = None
    has_object_labels: bool = False
    task_names: tuple[str, ...] | None = None
    label_order: tuple[object, ...] | None = None
    counts: np.ndarray | None = None
    hidden: np.ndarray | None = None
    covariates: CovariateTable | None = None
    n_left_out: int = 0
    n_unreadable: int = 0
    unread: Mapping[int, str] = _NOTHING_UNREAD
    notes: tuple[str, ...] = ()
    id_name: str = "id"
    reading: Any = None
    images: Any = None
    columns_aside: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()
    matrices: tuple[str, ...] = ()
    read_column: Callable[[str, Source, object], np.ndarray] | None = None
    column_kinds: tuple[str, ...] | None = None
    is_logged: bool = False
    first_column: int | None = None
    n_optional: int = 0
    unlabelled: Source | None = None

    def places_in_file(self) -> np.ndarray:
        """Return the positions of these rows among all rows of the data, of shape (n_rows,)."""
        return np.arange(self.n_rows)

    def column(self, name: str) -> np.ndarray:
        """Return the values, of shape (n_rows,), of a column that is not a bin, such as the groups of rows.

        Parameters
        ----------
        name : str
            A column or array of the data, a file of values, or ``TABLE::COLUMN`` joined by the ids of the rows:
            everything that ``labels`` of ``open_source`` accepts. Pass the name as ``aside`` to ``open_source``, so
            that the column is not taken for a bin.

        Raises
        ------
        DataError
            If a row has no value (the message names the first such row), if there is no such column, or if the rows
            were not read from a file or a data frame.
        """
        values = self._from_origin(name, None)
        if np.ma.is_masked(values):
            row = self.places_in_file()[np.flatnonzero(np.ma.getmaskarray(values))[0]]
            raise DataError(
                f"{self.name}, row {row}: no value in {name!r}. Every row needs one: fill it, or remove the rows "
                "without a value."
            )
        return np.asarray(np.ma.getdata(values))

    def column_with_gaps(self, name: str) -> np.ma.MaskedArray:
        """Return the values of a column as ``column`` does, masked where a row has none, or a word such as "NA".

        Parameters
        ----------
        name : str
            See ``column``.

        Raises
        ------
        DataError
            If there is no such column, or if the rows were not read from a file or a data frame.
        """
        return self._from_origin(name, words_for_missing())

    def kept_column(self, name: str, missing: object) -> np.ndarray | None:
        """Return a column of all rows of the data, as labels, if it was kept when they were opened; None for others.

        Parameters
        ----------
        name : str
            Name of the column.
        missing : object
            What marks a missing value.
        """
        return None

    def _from_origin(self, name: str, missing: object) -> np.ma.MaskedArray:
        if self.read_column is None:
            raise DataError(
                f"{self.name}: {name!r} names a column of a file, but these rows are not read from one. Give its "
                "values as an array."
            )
        return np.ma.asarray(self.read_column(name, self, missing))


def choose_rows(n_rows: int, n: int, random_state: int | np.random.RandomState | None) -> np.ndarray:
    """Return the sorted indices of ``min(n, n_rows)`` rows drawn uniformly without replacement, as int64."""
    check_positive(n, "n", integer=True)
    if n >= n_rows:
        return np.arange(n_rows)
    seed = random_state if isinstance(random_state, int | None) else random_state.randint(2**31)
    # Without replacement and without shuffling, Generator.choice takes memory of the order of n, not of n_rows.
    return np.sort(np.random.default_rng(seed).choice(n_rows, size=n, replace=False, shuffle=False))


def chunks_ahead(source: RowsInChunks, chunk_rows: int, first: int = 0) -> Iterator[Chunk]:
    """Yield the chunks of a source in order; if it reads files, a thread reads the next chunk meanwhile.

    At most one chunk is ahead, which a memory budget counts (``Job.reads_ahead``). An error in reading is raised in
    place of the chunk that it concerns. When the consumer stops or ends, so does the thread: it finishes the chunk
    that it is reading, and the source closes its files.

    Parameters
    ----------
    source : Source
        The rows.
    chunk_rows : int
        Rows per chunk.
    first : int, default=0
        Index of the first row, a multiple of ``chunk_rows``; chunks before it are skipped.

    Examples
    --------
    >>> from chimap.data import ArraySource
    >>> [chunk.start for chunk in chunks_ahead(ArraySource([[1.0], [2.0], [3.0]]), 2)]
    [0, 2]
    """
    chunks = source.chunks(chunk_rows) if first == 0 else source.chunks_from(first, chunk_rows)
    return _ahead(chunks) if source.from_files else chunks


def _ahead(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    # The limit of threads is a context variable, which a new thread does not inherit.
    run: Any = contextvars.copy_context().run
    with ThreadPoolExecutor(1, thread_name_prefix="chimap-read") as reader:
        waiting = reader.submit(run, next, chunks, None)
        try:
            while (chunk := waiting.result()) is not None:
                waiting = reader.submit(run, next, chunks, None)
                yield chunk
                del chunk  # otherwise it would stay in memory until the next chunk has been read
        finally:
            waiting.cancel()
            # This runs after a read that could not be cancelled, and closes the files of a generator.
            reader.submit(getattr(chunks, "close", int)).result()


BLOCK_BYTES = 2**22  # size of the rows that are decoded at a time, where the file leaves the choice


class StoredSource(Source):
    """Rows that are stored somewhere; a subclass sets ``_stored``, ``_y`` and the attributes of ``Source``."""

    from_files = True
    _stored: Stored | None = None
    _y: np.ndarray | None

    def labels(self) -> np.ndarray | None:
        return self._y

    def fingerprint(self) -> JSON:
        """Return name, shape, dtype, and digests of the labels and of some of the content."""
        return {
            "name": self.name,
            **self._content(),
            "shape": [self.n_rows, self.n_features],
            "dtype": str(self.dtype),
            "labels": None if self._y is None else digest(self._y),
        }

    def _chunk(self, X: Rows, start: int) -> Chunk:
        """Return rows from ``start`` on as a chunk with their labels."""
        return Chunk(X, None if self._y is None else self._y[start : start + X.shape[0]], start)

    def _content(self) -> JSON:
        """Return the part of the fingerprint that stands for the content."""
        return {} if self._stored is None else self._stored.content()

    def _check_unchanged(self) -> None:
        """Raise DataError if the data have changed since they were opened."""
        if self._stored is not None:
            self._stored.check_unchanged()


class StreamSource(StoredSource):
    """A source of blocks of rows, which a subclass reads from the first to the last in ``_blocks``."""

    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        """Yield all rows in order. Raises DataError if their number has changed since the source was opened."""
        start = stop = 0
        for X in regroup(self._blocks(), chunk_rows, self.n_rows):
            stop = start + X.shape[0]
            if stop > self.n_rows:
                break
            yield self._chunk(X, start)
            start = stop
        if stop != self.n_rows:
            raise DataError(
                f"{self.name}: {'more' if stop > self.n_rows else 'fewer'} rows than when it was opened "
                f"({self.n_rows}). All passes must read the same rows; wait until they are written completely, then "
                "open them again."
            )
        self._check_unchanged()

    @abstractmethod
    def _blocks(self) -> Iterator[Rows]:
        """Yield all rows in order: dense blocks of type ``dtype``, or canonical CSR."""


class SeekableStream(StreamSource):
    """A source whose blocks can be read from any row on; each block that is needed is decoded once in a pass."""

    can_seek = True

    def chunks_from(self, first: int, chunk_rows: int, stop: int | None = None) -> Iterator[Chunk]:
        """Yield chunks as ``Source`` does; blocks before ``first`` are not read."""
        stop, start = self.n_rows if stop is None else stop, first
        for X in regroup(self._blocks_between(first, stop), chunk_rows, stop - first):
            yield self._chunk(X, start)
            start += X.shape[0]

    def _blocks(self) -> Iterator[Rows]:
        yield from self._blocks_between(0, self.n_rows)

    @abstractmethod
    def _blocks_between(self, first: int, stop: int) -> Iterator[Rows]:
        """Yield the rows from ``first`` up to ``stop`` in order: dense blocks of type ``dtype``, or canonical CSR."""


Read = Callable[[int, int], Rows]


class RangeSource(StoredSource):
    """A source whose chunks are read on demand, by a function of ranges that a subclass opens in ``_reading``."""

    can_seek = True

    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        yield from self.chunks_from(0, chunk_rows)
        self._check_unchanged()

    def chunks_from(self, first: int, chunk_rows: int, stop: int | None = None) -> Iterator[Chunk]:
        """Yield chunks as ``Source`` does; rows before ``first`` are not read."""
        ranges = row_ranges((self.n_rows if stop is None else stop) - first, chunk_rows)
        with self._reading() as read:
            for begin, end in ranges:
                yield self._chunk(read(first + begin, first + end), first + begin)

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Read]:
        """Open, for the block, a function that reads the rows from ``start`` up to ``stop``; calls come in order."""


class WholeSource(RangeSource):
    """Rows of a file that a library reads as a whole: the first pass does, and they stay in memory.

    ``held_bytes`` says beforehand how much memory that takes, so that a fit with a smaller budget is refused. A
    subclass reads the rows in ``_whole``.
    """

    from_files = False
    _X: Rows | None = None

    def __getstate__(self) -> JSON:
        # A copy in another process reads the file; the matrix is too large to send with every task.
        return {**self.__dict__, "_X": None}

    def take(self, rows: np.ndarray) -> Rows:
        return _arrays.take_rows(self._loaded(), rows)

    @contextmanager
    def _reading(self) -> Iterator[Read]:
        X = self._loaded()
        yield lambda start, stop: X[start:stop]

    def _loaded(self) -> Rows:
        if self._X is None:
            super()._check_unchanged()
            self._X = self._whole()
        return self._X

    def _check_unchanged(self) -> None:
        """Do nothing: rows in memory stay the same, whatever happens to the file."""

    @abstractmethod
    def _whole(self) -> Rows:
        """Read all rows: a dense array of type ``dtype``, or canonical CSR."""
