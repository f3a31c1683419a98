"""Splits forward in time: every training row is older than the cut, and every test row is tested after it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import ArrayLike
from chimap._validation import DataError, check_positive
from chimap.data.label_kinds import as_array, is_missing, is_text, texts_of

LATEST = 0.2  # share of the rows that a fit holds out
_WINDOWS = 5  # as in sklearn.model_selection.TimeSeriesSplit
_COMPLETED = {4: "-01-01", 7: "-01"}  # of a year, and of a year and a month, by the length of the text


class ForwardSplits:
    """Expanding windows in time: each split trains on all rows before its cut, and tests those up to the next cut.

    Rows of the same time stay together, so a cut lies between two different times, as near as can be to where equal
    test parts would end. With groups, each is as late as its last row: it is trained on only if that is before the cut,
    and is else tested as a whole, its older rows too. It is a splitter in the sense of scikit-learn.

    Parameters
    ----------
    time : array of shape (n,)
        The time of each row: numbers, dates of NumPy or pandas, or ISO 8601 as text, such as 2024-03-09 or
        2024-03-09T12:00:00Z; without a zone, times are UTC.
    n_splits : int, default=None
        Number of splits, k. None takes as many as there are cuts, at most 5.
    test_fraction : float, default=None
        Share of the rows that each split tests; None for 1 / (k + 1).

    Examples
    --------
    >>> splits = ForwardSplits(["2024-03", "2021-07", "2022-01", "2022-01"], n_splits=2)
    >>> [(train.tolist(), test.tolist()) for train, test in splits.split(np.zeros((4, 1)))]
    [([1], [2, 3]), ([1, 2, 3], [0])]

    References
    ----------
    Bergmeir and Benitez, On the use of cross-validation for time series predictor evaluation, Information Sciences 191
    (2012); ``sklearn.model_selection.TimeSeriesSplit``, whose rows come in order and have no ties.
    """

    def __init__(self, time: ArrayLike, n_splits: int | None = None, test_fraction: float | None = None) -> None:
        self.time = time
        self.n_splits = n_splits
        self.test_fraction = test_fraction

    def split(
        self, X: object = None, y: object = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the sorted indices of the training rows and the test rows of each split.

        Parameters
        ----------
        X, y : object, default=None
            Ignored.
        groups : array of shape (n,), default=None
            The group of each row, which no split parts.

        Yields
        ------
        train, test : ndarray of int

        Raises
        ------
        DataError
            If a time is missing or no time, or if there are too few different ones.
        """
        places, cuts = self._cuts(groups)
        for begin, end in zip(cuts, [*cuts[1:], places.max() + 1], strict=True):
            yield np.flatnonzero(places < begin), np.flatnonzero((begin <= places) & (places < end))

    def get_n_splits(self, X: object = None, y: object = None, groups: ArrayLike | None = None) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y : object, default=None
            Ignored.
        groups : array of shape (n,), default=None
            The group of each row.
        """
        return len(self._cuts(groups)[1])

    def _cuts(self, groups: ArrayLike | None) -> tuple[np.ndarray, list[int]]:
        """Return the place of each row (n,) among the times, from 0, and the first place after each cut."""
        times = np.unique(ticks_of(self.time), return_inverse=True)[1]
        if groups is not None:
            number = np.unique(as_array(groups), return_inverse=True)[1]
            last = np.zeros(number.max() + 1, dtype=np.intp)
            np.maximum.at(last, number, times)
            times = np.unique(last[number], return_inverse=True)[1]
        before = np.cumsum(np.bincount(times))[:-1]  # rows before each place from 1 on
        k = min(_WINDOWS, before.size) if self.n_splits is None else self.n_splits
        self._check(k, before.size, groups is not None)
        tested = (1 / (k + 1) if self.test_fraction is None else self.test_fraction) * times.size
        cuts: list[int] = []
        for i in range(k):
            first, stop = cuts[-1] if cuts else 0, before.size - (k - 1 - i)
            cuts.append(first + 1 + int(np.abs(before[first:stop] - (times.size - (k - i) * tested)).argmin()))
        return times, cuts

    def _check(self, k: int, n_cuts: int, has_groups: bool) -> None:
        if n_cuts == 0:
            all_of_them = "all groups have their last row at" if has_groups else "all rows are of"
            raise DataError(
                Message(
                    "{time}: {} one time, so none is before another. Name another column, or split at random.",
                    all_of_them,
                )
            )
        check_positive(k, "n_splits", integer=True)
        if k > n_cuts:
            raise DataError(
                Message(
                    "{time}: {} different times{} allow {} splits; got {n_splits=}. Ask for fewer.",
                    n_cuts + 1,
                    " of groups" if has_groups else "",
                    n_cuts,
                    k,
                )
            )
        if self.test_fraction is not None and not 0 < k * self.test_fraction < 1:
            raise InputError(
                Message(
                    "{test_fraction=} of each of {} splits must leave rows to train on: give less.",
                    self.test_fraction,
                    k,
                )
            )


def ticks_of(time: ArrayLike, where: str = "time", rows: np.ndarray | None = None) -> np.ndarray:
    """Return times as numbers in their order, (n,): numbers as they are, dates as microseconds.

    ``rows`` are the numbers of the rows in the file, for errors. Raises DataError, naming the row, for a missing time
    and for text that is no date.

    >>> ticks_of(["2024-03-09", "2024-03-09T01:00:00+01:00"]).tolist()
    [1709942400000000, 1709942400000000]
    """
    values = as_array(time)
    rows = np.arange(values.size) if rows is None else rows
    if values.dtype.kind in "OU":
        gaps = np.array([is_missing(value) for value in values.tolist()], dtype=bool)
    else:
        gaps = np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values)
    gaps = np.ma.getdata(gaps) | np.ma.getmaskarray(values)
    if gaps.any():
        raise DataError(
            f"{where}, row {rows[int(gaps.argmax())]}: no time. Every row needs one: fill it, or remove such rows."
        )
    if values.dtype.kind == "M":
        return values.astype("datetime64[us]").astype(np.int64)
    if not is_text(values):
        return values
    texts, number = np.unique(texts_of(values), return_inverse=True)
    found = [_microseconds(text.strip()) for text in texts.tolist()]
    wrong = np.flatnonzero(np.array([each is None for each in found])[number])
    if wrong.size:
        raise DataError(
            f"{where}, row {rows[wrong[0]]}: {str(texts[number[wrong[0]]])!r} is no time. Give numbers, or dates as in "
            "ISO 8601, such as 2024-03-09."
        )
    return np.array(found, dtype=np.int64)[number]


def _microseconds(text: str) -> int | None:
    """Return the microseconds since 1970 of a date in ISO 8601; None for any other text."""
    try:
        found = datetime.fromisoformat(text + _COMPLETED.get(len(text), ""))
    except ValueError:
        return None
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    return int(np.datetime64(found.astimezone(UTC).replace(tzinfo=None), "us").astype(np.int64))
