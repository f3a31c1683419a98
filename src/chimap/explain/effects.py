"""Effects of single bins on the scores; for an additive model, the functions of which it is the sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from chimap import _arrays
from chimap._types import Rows

_POINTS = 49  # points of the function
_BARS = 24  # bars of the histogram under it
_RARE = 0.005  # share of the rows beyond the end of the axis


def _same(values: np.ndarray) -> np.ndarray:
    return values


@dataclass(frozen=True)
class BinUnit:
    """How values of a bin, ascending, become what a model takes, and the way back.

    Parameters
    ----------
    prepared : callable, default=the identity
        Returns what the model takes for values (m,) of the bin.
    values : callable, default=the identity
        Returns the values (m,) of the bin for what the model takes.
    """

    prepared: Callable[[np.ndarray], np.ndarray] = _same
    values: Callable[[np.ndarray], np.ndarray] = _same


class Direction(NamedTuple):
    """What high values of a bin do to the output that they move the most.

    Attributes
    ----------
    output : int
        Place of the output.
    change : float
        The score at the largest value of the bin less that at its smallest.
    above : float
        Value of the bin above which the score stays on that side of its mean.
    """

    output: int
    change: float
    above: float


@dataclass(frozen=True, eq=False)
class BinEffect:
    """Scores as a function of a single bin, with the other bins at the reference row.

    Parameters
    ----------
    bin : int
        Place of the bin.
    name : str
        Name of the bin.
    values : ndarray of shape (m,)
        Values of the bin in rows as they are given, ascending.
    effects : ndarray of shape (m, outputs)
        Scores at these values less their mean over the rows; for an additive model f_i(x) up to a constant.
    edges : ndarray of shape (b + 1,)
        Edges of a histogram of the values of the bin; empty if no rows are known.
    counts : ndarray of shape (b,)
        Number of rows between the edges.

    Examples
    --------
    >>> rows = np.random.default_rng(0).random((100, 2))
    >>> effect = bin_effect(lambda rows: rows[:, :1] ** 2, rows.mean(axis=0), 0, "ink", rows, known=True)
    >>> effect.name, bool(effect.effects[0, 0] < effect.effects[-1, 0])
    ('ink', True)
    """

    bin: int
    name: str
    values: np.ndarray
    effects: np.ndarray
    edges: np.ndarray
    counts: np.ndarray

    @property
    def spread(self) -> np.ndarray:
        """Difference between the largest and the smallest effect, (outputs,)."""
        return np.asarray(np.ptp(self.effects, axis=0))

    @property
    def direction(self) -> Direction:
        """What high values of the bin do.

        Of several outputs it is the one whose score rises the most, as that of a class speaks for it; where none rises,
        the one whose score falls the most.
        """
        changes = self.effects[-1] - self.effects[0]
        output = int(changes.argmax() if changes.max() > 0 else changes.argmin())
        change = float(changes[output])
        others = np.flatnonzero(np.sign(change) * self.effects[:, output] <= 0)
        return Direction(output, change, float(self.values[others[-1] if others.size else 0]))


def bin_effect(
    outputs: Callable[[Rows], np.ndarray],
    reference: np.ndarray,
    place: int,
    name: str,
    rows: Rows,
    known: bool,
    unit: BinUnit = BinUnit(),
) -> BinEffect:
    """Compute the effect of a bin.

    Parameters
    ----------
    outputs : callable
        Scores (n, t) of prepared rows.
    reference : ndarray of shape (bins,)
        Values of the other bins.
    place : int
        Place of the bin.
    name : str
        Name of the bin.
    rows : array or CSR matrix of shape (n, bins)
        Rows whose values of the bin the axis spans.
    known : bool
        Whether these are rows of data, so that their density is worth showing.
    unit : BinUnit, default=BinUnit()
        How values of the bin become those of prepared rows.
    """
    prepared = _arrays.to_dense(_arrays.take_columns(rows, np.array([place])))[:, 0].astype(np.float64)
    column = unit.values(prepared)
    low, high = np.quantile(column, [_RARE if column.min() < 0 else 0.0, 1 - _RARE])
    if high <= low:
        low, high = min(low, column.min()), max(column.max(), low + 1e-12)
    values = np.linspace(low, high, _POINTS)
    path = np.tile(reference, (_POINTS, 1))
    path[:, place] = unit.prepared(values)
    effects = outputs(path)
    means = [np.interp(column, values, effect).mean() for effect in effects.T]
    counts, edges = np.histogram(column, _BARS, (low, high)) if known else (np.zeros(0, np.int64), np.zeros(0))
    return BinEffect(place, name, values, effects - means, edges, counts)
