"""Which bins a model rests on together: those that change its scores the most when they are emptied."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chimap import _arrays
from chimap._types import Rows

_ROWS = 500  # that bins are emptied in
_TOGETHER = 20  # bins that are emptied together
_TRIED = 24  # bins that are tried anew at each step
_NUMBERS = 2**24  # of rows with an empty bin that are in memory at once
_MOST_ROWS = 4096


def removal_importance(
    outputs: Callable[[Rows], np.ndarray], rows: Rows, random_state: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """(order, values), both (bins,): the bins in the order in which they are emptied, and what each then adds.

    C(S) = root of the mean over rows of |f(x) - f(x without S)|^2. The first bin has the largest C, and each of the
    next nineteen is that with the largest C beside those before it, among the 24 that added the most when they were
    tried last. A value is what the bin adds to C; of the others, beside these twenty. So two bins that stand in for
    each other are both found, the second by what is lost when both are gone. No labels are needed.

    Parameters
    ----------
    outputs : callable
        Scores (m, t) of rows (m, bins).
    rows : array or CSR matrix of shape (n, bins)
        Of which five hundred, drawn by ``random_state``, are looked at. A bin is tried on the rows that have some of
        it.

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
    others = np.flatnonzero(left)
    more = emptied.added(others)
    behind = np.argsort(-more, kind="stable")
    return np.append(order, others[behind]), np.append(values, more[behind]).clip(0)


class _Emptied:
    """Rows some bins of which are empty, and how far their scores are from those of the rows as they were."""

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
        """What each of these bins would add to the root of the mean square, if it were the next, (bins,)."""
        place, row = _filled(self._rows, bins)
        totals = np.full(bins.size, self._squares.sum())
        step = max(1, min(_MOST_ROWS, _NUMBERS // self._rows.shape[1]))
        for start in range(0, row.size, step):
            part = slice(start, start + step)
            changed = self._outputs(_without(self._rows, row[part], bins[place[part]]))
            squares = np.square(changed - self._first[row[part]]).sum(axis=1)
            totals += np.bincount(place[part], squares - self._squares[row[part]], bins.size)
        n = self._rows.shape[0]
        return np.sqrt(totals.clip(0) / n) - np.sqrt(self._squares.sum() / n)


def _filled(rows: Rows, bins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(places in bins, rows) of the entries that are not 0."""
    columns = _arrays.take_columns(rows, bins) if bins.size else rows[:, :0]
    row, place = columns.nonzero()
    order = np.argsort(place, kind="stable")
    return place[order], row[order]


def _without(rows: Rows, places: np.ndarray, bins: np.ndarray) -> Rows:
    """Copies of the rows at these places, each without its bin."""
    emptied = _arrays.take_rows(rows, places)
    if _arrays.is_sparse(emptied):
        emptied.data[emptied.indices == np.repeat(bins, np.diff(emptied.indptr))] = 0
        return _arrays.without_zeros(emptied)
    emptied[np.arange(places.size), bins] = 0
    return emptied
