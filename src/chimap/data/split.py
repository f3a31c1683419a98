"""Split rows in two, for training and for testing."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import JSON, ArrayLike, RandomState, Rows
from chimap._validation import DataError, ParameterError, check_positive
from chimap.data.rows import digest, regroup
from chimap.data.source import Chunk, Source

BLOCK_ROWS = 4096
# A random stream for splits alone: rows made with ``default_rng(seed)`` must not be correlated with their split.
_STREAM = 0x5B117


def split_source(
    source: Source, test_fraction: float, seed: int, groups: np.ndarray | None = None
) -> tuple[PartSource, PartSource]:
    """Return the training part and the test part of a source.

    Each row goes to the test part with probability ``test_fraction``. The draw depends on ``seed`` and the index of
    the row alone. Nothing is copied: both parts read the source.

    Parameters
    ----------
    source : Source
        The rows to split.
    test_fraction : float
        Probability of a row to be a test row, or share of the rows to hold out by groups; in (0, 1).
    seed : int
        Seed of the draw, >= 0.
    groups : ndarray of shape (n_rows,), default=None
        Groups of the rows: whole groups are held out, see ``held_out_groups``.

    Returns
    -------
    train, test : PartSource

    Raises
    ------
    ValueError
        If the fraction lies outside (0, 1) or the seed is negative.
    DataError
        If a part has no rows, or there are fewer than three groups.

    Examples
    --------
    >>> from chimap.data.formats.arrays import ArraySource
    >>> train, test = split_source(ArraySource(np.eye(100)), 0.25, seed=0)
    >>> train.n_rows + test.n_rows
    100
    """
    if not isinstance(test_fraction, numbers.Real) or not 0 < test_fraction < 1:
        raise ParameterError("test_fraction", test_fraction, "between 0 and 1, both excluded")
    if not isinstance(seed, numbers.Integral) or seed < 0:
        raise ParameterError("seed", seed, "a whole number >= 0")
    about = {"test_fraction": float(test_fraction), "seed": int(seed)}
    if groups is None:
        return _parts(source, partial(drawn_for_test, **about), about)
    is_test = held_out_groups(groups, test_fraction, seed, source.name)
    return _parts(
        source, _GivenRows(is_test), about | {"groups": digest(np.unique(groups, return_inverse=True)[1])}
    )


def split_by(source: Source, is_test: np.ndarray) -> tuple[PartSource, PartSource]:
    """Return the training part and the test part of a source, with a given assignment of the rows.

    Parameters
    ----------
    source : Source
        The rows to split.
    is_test : ndarray of shape (n_rows,)
        Whether each row belongs to the test part, as bool.

    Returns
    -------
    train, test : PartSource

    Raises
    ------
    DataError
        If a part has no rows.

    Examples
    --------
    >>> from chimap.data.formats.arrays import ArraySource
    >>> train, test = split_by(ArraySource(np.eye(4)), np.array([False, True, False, False]))
    >>> train.n_rows, test.places.tolist()
    (3, [1])
    """
    return _parts(source, _GivenRows(is_test), {"rows": digest(is_test)})


def held_out_groups(groups: np.ndarray, test_fraction: float, seed: int, name: str) -> np.ndarray:
    """Hold out whole groups, in random order, up to a share of the rows; return the held-out rows as a bool mask.

    At least one group is held out, and at least two are left.

    Parameters
    ----------
    groups : ndarray of shape (n_rows,)
        Group of each row.
    test_fraction : float
        Share of the rows to hold out.
    seed : int
        Seed of the order.
    name : str
        Name of the data, for errors.

    Raises
    ------
    DataError
        If there are fewer than three groups.

    Examples
    --------
    >>> held_out_groups(np.array(["a", "a", "b", "c", "c", "c"]), 0.3, 0, "rows").sum() in (1, 2, 3)
    True
    """
    names, number, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if names.size < 3:
        listed = ", ".join(map(str, names))
        raise DataError(
            f"{name}: {names.size} groups ({listed}), but holding one out must leave two to learn from. Name a column "
            "with more groups, or put the test rows in a separate file."
        )
    order = _draws(seed).permutation(names.size)
    before = np.concatenate([[0], np.cumsum(sizes[order])[:-1]])
    n_held_out = int(np.count_nonzero(before + sizes[order] / 2 <= test_fraction * groups.size))
    is_held_out = np.zeros(names.size, dtype=bool)
    is_held_out[order[: min(max(1, n_held_out), names.size - 2)]] = True
    return np.asarray(is_held_out[number])


@dataclass(frozen=True)
class _GivenRows:
    """The rows of the test part, given row by row."""

    is_test: np.ndarray

    def __call__(self, start: int, stop: int) -> np.ndarray:
        return self.is_test[start:stop]


def _parts(
    source: Source, drawn: Callable[[int, int], np.ndarray], about: JSON
) -> tuple[PartSource, PartSource]:
    return PartSource(source, drawn, about, "train"), PartSource(source, drawn, about, "test")


class PartSource(Source):
    """The rows of a source that a split assigns to one part; made by ``split_source`` and ``split_by``.

    Parameters
    ----------
    source : Source
        The source that was split.
    drawn : callable
        ``drawn(start, stop)`` returns whether each of these rows is in the test part, as bool.
    about : dict
        Plain values that the split was made from, for the fingerprint.
    part : {"train", "test"}
        Which part this is.
    """

    def __init__(
        self, source: Source, drawn: Callable[[int, int], np.ndarray], about: JSON, part: str
    ) -> None:
        self._source, self._drawn, self._about, self._part = source, drawn, about, part
        self.name = f"{source.name}, {part} part"
        self.n_features, self.dtype = source.n_features, source.dtype
        self.is_sparse = source.is_sparse
        self.row_bytes, self.held_bytes = source.row_bytes, source.held_bytes
        self.from_files, self.can_seek = source.from_files, source.can_seek
        self.column_names, self.id_name = source.column_names, source.id_name
        self.task_names = source.task_names
        self.reading, self.origin, self.columns_aside = source.reading, source.origin, source.columns_aside
        self.n_left_out, self.unlabelled = source.n_left_out, source.unlabelled
        blocks = range(0, source.n_rows, BLOCK_ROWS)
        counts = [np.count_nonzero(self._members(start, start + BLOCK_ROWS)) for start in blocks]
        self._ends = np.cumsum(counts)  # number of rows of this part up to the end of each block
        self.n_rows = int(self._ends[-1])
        if self.n_rows == 0:
            share = about.get("test_fraction")
            share_shown = "the given part" if share is None else f"test_fraction={share}"
            raise DataError(
                f"{self.name}: no rows ({share_shown} of {source.n_rows} rows). Take more rows or another split."
            )
        self.stored_rows = -(-source.stored_rows * self.n_rows // source.n_rows)
        if source.row_ids is not None:
            self.row_ids = source.row_ids[self._members(0, source.n_rows)]
        if source.weights is not None:
            self.weights = source.weights[self._members(0, source.n_rows)]
        if source.counts is not None:
            self.counts = source.counts[self._members(0, source.n_rows)]
        labels = source.labels()
        self._y = None if labels is None else labels[self._members(0, source.n_rows)]

    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        """Yield the rows of this part in order; ``start`` counts the rows of the part."""
        start = 0
        for X in regroup(self._rows(chunk_rows), chunk_rows, self.n_rows):
            stop = start + X.shape[0]
            yield Chunk(X, None if self._y is None else self._y[start:stop], start)
            start = stop

    def chunks_from(self, first: int, chunk_rows: int, stop: int | None = None) -> Iterator[Chunk]:
        """Yield chunks as ``Source`` does; where the source can seek, rows that lie before ``first`` are not read."""
        if not self.can_seek:
            yield from super().chunks_from(first, chunk_rows, stop)
            return
        stop, start = self.n_rows if stop is None else stop, first
        for X in regroup(self._rows_between(first, stop, chunk_rows), chunk_rows, stop - first):
            yield Chunk(X, None if self._y is None else self._y[start : start + X.shape[0]], start)
            start += X.shape[0]

    def labels(self) -> np.ndarray | None:
        """Return the labels of the rows of this part, or None."""
        return self._y

    def take(self, rows: np.ndarray) -> Rows:
        """Return the rows with these increasing indices within the part."""
        blocks = np.searchsorted(self._ends, rows, side="right")
        rows_of_blocks = []
        for block in np.unique(blocks):
            members = np.flatnonzero(self._members(block * BLOCK_ROWS, (block + 1) * BLOCK_ROWS))
            before = self._ends[block] - members.size
            rows_of_blocks.append(block * BLOCK_ROWS + members[rows[blocks == block] - before])
        return self._source.take(np.concatenate(rows_of_blocks))

    @property
    def whole(self) -> Source:
        """The source that was split."""
        return self._source

    @property
    def other(self) -> PartSource:
        """The other part of the same split."""
        return PartSource(self._source, self._drawn, self._about, "train" if self._part == "test" else "test")

    @property
    def places(self) -> np.ndarray:
        """Indices of the rows of this part in the whole, of shape (n_rows,)."""
        return np.flatnonzero(self._members(0, self._source.n_rows))

    def places_in_file(self) -> np.ndarray:
        """Return positions as ``Source`` does."""
        return np.asarray(self._source.places_in_file()[self.places])

    def fingerprint(self) -> JSON:
        """Return the fingerprint of the whole, together with the split and the name of this part."""
        return {**self._source.fingerprint(), "split": {"part": self._part, **self._about}}

    def _rows(self, chunk_rows: int) -> Iterator[Rows]:
        # Read a quarter of a chunk at a time: the growing chunk and the one being read are in memory together.
        for chunk in self._source.chunks(max(1, chunk_rows // 4)):
            members = self._members(chunk.start, chunk.start + chunk.X.shape[0])
            if members.any():
                yield _arrays.take_rows(chunk.X, np.flatnonzero(members))

    def _rows_between(self, first: int, stop: int, chunk_rows: int) -> Iterator[Rows]:
        begin, end = np.searchsorted(self._ends, (first, stop - 1), side="right")
        before = int(self._ends[begin - 1]) if begin else 0  # number of rows of this part before the chunk
        read = self._source.chunks_from(
            int(begin) * BLOCK_ROWS,
            max(1, chunk_rows // 4),
            min(int(end + 1) * BLOCK_ROWS, self._source.n_rows),
        )
        for chunk in read:
            members = np.flatnonzero(self._members(chunk.start, chunk.start + chunk.X.shape[0]))
            members_read = members[max(0, first - before) : max(0, stop - before)]
            before += members.size
            if members_read.size:
                yield _arrays.take_rows(chunk.X, members_read)

    def _members(self, start: int, stop: int) -> np.ndarray:
        """Return whether each row from ``start`` up to ``stop`` or the end is in this part, as bool."""
        is_test = self._drawn(start, min(stop, self._source.n_rows))
        return is_test if self._part == "test" else ~is_test


def _draws(seed: int, *place: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM, *place)))


def drawn_for_test(start: int, stop: int, test_fraction: float, seed: int) -> np.ndarray:
    """Return whether ``split_source`` puts the rows from ``start`` up to ``stop`` in the test part, as bool."""
    first = start // BLOCK_ROWS
    drawn = [
        _draws(seed, block).random(BLOCK_ROWS) < test_fraction
        for block in range(first, -(-stop // BLOCK_ROWS))
    ]
    return np.concatenate(drawn)[start - first * BLOCK_ROWS : stop - first * BLOCK_ROWS]


class PerClassSplits:
    """Random splits that train on ``n_train`` rows of each class and test on up to ``n_test`` of the others.

    It is a splitter in the sense of scikit-learn: any argument ``cv`` accepts it.

    Parameters
    ----------
    n_train : int
        Rows of each class to train on. Every class must have more rows than that.
    n_test : int, default=None
        Rows of each class to test on, or all that are left if they are fewer. None takes all that are left.
    n_splits : int, default=5
        Number of splits.
    random_state : int or RandomState, default=None
        Seed of the draws.

    Examples
    --------
    >>> y = np.repeat(["cat", "dog"], [3, 4])
    >>> train, test = next(PerClassSplits(2, n_splits=1, random_state=0).split(y, y))
    >>> y[train].tolist(), y[test].tolist()
    (['cat', 'cat', 'dog', 'dog'], ['cat', 'dog', 'dog'])
    """

    def __init__(
        self, n_train: int, n_test: int | None = None, *, n_splits: int = 5, random_state: RandomState = None
    ) -> None:
        self.n_train = n_train
        self.n_test = n_test
        self.n_splits = n_splits
        self.random_state = random_state

    def split(
        self, X: object, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the sorted indices of the training rows and the test rows of each split.

        Parameters
        ----------
        X : object
            Ignored.
        y : array of shape (n,), default=None
            Label of each row; required.
        groups : array, default=None
            Ignored.

        Yields
        ------
        train, test : ndarray of int

        Raises
        ------
        ValueError
            If y is None.
        DataError
            If a class has ``n_train`` rows or fewer; the message names the class.
        """
        check_positive(self.n_train, "n_train", integer=True)
        if self.n_test is not None:
            check_positive(self.n_test, "n_test", integer=True)
        if y is None:
            raise InputError("y must hold the label of each row; got None.")
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        counts = np.bincount(codes)
        small = np.flatnonzero(counts <= self.n_train)
        if small.size:
            raise DataError(
                Message(
                    "class {!s} has {} rows, too few for {n_train=!s} and one to test on ({} of {} classes are too "
                    "small). Train on fewer rows of each class, or leave the small classes out.",
                    classes[small[0]],
                    counts[small[0]],
                    self.n_train,
                    small.size,
                    classes.size,
                )
            )
        from sklearn.utils import check_random_state  # slow to import, and rarely needed

        random = check_random_state(self.random_state)
        for _ in range(self.n_splits):
            train, test = [], []
            for k in range(classes.size):
                rows = random.permutation(np.flatnonzero(codes == k))
                train.append(rows[: self.n_train])
                test.append(rows[self.n_train :][: self.n_test])
            yield np.sort(np.concatenate(train)), np.sort(np.concatenate(test))

    def get_n_splits(
        self, X: Rows | None = None, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups : object, default=None
            Ignored.
        """
        return self.n_splits
