"""Split rows in two, for training and for testing."""

from __future__ import annotations

import numbers
from collections.abc import Iterator

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import JSON, ArrayLike, RandomState, Rows
from chimap._validation import DataError, ParameterError, check_positive
from chimap.data.rows import digest
from chimap.data.source import Source
from chimap.data.views import ChosenRows

BLOCK_ROWS = 4096
# A random stream for splits alone: rows made with ``default_rng(seed)`` must not be correlated with their split.
_STREAM = 0x5B117


def split_source(
    source: Source,
    test_fraction: float,
    seed: int,
    groups: np.ndarray | None = None,
    *,
    classes: np.ndarray | None = None,
) -> tuple[PartSource, PartSource]:
    """Return the training part and the test part of a source.

    The test part has exactly round(``test_fraction`` n) of n rows, drawn by ``seed``; of each class its share, see
    ``held_out_rows``. Nothing is copied: both parts read the source.

    Parameters
    ----------
    source : Source
        The rows to split.
    test_fraction : float
        Share of the rows to hold out, in (0, 1).
    seed : int
        Seed of the draw, >= 0.
    groups : ndarray of shape (n_rows,), default=None
        Groups of the rows: whole groups are held out, see ``held_out_groups``.
    classes : ndarray of shape (n_rows,), default=None
        Classes of the rows, each of which is held out in its share; not used with groups.

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
    >>> from chimap.data.arrays import ArraySource
    >>> train, test = split_source(ArraySource(np.eye(100)), 0.25, seed=0)
    >>> train.n_rows, test.n_rows
    (75, 25)
    """
    if not isinstance(test_fraction, numbers.Real) or not 0 < test_fraction < 1:
        raise ParameterError("test_fraction", test_fraction, "between 0 and 1, both excluded")
    if not isinstance(seed, numbers.Integral) or seed < 0:
        raise ParameterError("seed", seed, "a whole number >= 0")
    about = {"test_fraction": float(test_fraction), "seed": int(seed)}
    if groups is None:
        is_test = held_out_rows(source.n_rows, float(test_fraction), int(seed), classes)
        return _parts(source, is_test, about | {"rows": digest(is_test)})
    is_test = held_out_groups(groups, test_fraction, seed, source.name)
    return _parts(source, is_test, about | {"groups": digest(np.unique(groups, return_inverse=True)[1])})


def held_out_rows(n_rows: int, test_fraction: float, seed: int, classes: np.ndarray | None = None) -> np.ndarray:
    """Hold out round(f n) of n rows at random, and of each class its share; return them as a bool mask.

    Of a class of n_k rows, the whole part of n_k m / n are held out, where m are held out in all. The rest goes to the
    classes with the largest remainders, of equal ones to those that come first in the random order. The draw depends on
    which rows are of one class, not on the names of the classes.

    >>> y = np.repeat(["a", "b"], [12, 6])
    >>> is_test = held_out_rows(18, 0.2, 0, y)
    >>> int((y[is_test] == "a").sum()), int((y[is_test] == "b").sum())
    (3, 1)
    """
    order = _draws(seed).permutation(n_rows)
    number = np.zeros(n_rows, dtype=np.intp)
    if classes is not None:
        _, first, number = np.unique(classes[order], return_index=True, return_inverse=True)
        number = np.argsort(np.argsort(first))[number]  # in order of appearance
    sizes, n_test = np.bincount(number), int(np.floor(test_fraction * n_rows + 0.5))
    taken, remainders = np.divmod(sizes * n_test, n_rows)
    taken[np.argsort(-remainders, kind="stable")[: n_test - int(taken.sum())]] += 1
    by_class = np.argsort(number, kind="stable")
    place = np.arange(n_rows) - (np.cumsum(sizes) - sizes)[number[by_class]]  # of each row within its class
    is_held_out = np.zeros(n_rows, dtype=bool)
    is_held_out[order[by_class[place < taken[number[by_class]]]]] = True
    return is_held_out


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
    >>> from chimap.data.arrays import ArraySource
    >>> train, test = split_by(ArraySource(np.eye(4)), np.array([False, True, False, False]))
    >>> train.n_rows, test.places.tolist()
    (3, [1])
    """
    return _parts(source, is_test, {"rows": digest(is_test)})


def held_out_groups(groups: np.ndarray, test_fraction: float, seed: int, name: str) -> np.ndarray:
    """Hold out whole groups, in random order, up to a share of the rows; return the held-out rows as a bool mask.

    At least one group is held out, and at least two are left. Raises DataError, which names the data by ``name``, for
    fewer than three groups.

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


def held_out_structures(groups: np.ndarray, test_fraction: float, seed: int, name: str) -> np.ndarray:
    """Hold out whole groups as ``held_out_groups`` does, but no group of more than half of the test rows, if others do.

    A scaffold that a fifth of all molecules share would fill the test part alone, and say little about other scaffolds.
    Such groups stay in training where smaller ones have enough rows. Reference: Yang and others, "Analyzing Learned
    Molecular Representations for Property Prediction", J. Chem. Inf. Model. 59 (2019), balanced scaffold splits.

    >>> groups = np.array(["large"] * 6 + ["a", "b", "c", "d"])
    >>> held_out_structures(groups, 0.2, 0, "rows").nonzero()[0].tolist()
    [6, 9]
    """
    _, number, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    n_test = test_fraction * groups.size
    is_small = (sizes <= np.maximum(1.0, n_test / 2))[number]
    n_small = int(np.count_nonzero(is_small))
    if n_small <= n_test or np.unique(groups[is_small]).size < 3:
        return held_out_groups(groups, test_fraction, seed, name)
    is_held_out = np.zeros(groups.size, dtype=bool)
    is_held_out[is_small] = held_out_groups(groups[is_small], n_test / n_small, seed, name)
    return is_held_out


def _parts(source: Source, is_test: np.ndarray, about: JSON) -> tuple[PartSource, PartSource]:
    return PartSource(source, is_test, about, "train"), PartSource(source, is_test, about, "test")


def name_of_whole(name: str) -> str:
    """Return the name of the source that a part was split from; another name stays.

    >>> name_of_whole("counts,raw.csv, test part"), name_of_whole("counts,raw.csv")
    ('counts,raw.csv', 'counts,raw.csv')
    """
    return name.removesuffix(", train part").removesuffix(", test part")


class PartSource(ChosenRows):
    """The rows of a source that a split assigns to one part, "train" or "test".

    ``split_source`` and ``split_by`` make it. ``about`` holds plain values of the split, for the fingerprint.
    """

    def __init__(self, source: Source, is_test: np.ndarray, about: JSON, part: str) -> None:
        places = np.flatnonzero(is_test if part == "test" else ~is_test)
        name = f"{source.name}, {part} part"
        if places.size == 0:
            share = about.get("test_fraction")
            share_shown = "the given part" if share is None else f"test_fraction={share}"
            raise DataError(
                f"{name}: no rows ({share_shown} of {source.n_rows} rows). Take more rows or another split."
            )
        labels = source.labels()
        super().__init__(source, places, None if labels is None else labels[places])
        self.name, self.notes = name, ()
        self.n_left_out, self.unlabelled = source.n_left_out, source.unlabelled
        self._about, self._part = about, part

    @property
    def other(self) -> PartSource:
        """The other part of the same split."""
        is_here = np.zeros(self.whole.n_rows, dtype=bool)
        is_here[self.places] = True
        part = "train" if self._part == "test" else "test"
        return PartSource(self.whole, is_here if self._part == "test" else ~is_here, self._about, part)

    def fingerprint(self) -> JSON:
        """Return the fingerprint of the whole, together with the split and the name of this part."""
        return {**self.whole.fingerprint(), "split": {"part": self._part, **self._about}}


def _draws(seed: int, *place: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM, *place)))


def drawn_for_test(start: int, stop: int, test_fraction: float, seed: int) -> np.ndarray:
    """Return whether rows from ``start`` up to ``stop`` are held out, each with probability ``test_fraction``, as bool.

    Models of older files have not learned from rows that were drawn so.
    """
    first = start // BLOCK_ROWS
    drawn = [_draws(seed, block).random(BLOCK_ROWS) < test_fraction for block in range(first, -(-stop // BLOCK_ROWS))]
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

    def get_n_splits(self, X: Rows | None = None, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups : object, default=None
            Ignored.
        """
        return self.n_splits
