"""Areas under ROC curves, for many columns, or without each of many parts of the rows, from one sort.

``sklearn.metrics.roc_auc_score`` gives the same, but takes 6 ms to check its input: a race on a dozen tasks computes
8000 areas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def area_under_curve(is_second: np.ndarray, outputs: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the area under the ROC curve; NaN if there is only one class.

    It is the share, by weight, of pairs of a row of the second class and one of the first in which the former has the
    larger output. Pairs with equal outputs count half.


    >>> area_under_curve(np.array([False, True, False, True]), np.array([0.1, 0.4, 0.4, 0.8]))
    0.875
    """
    w = np.ones(outputs.size) if weights is None else np.asarray(weights, dtype=np.float64)
    return float(SortedOutputs.of(is_second[:, None], outputs[:, None]).areas(w[:, None])[0])


@dataclass(frozen=True)
class SortedOutputs:
    """Columns of outputs in ascending order, whose ``areas`` can then be computed for any weights.

    ``order`` (t, n) has the rows of each column and ``is_second`` (t, n) their classes. ``ends`` are the ends of runs
    of equal outputs, in columns laid end to end, and ``starts`` (t,) the first run of each column. A row of weight 0
    may stand anywhere.
    """

    order: np.ndarray
    is_second: np.ndarray
    ends: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, is_second: np.ndarray, outputs: np.ndarray) -> SortedOutputs:
        """Sort outputs (n, t), of which ``is_second`` (n, t) says whether rows are of the second class."""
        order = np.argsort(outputs.T, axis=1)
        values = np.take_along_axis(outputs.T, order, axis=1)
        is_end = np.ones(values.shape, dtype=bool)
        np.not_equal(values[:, 1:], values[:, :-1], out=is_end[:, :-1])
        ends = np.flatnonzero(is_end)
        starts = np.searchsorted(ends, np.arange(values.shape[0]) * values.shape[1])
        return cls(order, np.take_along_axis(is_second.T, order, axis=1), ends, starts)

    def areas(self, weights: np.ndarray) -> np.ndarray:
        """Return the area (t,) of each column, with weights (n, t) of the rows; NaN where one class has no weight."""
        if not self.order.size:
            return np.full(self.order.shape[0], np.nan)
        w = np.take_along_axis(weights.T, self.order, axis=1)
        second_in, first_in = (
            np.diff(np.cumsum(of_class)[self.ends], prepend=0.0)
            for of_class in (w * self.is_second, w * ~self.is_second)
        )
        seconds, firsts = (np.add.reduceat(within, self.starts) for within in (second_in, first_in))
        # Weight of the first class in earlier columns: subtracted, so that a run only counts rows below it in its
        # column.
        before = np.repeat(np.cumsum(firsts) - firsts, np.diff(self.starts, append=self.ends.size))
        first = np.cumsum(first_in) - before
        won = np.add.reduceat(second_in * (first - first_in / 2), self.starts)
        pairs = firsts * seconds
        return np.divide(won, pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0)
