"""Importance of bins by removal: the bins that together change the scores of a model the most when they are emptied."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chimap import _arrays
from chimap._types import Rows

_ROWS = 500  # rows in which bins are emptied
_TOGETHER = 20  # bins that are emptied together
_TRIED = 24  # bins that are tried again at each step
_NUMBERS = 2**24  # entries of rows with an empty bin that are in memory at once
_MOST_ROWS = 4096  # rows with an empty bin that are in memory at once


def removal_importance(
    outputs: Callable[[Rows], np.ndarray], rows: Rows, random_state: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bins in the order in which they are emptied, and the change of the scores that each adds.

    C(S) is the root of the mean over rows of |f(x) - f(x without S)|^2. The first bin has the largest C. Each of the
    next nineteen has the largest C together with the bins before it, among the 24 bins that added the most when they
    were last tried. The value of a bin is what it adds to C; that of each remaining bin, what it adds to these twenty.
    Two bins that replace each other are therefore both found, the second by the change when both are empty. No labels
    are needed.

    Parameters
    ----------
    outputs : callable
        Scores (m, t) of rows (m, bins).
    rows : array or CSR matrix of shape (n, bins)
        Rows, of which at most five hundred random ones are used. A bin is tried on the rows in which it is not empty.
    random_state : int, default=0
        Seed of the choice of rows.

    Returns
    -------
    order : ndarray of shape (bins,)
        The bins, in the order in which they are emptied.
    values : ndarray of shape (bins,)
        The value of each of these bins.

    References
    ----------
    Covert, Lundberg and Lee, Explaining by removing: a unified framework for model explanation, JMLR 2021.

    Examples
    --------
    >>> rows = np.random.default_rng(0).random((50, 3))
    >>> order, values = removal_importance(lambda x: np.maximum(x[:, :1], x[:, 1:2]), rows)
    >>> order.tolist()[2], bool(values[1] > values[0]), float(values[2])  # either one alone does little
    (2, True, 0.0)
    """
    if rows.shape[0] > _ROWS:
        chosen = np.sort(np.random.default_rng(random_state).choice(rows.shape[0], _ROWS, replace=False))
        rows = _arrays.take_rows(rows, chosen)
    n_bins, emptied = rows.shape[1], _Emptied(outputs, rows)
    left = np.ones(n_bins, dtype=bool)
    order: list[int] = []
    values: list[float] = []
    added = emptied.added(np.arange(n_bins))
    for _ in range(min(_TOGETHER, n_bins)):
        tried = np.flatnonzero(left)[np.argsort(-added[left], kind="stable")[:_TRIED]]
        if order:
            added[tried] = emptied.added(tried)
        best = tried[np.argmax(added[tried])]
        order.append(int(best))
        values.append(float(added[best]))
        left[best] = False
        emptied.empty(best)
    rest = np.flatnonzero(left)
    rest_added = emptied.added(rest)
    rest_order = np.argsort(-rest_added, kind="stable")
    return np.append(order, rest[rest_order]), np.append(values, rest_added[rest_order]).clip(0)


class _Emptied:
    """Rows in which some bins are emptied, with the change of their scores from those of the original rows."""

    def __init__(self, outputs: Callable[[Rows], np.ndarray], rows: Rows):
        self._outputs, self._rows = outputs, rows
        self._first = outputs(rows)
        self._squares = np.zeros(rows.shape[0])

    def empty(self, i: int) -> None:
        """Empty a bin in all rows."""
        n = self._rows.shape[0]
        self._rows = _without(self._rows, np.arange(n), np.full(n, i))
        self._squares = np.square(self._outputs(self._rows) - self._first).sum(axis=1)

    def added(self, bins: np.ndarray) -> np.ndarray:
        """Return what each of these bins would add to the root of the mean square if it were emptied next, (bins,)."""
        place, row = _filled(self._rows, bins)
        totals = np.full(bins.size, self._squares.sum())
        step = max(1, min(_MOST_ROWS, _NUMBERS // self._rows.shape[1]))
        for start in range(0, row.size, step):
            chunk = slice(start, start + step)
            changed = self._outputs(_without(self._rows, row[chunk], bins[place[chunk]]))
            squares = np.square(changed - self._first[row[chunk]]).sum(axis=1)
            totals += np.bincount(place[chunk], squares - self._squares[row[chunk]], bins.size)
        n = self._rows.shape[0]
        return np.sqrt(totals.clip(0) / n) - np.sqrt(self._squares.sum() / n)


def _filled(rows: Rows, bins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (places in ``bins``, rows) of the entries that are not 0."""
    columns = _arrays.take_columns(rows, bins) if bins.size else rows[:, :0]
    row, place = columns.nonzero()
    order = np.argsort(place, kind="stable")
    return place[order], row[order]


def _without(rows: Rows, places: np.ndarray, bins: np.ndarray) -> Rows:
    """Return copies of the rows at these places, each with its bin emptied."""
    emptied = _arrays.take_rows(rows, places)
    if _arrays.is_sparse(emptied):
        emptied.data[emptied.indices == np.repeat(bins, np.diff(emptied.indptr))] = 0
        return _arrays.without_zeros(emptied)
    emptied[np.arange(places.size), bins] = 0
    return emptied
