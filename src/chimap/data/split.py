"""Two sources out of one: rows for training and rows for testing."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from chimap import _arrays
from chimap._types import JSON, Rows
from chimap._validation import DataError
from chimap.data.rows import digest, regroup
from chimap.data.source import Chunk, Source

BLOCK_ROWS = 4096
_STREAM = 0x5B117  # of splits alone: rows that were made by ``default_rng(seed)`` must not tell their part


def split_source(
    source: Source, test_fraction: float, seed: int, groups: np.ndarray | None = None
) -> tuple[PartSource, PartSource]:
    """The training part and the test part of a source.

    Each row goes to the test part with probability ``test_fraction``, by a draw that depends on ``seed`` and
    on the index of the row and on nothing else. With groups (n_rows,) whole ones are held out, see ``held_out_groups``.
    Nothing is copied; both parts read the source.
    Raises ValueError for a fraction outside of (0, 1) or a negative seed, DataError if a part has no rows or groups are
    too few.

    >>> from chimap.data.formats.arrays import ArraySource
    >>> train, test = split_source(ArraySource(np.eye(100)), 0.25, seed=0)
    >>> train.n_rows + test.n_rows
    100
    """
    if not isinstance(test_fraction, numbers.Real) or not 0 < test_fraction < 1:
        raise ValueError(f"test_fraction must lie between 0 and 1, both excluded; got {test_fraction!r}.")
    if not isinstance(seed, numbers.Integral) or seed < 0:
        raise ValueError(f"seed must be a whole number >= 0; got {seed!r}.")
    about = {"test_fraction": float(test_fraction), "seed": int(seed)}
    if groups is None:
        return _parts(source, partial(drawn_for_test, **about), about)
    is_test = held_out_groups(groups, test_fraction, seed, source.name)
    return _parts(
        source, _Given(is_test), about | {"groups": digest(np.unique(groups, return_inverse=True)[1])}
    )


def split_by(source: Source, is_test: np.ndarray) -> tuple[PartSource, PartSource]:
    """The training part and the test part of a source, each row in the part that ``is_test`` (n_rows,) says.

    >>> from chimap.data.formats.arrays import ArraySource
    >>> train, test = split_by(ArraySource(np.eye(4)), np.array([False, True, False, False]))
    >>> train.n_rows, test.places.tolist()
    (3, [1])
    """
    return _parts(source, _Given(is_test), {"rows": digest(is_test)})


def held_out_groups(groups: np.ndarray, test_fraction: float, seed: int, name: str) -> np.ndarray:
    """Whether each row is held out, (n_rows,) bool: groups in random order until they have that share of the rows.

    One group is held out at least, and two are left. Raises DataError for fewer than three.

    >>> held_out_groups(np.array(["a", "a", "b", "c", "c", "c"]), 0.3, 0, "rows").sum() in (1, 2, 3)
    True
    """
    there, number, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if there.size < 3:
        listed = ", ".join(map(str, there))
        raise DataError(
            f"{name}: {there.size} groups ({listed}), and holding one out must leave two to learn from. Name a column "
            "of more groups, or leave test rows in a file of their own."
        )
    order = _draws(seed).permutation(there.size)
    before = np.concatenate([[0], np.cumsum(sizes[order])[:-1]])
    n_held_out = int(np.count_nonzero(before + sizes[order] / 2 <= test_fraction * groups.size))
    is_held_out = np.zeros(there.size, dtype=bool)
    is_held_out[order[: min(max(1, n_held_out), there.size - 2)]] = True
    return np.asarray(is_held_out[number])


@dataclass(frozen=True)
class _Given:
    """Which rows are in the test part, known row by row."""

    is_test: np.ndarray

    def __call__(self, start: int, stop: int) -> np.ndarray:
        return self.is_test[start:stop]


def _parts(
    source: Source, drawn: Callable[[int, int], np.ndarray], about: JSON
) -> tuple[PartSource, PartSource]:
    return PartSource(source, drawn, about, "train"), PartSource(source, drawn, about, "test")


class PartSource(Source):
    """The rows of a source that a split gives to one part, "train" or "test"; made by ``split_source``.

    drawn(start, stop): whether each of these rows is in the test part, as bool. about: what the split was made from.
    """

    def __init__(
        self, source: Source, drawn: Callable[[int, int], np.ndarray], about: JSON, part: str
    ) -> None:
        self._source, self._drawn, self._about, self._part = source, drawn, about, part
        self.name = f"{source.name}, {part} part"
        self.n_features, self.dtype = source.n_features, source.dtype
        self.is_sparse, self.has_labels = source.is_sparse, source.has_labels
        self.row_bytes, self.held_bytes = source.row_bytes, source.held_bytes
        self.from_files, self.can_seek = source.from_files, source.can_seek
        self.column_names, self.id_name = source.column_names, source.id_name
        self.task_names = source.task_names
        self.reading, self.origin, self.columns_aside = source.reading, source.origin, source.columns_aside
        self.n_left_out, self.unlabelled = source.n_left_out, source.unlabelled
        blocks = range(0, source.n_rows, BLOCK_ROWS)
        counts = [np.count_nonzero(self._members(start, start + BLOCK_ROWS)) for start in blocks]
        self._ends = np.cumsum(counts)  # rows of this part up to the end of each block
        self.n_rows = int(self._ends[-1])
        if self.n_rows == 0:
            share = about.get("test_fraction")
            said = "that part" if share is None else f"test_fraction={share}"
            raise DataError(
                f"{self.name}: no rows, {said} of {source.n_rows} rows. Take more rows or another split."
            )
        self.stored_rows = -(-source.stored_rows * self.n_rows // source.n_rows)
        if source.row_ids is not None:
            self.row_ids = source.row_ids[self._members(0, source.n_rows)]
        if source.weights is not None:
            self.weights = source.weights[self._members(0, source.n_rows)]
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

    def take(self, rows: np.ndarray) -> Rows:
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
    def other(self) -> PartSource:
        """The other part."""
        return PartSource(self._source, self._drawn, self._about, "train" if self._part == "test" else "test")

    @property
    def places(self) -> np.ndarray:
        """Indices of the rows of this part in the whole, (n_rows,)."""
        return np.flatnonzero(self._members(0, self._source.n_rows))

    def places_in_file(self) -> np.ndarray:
        """See ``Source``."""
        return np.asarray(self._source.places_in_file()[self.places])

    def fingerprint(self) -> JSON:
        """The fingerprint of the whole, and which part of it this is."""
        return {**self._source.fingerprint(), "split": {"part": self._part, **self._about}}

    def _rows(self, chunk_rows: int) -> Iterator[Rows]:
        # A quarter at a time: the chunk that grows and the chunk that is read are in memory together.
        for chunk in self._source.chunks(max(1, chunk_rows // 4)):
            members = self._members(chunk.start, chunk.start + chunk.X.shape[0])
            if members.any():
                yield _arrays.take_rows(chunk.X, np.flatnonzero(members))

    def _rows_between(self, first: int, stop: int, chunk_rows: int) -> Iterator[Rows]:
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
        is_test = self._drawn(start, min(stop, self._source.n_rows))
        return is_test if self._part == "test" else ~is_test


def _draws(seed: int, *place: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM, *place)))


def drawn_for_test(start: int, stop: int, test_fraction: float, seed: int) -> np.ndarray:
    """Whether ``split_source`` gives the rows from start to stop to the test part, as bool."""
    first = start // BLOCK_ROWS
    drawn = [
        _draws(seed, block).random(BLOCK_ROWS) < test_fraction
        for block in range(first, -(-stop // BLOCK_ROWS))
    ]
    return np.concatenate(drawn)[start - first * BLOCK_ROWS : stop - first * BLOCK_ROWS]
