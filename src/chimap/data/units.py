"""What the rows of a fit are like, and whether new rows are like them: their totals, and the bins that they fill.

Rows of another depth, with most entries lost, or with all bins filled, have outputs like any others; so it is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import Rows

FEWEST_ROWS = 20  # fewer rows may be unlike others by chance
# Shares of new rows beyond 1 % or 5 % of the rows of the fit, on one side, from which they are unlike these. On 35
# tables, test rows by random, official, subject and scaffold splits have at most .28 and .49,
# single classes .28 and .51.
_BEYOND_LEAST, _BEYOND_LOW = 1 / 3, 1 / 2
_ROUNDING = 0.01  # relative difference that is none: of totals that are all the same, up to rounding
_SAME_TOTALS = 1e-3  # relative spread of the totals of shares, percentages, counts per million
TELLS = 0.9  # area under the ROC curve from which totals tell the classes; at most .77 in the shared sets
_OF_DEPTH = 1.5  # ratio of numbers of filled bins below which they differ by single bins, as that of a marker
_FEWEST_OF_CLASS, _MOST_CLASSES = 5, 50


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of a number that each row has: .01, .05, .5, .95 and .99.

    Parameters
    ----------
    least, low, median, high, largest : float
        The quantiles.
    """

    least: float
    low: float
    median: float
    high: float
    largest: float

    @classmethod
    def of(cls, values: np.ndarray) -> Quantiles:
        """Return the quantiles of values (n,); zeros if there are none."""
        levels = (0.01, 0.05, 0.5, 0.95, 0.99)
        return cls(*(np.quantile(values, levels).tolist() if values.size else [0.0] * len(levels)))

    def is_unlike(self, values: np.ndarray) -> bool:
        """Return whether other values are beyond these.

        >>> usual = Quantiles.of(np.arange(100.0))
        >>> usual.is_unlike(np.arange(50.0)), usual.is_unlike(np.arange(50.0) / 10)
        (False, True)
        """
        edges = ((self.least, self.largest, _BEYOND_LEAST), (self.low, self.high, _BEYOND_LOW))
        return any(
            max(np.mean(values < lower * (1 - _ROUNDING)), np.mean(values > upper * (1 + _ROUNDING))) >= share
            for lower, upper, share in edges
        )


@dataclass(frozen=True)
class RowTraits:
    """What some rows are like.

    Parameters
    ----------
    is_whole, is_signed : bool
        Whether all entries are whole numbers; whether any is negative.
    totals, filled, mass : ndarray of shape (n,)
        Of each row: the sum, the number of filled bins, and the share of the training mass that these bins hold.
    """

    is_whole: bool
    is_signed: bool
    totals: np.ndarray
    filled: np.ndarray
    mass: np.ndarray

    @classmethod
    def of(cls, rows: Rows, shares: np.ndarray) -> RowTraits:
        """Return what rows are like; ``shares`` of the training mass are those of the first columns, the bins."""
        if rows.shape[1] > shares.size:  # covariates follow the bins
            rows = _arrays.take_columns(rows, np.arange(shares.size))
        is_filled = _arrays.map_values(rows, lambda values: (values != 0).astype(np.float32))
        with np.errstate(over="ignore"):  # rows that overflow are named where they are used
            sums = (each.sum(axis=1, dtype=np.float64) for each in (rows, is_filled))
            totals, filled = (np.asarray(each).reshape(-1) for each in sums)
        is_finite = np.isfinite(totals)
        mass = np.asarray(is_filled @ shares)
        is_signed = bool(_arrays.stored_values(rows).min(initial=0) < 0)
        return cls(_arrays.are_whole(rows), is_signed, totals[is_finite], filled[is_finite], mass[is_finite])

    @classmethod
    def joined(cls, parts: Sequence[RowTraits]) -> RowTraits:
        """Return what the rows of all parts are like."""
        of_rows = (np.concatenate([getattr(part, name) for part in parts]) for name in ("totals", "filled", "mass"))
        return cls(all(part.is_whole for part in parts), any(part.is_signed for part in parts), *of_rows)


@dataclass(frozen=True)
class Units:
    """What the rows of a fit are like.

    Parameters
    ----------
    is_whole : bool
        Whether all entries are whole numbers.
    totals, filled, mass : Quantiles or None
        See ``RowTraits``. Totals are None where they do not matter, the others in a model of an older file.
    totals_tell, filled_tell : float or None, default=None
        Areas under the ROC curves of the totals alone, and of the numbers of filled bins, where these differ by more
        than single bins; see ``discrimination``.

    Examples
    --------
    >>> counts = np.random.default_rng(0).poisson(9, (60, 30))
    >>> units = Units.of(RowTraits.of(counts, np.full(30, 1 / 30)), None)
    >>> [doubt] = units.doubts(RowTraits.of(counts // 12, np.full(30, 1 / 30)), "new.csv")
    >>> "they fill" in doubt
    True
    """

    is_whole: bool
    totals: Quantiles | None
    filled: Quantiles | None = None
    mass: Quantiles | None = None
    totals_tell: float | None = None
    filled_tell: float | None = None

    @classmethod
    def of(cls, traits: RowTraits, y: np.ndarray | None) -> Units:
        """Return what the rows of a fit are like, and what this tells of their classes y; None without any."""
        tell = [None if y is None else discrimination(each, y) for each in (traits.totals, traits.filled)]
        totals = None if traits.is_signed else Quantiles.of(traits.totals)
        filled = Quantiles.of(traits.filled)
        if filled.high < _OF_DEPTH * filled.low:
            tell[1] = None
        return cls(traits.is_whole, totals, filled, Quantiles.of(traits.mass), *tell)

    def doubts(self, now: RowTraits, where: str) -> Iterator[str]:
        """Yield how new rows, to be predicted by the model of the fit, are unlike those of the fit."""
        if now.totals.size < FEWEST_ROWS:
            return
        relative = now.totals / max(float(np.abs(now.totals).max()), np.finfo(np.float64).tiny)  # squares overflow
        has_one_total = bool(relative.std() <= _SAME_TOTALS * abs(relative.mean()))
        if self.is_whole and not now.is_whole and not (self.totals is None and has_one_total):
            yield (
                f"{where}: fractions, but the model was fitted on whole numbers. Are these shares, logarithms or "
                "averages of counts? Give the counts themselves, or fit on rows of the same kind."
            )
            return
        found = []
        if self.totals is not None and self.totals.is_unlike(now.totals):
            found.append(f"they sum to {np.median(now.totals):.3g}, the median ({self.totals.median:.3g} in the fit)")
        if self.filled is not None and self.filled.is_unlike(now.filled):
            found.append(f"they fill {np.median(now.filled):,g} bins ({self.filled.median:,g} in the fit)")
        if self.mass is not None and self.mass.is_unlike(now.mass):
            found.append(
                f"their bins hold {100 * np.median(now.mass):.3g} % of the training mass ({100 * self.mass.median:.3g} "
                "% in the fit)"
            )
        if found:
            yield Message(
                "{}: rows are unlike those of the fit: {}. Their ranks may hold; classes, probabilities and values may "
                "not.{}",
                where,
                ", ".join(found),
                Message(" If totals mean nothing, fit with {normalize='l1'}.")
                if found[0].startswith("they sum")
                else "",
            )

    def doubts_of_fit(self, where: str, score: str) -> Iterator[str]:
        """Yield that totals alone tell the classes, or else numbers of filled bins, with the score of the machine."""
        advice = Message(" Fit with {normalize='l1'}, or 'log-cpm', if totals mean nothing.")
        sees = [("totals of rows", self.totals_tell, advice)] if self.totals is not None else []
        for what, tell, help in (*sees, ("numbers of filled bins", self.filled_tell, "")):
            if tell is not None and tell >= TELLS:
                yield Message(
                    "{}: the {} alone tell the classes, with an area under the ROC curve of {:.3f} ({}). If they "
                    "follow the depth of a measurement, rows of another depth get wrong classes.{}",
                    where,
                    what,
                    tell,
                    score,
                    help,
                )
                return


def discrimination(values: np.ndarray, y: np.ndarray) -> float | None:
    """Return how well values (n,) tell classes: the area under the ROC curve, the mean of all pairs of classes.

    Either direction counts. None for few rows of a class, or many classes.

    >>> round(discrimination(np.arange(40.0), np.arange(40) % 4 // 3), 3), discrimination(np.arange(9), np.arange(9))
    (0.55, None)
    """
    classes, counts = np.unique(y, return_counts=True)
    if y.shape != values.shape or not 2 <= classes.size <= _MOST_CLASSES or counts.min() < _FEWEST_OF_CLASS:
        return None
    if values.size < 2 * FEWEST_ROWS:
        return None
    by_class = [np.sort(values[y == each]) for each in classes]
    areas = []
    for one, other in combinations(by_class, 2):
        below = np.searchsorted(other, one, "left") + np.searchsorted(other, one, "right")
        area = float(below.mean()) / (2 * other.size)
        areas.append(max(area, 1 - area))
    return float(np.mean(areas))
