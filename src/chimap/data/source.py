"""A source: rows that can be read again and again, in chunks, under a memory budget."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from chimap import _arrays
from chimap._types import JSON, Rows
from chimap._validation import DataError, check_positive


class Origin(Protocol):
    """What rows were opened from."""

    def values(self, name: str, source: Source) -> np.ndarray:
        """See ``Source.column``."""
        ...


TAKEN_BYTES = 2**24  # of the chunks that rows here and there are taken from


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a source.

    X: float32 or float64 rows of bins, (rows, n_features), dense or CSR.
    y: their labels or targets, (rows,), of several tasks (rows, t), or None where the source has none.
    start: index of the first row in the source.

    The arrays may be views of the source's own memory: read them, do not write to them.

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


class Source(ABC):
    """Rows on disk or in memory.

    A source knows its size before it is read, gives the same rows in the same order each time, and holds no
    more than a chunk of them in memory (sources that wrap arrays in memory aside).

    name: for messages and reports, a file name or "array".
    n_rows, n_features: shape of the whole.
    dtype: float32 or float64, of the chunks.
    is_sparse: whether chunks are CSR.
    has_labels: whether chunks carry y.
    row_bytes: mean bytes of one row as it comes in a chunk; memory planning uses it.
    held_bytes: what reading keeps in memory beside chunks, an open row group for example; so is this.
    from_files: whether rows are read from files, so that a pass gains by reading a chunk ahead.
    can_seek: whether rows in the middle can be read without those before.
    column_names: names of the columns, (n_features,), where the data have them, else None. Models match by them.
    has_object_labels: whether labels came as Python objects, and classes are to be such, too.
    task_names: of the columns of labels (n_rows, t) of several tasks, where the data have them, else None.
    row_ids: what names the rows, (n_rows,), or None; predictions are written beside it. id_name: what it is called.
    weights: how often each row counts, (n_rows,) float64, or None where all count once.
    unlabelled: those of the rows left out that have no label, as a source, or None.
    n_left_out: rows of the data that are not among these, for want of a label for example.
    notes: sentences for the user about how the data were read.
    reading: how rows were made of text, molecules or named counts, which models keep; else None.
    columns_aside: names of columns of the data that are no bins, labels or ids, as far as they are known.
    metadata, matrices: names of columns of metadata of the rows, and of other matrices of the same rows, where a file
    has such.
    origin: what the rows were opened from, from which ``column`` reads more of them, or None.
    stored_rows: rows that are stored, and decoded, together, a row group for example; a part of them costs as much.

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
    has_labels: bool
    row_bytes: float
    held_bytes: float = 0.0
    from_files: bool = False
    can_seek: bool = False
    column_names: tuple[str, ...] | None = None
    row_ids: np.ndarray | None = None
    has_object_labels: bool = False
    task_names: tuple[str, ...] | None = None
    weights: np.ndarray | None = None
    n_left_out: int = 0
    notes: tuple[str, ...] = ()
    id_name: str = "id"
    reading: Any = None
    columns_aside: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()
    matrices: tuple[str, ...] = ()
    origin: Origin | None = None
    stored_rows: int = 1

    unlabelled: Source | None = None

    @property
    def every_row(self) -> Source:
        """The source with the rows that were left out for want of a label, in their places."""
        return self

    def places_in_file(self) -> np.ndarray:
        """Where these rows are among all that were opened, (n_rows,); those left out have no place."""
        return np.arange(self.n_rows)

    def column(self, name: str) -> np.ndarray:
        """The values (n_rows,) of a column of the data that is no bin, such as the groups of rows.

        Parameters
        ----------
        name : str
            A column or array of the data, a file of values, or ``TABLE::COLUMN`` joined by the ids of the rows: all
            that ``labels`` of ``open_source`` may be. Say ``aside=`` there, so that it is not taken for a bin.

        Raises
        ------
        DataError
            Naming the first row without a value, and where there is no such column.
        """
        if self.origin is None:
            raise DataError(
                f"{self.name}: {name!r} names a column of a file, but these rows are not read from one. Give its "
                "values as an array."
            )
        return self.origin.values(name, self)

    @abstractmethod
    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        """All rows, in order, ``chunk_rows`` at a time (the last chunk may be shorter)."""

    def chunks_from(self, first: int, chunk_rows: int, stop: int | None = None) -> Iterator[Chunk]:
        """The chunks of ``chunks`` from row ``first`` on, a multiple of chunk_rows, to row ``stop`` or the end.

        Sources that cannot seek read the rows before and pass over them.
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
        """The rows from start to stop in one chunk."""
        y = self.labels()
        return Chunk(self.take(np.arange(start, stop)), None if y is None else y[start:stop], start)

    @abstractmethod
    def labels(self) -> np.ndarray | None:
        """Labels or targets of all rows, (n_rows,), or None."""

    @abstractmethod
    def fingerprint(self) -> JSON:
        """Plain values that change when the data change: name, shape, size, a digest of some content."""

    def take(self, rows: np.ndarray) -> Rows:
        """The rows with these increasing indices, (len(rows), n_features), of the same kind as the chunks.

        One pass over all chunks; sources that can seek read these rows only.
        """
        parts, rows_a_chunk = [], max(1, int(TAKEN_BYTES / max(1.0, self.row_bytes)))
        for chunk in self.chunks(rows_a_chunk):
            first, last = np.searchsorted(rows, (chunk.start, chunk.start + chunk.X.shape[0]))
            if last > first:
                parts.append(_arrays.take_rows(chunk.X, rows[first:last] - chunk.start))
        return _arrays.stack_rows(parts)

    def sample(self, n: int, random_state: int | np.random.RandomState | None = None) -> Rows:
        """``n`` rows chosen uniformly without replacement (all, if there are fewer), in their order."""
        return self.take(choose_rows(self.n_rows, n, random_state))


def choose_rows(n_rows: int, n: int, random_state: int | np.random.RandomState | None) -> np.ndarray:
    """Sorted indices of ``min(n, n_rows)`` rows drawn uniformly without replacement, (n,) int64."""
    check_positive(n, "n", integer=True)
    if n >= n_rows:
        return np.arange(n_rows)
    seed = random_state if isinstance(random_state, int | None) else random_state.randint(2**31)
    # Generator.choice without replacement takes memory of the order of n, not of n_rows.
    return np.sort(np.random.default_rng(seed).choice(n_rows, size=n, replace=False, shuffle=False))
