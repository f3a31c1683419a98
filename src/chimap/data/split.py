"""Two sources out of one: rows for training and rows for testing."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._validation import DataError
from chimap.data.rows import regroup
from chimap.data.source import Chunk, Source

BLOCK_ROWS = 4096


def split_source(source: Source, test_fraction: float, seed: int) -> tuple[Source, Source]:
    """The training part and the test part of a source.

    Each row goes to the test part with probability ``test_fraction``, by a draw that depends on ``seed`` and
    on the index of the row and on nothing else. Nothing is copied; both parts read the source.
    Raises ValueError for a fraction outside of (0, 1) or a negative seed, DataError if a part has no rows.

    >>> from chimap.data.formats.arrays import ArraySource
    >>> train, test = split_source(ArraySource(np.eye(100)), 0.25, seed=0)
    >>> train.n_rows + test.n_rows
    100
    """
    if not isinstance(test_fraction, numbers.Real) or not 0 < test_fraction < 1:
        raise ValueError(f"test_fraction must lie between 0 and 1, both excluded; got {test_fraction!r}.")
    if not isinstance(seed, numbers.Integral) or seed < 0:
        raise ValueError(f"seed must be a whole number >= 0; got {seed!r}.")
    return PartSource(source, test_fraction, seed, "train"), PartSource(source, test_fraction, seed, "test")


class PartSource(Source):
    """The rows of a source that a split gives to one part, "train" or "test"; made by ``split_source``."""

    def __init__(self, source: Source, test_fraction: float, seed: int, part: str) -> None:
        self._source, self._fraction, self._seed, self._part = source, float(test_fraction), int(seed), part
        self.name = f"{source.name}, {part} part"
        self.n_features, self.dtype = source.n_features, source.dtype
        self.is_sparse, self.has_labels = source.is_sparse, source.has_labels
        self.row_bytes, self.held_bytes = source.row_bytes, source.held_bytes
        self.from_files, self.can_seek = source.from_files, source.can_seek
        self.column_names, self.id_name = source.column_names, source.id_name
        self.reading = source.reading
        self.n_left_out, self.unlabelled = source.n_left_out, source.unlabelled
        blocks = range(0, source.n_rows, BLOCK_ROWS)
        counts = [np.count_nonzero(self._members(start, start + BLOCK_ROWS)) for start in blocks]
        self._ends = np.cumsum(counts)  # rows of this part up to the end of each block
        self.n_rows = int(self._ends[-1])
        if self.n_rows == 0:
            raise DataError(
                f"{self.name}: no rows, test_fraction={test_fraction} of {source.n_rows} rows. "
                "Take more rows or another fraction."
            )
        self.stored_rows = -(-source.stored_rows * self.n_rows // source.n_rows)
        if source.row_ids is not None:
            self.row_ids = source.row_ids[self._members(0, source.n_rows)]
        labels = source.labels()
        self._y = None if labels is None else labels[self._members(0, source.n_rows)]

    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        """The rows of this part, in order; ``start`` counts rows of the part."""
        start = 0
        for X in regroup(self._rows(chunk_rows), chunk_rows, self.n_rows):
            stop = start + X.shape[0]
            yield Chunk(X, None if self._y is None else self._y[start:stop], start)
            start = stop

    def chunks_from(self, first: int, chunk_rows: int, stop: int | None = None) -> Iterator[Chunk]:
        """See ``Source``; where the source can seek, what lies before its rows is not read."""
        if not self.can_seek:
            yield from super().chunks_from(first, chunk_rows, stop)
            return
        stop, start = self.n_rows if stop is None else stop, first
        for X in regroup(self._rows_between(first, stop, chunk_rows), chunk_rows, stop - first):
            yield Chunk(X, None if self._y is None else self._y[start : start + X.shape[0]], start)
            start += X.shape[0]

    def labels(self) -> np.ndarray | None:
        """Labels of the rows of this part, or None."""
        return self._y

    def take(self, rows: np.ndarray) -> Any:
        """The rows with these increasing indices in the part."""
        blocks = np.searchsorted(self._ends, rows, side="right")
        places = []
        for block in np.unique(blocks):
            members = np.flatnonzero(self._members(block * BLOCK_ROWS, (block + 1) * BLOCK_ROWS))
            before = self._ends[block] - members.size
            places.append(block * BLOCK_ROWS + members[rows[blocks == block] - before])
        return self._source.take(np.concatenate(places))

    @property
    def whole(self) -> Source:
        """The source that this is a part of."""
        return self._source

    @property
    def places(self) -> np.ndarray:
        """Indices of the rows of this part in the whole, (n_rows,)."""
        return np.flatnonzero(self._members(0, self._source.n_rows))

    def fingerprint(self) -> dict[str, Any]:
        """The fingerprint of the whole, and which part of it this is."""
        split = {"part": self._part, "test_fraction": self._fraction, "seed": self._seed}
        return {**self._source.fingerprint(), "split": split}

    def _rows(self, chunk_rows: int) -> Iterator[Any]:
        # A quarter at a time: the chunk that grows and the chunk that is read are in memory together.
        for chunk in self._source.chunks(max(1, chunk_rows // 4)):
            members = self._members(chunk.start, chunk.start + chunk.X.shape[0])
            if members.any():
                yield _arrays.take_rows(chunk.X, np.flatnonzero(members))

    def _rows_between(self, first: int, stop: int, chunk_rows: int) -> Iterator[Any]:
        begin, end = np.searchsorted(self._ends, (first, stop - 1), side="right")
        before = int(self._ends[begin - 1]) if begin else 0  # rows of this part before the chunk
        read = self._source.chunks_from(
            int(begin) * BLOCK_ROWS,
            max(1, chunk_rows // 4),
            min(int(end + 1) * BLOCK_ROWS, self._source.n_rows),
        )
        for chunk in read:
            members = np.flatnonzero(self._members(chunk.start, chunk.start + chunk.X.shape[0]))
            wanted = members[max(0, first - before) : max(0, stop - before)]
            before += members.size
            if wanted.size:
                yield _arrays.take_rows(chunk.X, wanted)

    def _members(self, start: int, stop: int) -> np.ndarray:
        """Whether each of the rows from start to stop, or to the end, is in this part, as bool."""
        is_test = drawn_for_test(start, min(stop, self._source.n_rows), self._fraction, self._seed)
        return is_test if self._part == "test" else ~is_test


def drawn_for_test(start: int, stop: int, test_fraction: float, seed: int) -> np.ndarray:
    """Whether ``split_source`` gives the rows from start to stop to the test part, as bool."""
    first = start // BLOCK_ROWS
    drawn = [
        np.random.default_rng([seed, block]).random(BLOCK_ROWS) < test_fraction
        for block in range(first, -(-stop // BLOCK_ROWS))
    ]
    return np.concatenate(drawn)[start - first * BLOCK_ROWS : stop - first * BLOCK_ROWS]
