"""Columns of new rows for the bins of a model: matched by name, and zero where few of the counts are missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from chimap import _arrays
from chimap._messages import Message, quoted_names
from chimap._types import Rows
from chimap._unicode import composed_names
from chimap._validation import DataError

LEAST_MASS = 0.8  # share of the training mass from which other columns are taken as zero
MISSING_COLUMNS = ("zero", "refuse")
_LEAST_ZEROS = 0.05  # share of entries of rows of fractions, such as percentages, that are counts
_EXAMPLES = 3
_ENSEMBL = re.compile(r"(ENS[A-Z]*\d{11})(\.\d+)?")


@dataclass(frozen=True)
class TrainingMass:
    """What the bins hold of the totals of the rows that a model was fitted on.

    Parameters
    ----------
    shares : ndarray of shape (bins,)
        Share of each bin in the sum of all rows.
    are_counts : bool
        Whether a bin that is not there may be zero: rows are never negative, and whole numbers or with zeros in them.
    other_names : tuple of str or None, default=None
        Second names of the bins, such as ids of genes beside their symbols, by which new rows may name them.

    Examples
    --------
    >>> TrainingMass.of(np.array([[1.0, 2.0], [0.0, 1.0]]))
    TrainingMass(shares=array([0.25, 0.75], dtype=float32), are_counts=True, other_names=None)
    """

    shares: np.ndarray
    are_counts: bool
    other_names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, rows: Rows, other_names: tuple[str, ...] | None = None) -> TrainingMass:
        """Return what the bins of rows (n, bins) hold, with their second names."""
        values = _arrays.stored_values(rows)
        sums = np.asarray(rows.sum(axis=0, dtype=np.float64)).reshape(-1)
        is_signed = bool(values.min(initial=0) < 0)
        n_entries = rows.shape[0] * rows.shape[1]
        has_zeros = n_entries - np.count_nonzero(values) >= _LEAST_ZEROS * n_entries
        are_counts = not is_signed and (bool(has_zeros) or _arrays.are_whole(rows))
        total = sums.sum()
        shares = sums / total if 0 < total < np.inf and not is_signed else np.full(sums.size, 1 / sums.size)
        return cls(shares.astype(np.float32), are_counts, other_names)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TrainingMass)
            and (self.are_counts, self.other_names) == (other.are_counts, other.other_names)
            and np.array_equal(self.shares, other.shares)
        )


def _without_version(name: str) -> str:
    """Return a name without the version of an Ensembl id.

    >>> _without_version("ENSG00000141510.17"), _without_version("TP53.1")
    ('ENSG00000141510', 'TP53.1')
    """
    found = _ENSEMBL.fullmatch(name)
    return name if found is None else found[1]


# How names may differ on the two sides, tried in this order: what is compared, and how it is told.
_ALIKE: tuple[tuple[Callable[[str], str], str], ...] = (
    (_without_version, "without the version of Ensembl ids"),
    (lambda name: _without_version(name.strip()).casefold(), "whatever the case of their letters"),
)


@dataclass(frozen=True)
class Overlap:
    """Which columns stand for the bins of a model.

    Parameters
    ----------
    bins, columns : tuple of str
        Names of both sides.
    places : ndarray of shape (bins,)
        Position of the column of each bin, -1 for bins without one.
    ways : tuple of (str, int, str, str)
        For names that are alike but not the same: how they were matched, how many were, and an example of both.
    aside : tuple of str
        Names of further columns of the data, for errors.
    """

    bins: tuple[str, ...]
    columns: tuple[str, ...]
    places: np.ndarray
    ways: tuple[tuple[str, int, str, str], ...] = ()
    aside: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        bins: Sequence[str],
        columns: Sequence[str],
        other_names: Sequence[str] | None = None,
        aside: Sequence[str] = (),
        other_bins: Sequence[str] | None = None,
    ) -> Overlap:
        """Match names: those that are the same, then by other names of either side, and then those that are alike.

        Names that are alike are matched only where one bin and one column have them. ``other_names`` and ``other_bins``
        are second names of the columns and of the bins, such as ids of genes beside their symbols.
        """
        bins, columns = composed_names(bins), composed_names(columns)
        place = {name: i for i, name in enumerate(columns)}
        places = np.array([place.get(name, -1) for name in bins], dtype=np.int64)
        ways = []
        by_other_name = [
            (wanted_names, names, _without_version, "by the other name of genes")
            for wanted_names, names in ((bins, other_names), (other_bins, columns))
            if wanted_names is not None and names is not None
        ]
        for wanted_names, names, key, how in (*by_other_name, *((bins, columns, key, how) for key, how in _ALIKE)):
            missing = np.flatnonzero(places < 0).tolist()
            if not missing:
                break
            taken = {*places.tolist()}
            free = _alone((key(name), i) for i, name in enumerate(names))
            wanted = _alone((key(wanted_names[i]), i) for i in missing)
            found = [(i, free[word]) for word, i in wanted.items() if word in free and free[word] not in taken]
            if found:
                for i, column in found:
                    places[i] = column
                bin, column = found[0]
                ways.append((how, len(found), columns[column], bins[bin]))
        return cls(bins, columns, places, tuple(ways), tuple(aside))

    @property
    def is_complete(self) -> bool:
        """Whether each bin has a column."""
        return bool((self.places >= 0).all())

    def notes(self, where: str) -> Iterator[str]:
        """Yield how names that are not the same were matched."""
        for how, n, column, bin in self.ways:
            what = "1 column is" if n == 1 else f"{n:,} columns are"
            yield f"{where}: {what} matched {how}, such as {column!r} for the model's {bin!r}."

    def refuse(self, where: str, overlap: str = "", remedy: str = "") -> NoReturn:
        """Raise DataError for the bins that have no column, with examples of names on both sides."""
        missing, unused = self._missing(), self._unused()
        here = f" Columns that the model does not know: {quoted_names(unused, _EXAMPLES)}." if unused else ""
        raise DataError(
            Message(
                "{}: no column {}, which the model was fitted on ({:,} of {:,} columns are missing).{} Columns are "
                "matched by name; add them, or rename those that have another name.{}{}",
                where,
                quoted_names(missing),
                len(missing),
                len(self.bins),
                overlap,
                here,
                remedy,
            )
        )

    def check(self, mass: TrainingMass | None, missing_columns: str | None, where: str) -> str:
        """Return the note on bins that are taken as zero.

        Raises DataError if they may not be: if that is refused, if the model was fitted on no counts or does not know
        their mass, or if the columns that are there hold too little of it.
        """
        if mass is None or missing_columns == "refuse":
            self.refuse(where)
        if not mass.are_counts and missing_columns is None:
            self.refuse(
                where,
                remedy=Message(
                    " To take them as zero, although the model was not fitted on counts, say {missing_columns='zero'}."
                ),
            )
        there = self.places >= 0
        share = float(mass.shares[there].sum(dtype=np.float64))
        overlap = f"{np.count_nonzero(there):,} of {there.size:,} columns, {100 * share:.3g} % of the training mass"
        if share < LEAST_MASS:
            least = f"{100 * LEAST_MASS:g} %"
            self.refuse(where, f" There are {overlap}; from {least} of it on, the others are taken as zero.")
        return Message(
            "{}: {}; the columns that are missing, {}, are taken as zero. To refuse such rows, say "
            "{missing_columns='refuse'}.",
            where,
            overlap,
            quoted_names(self._missing(), _EXAMPLES),
        )

    def _missing(self) -> list[str]:
        return [self.bins[i] for i in np.flatnonzero(self.places < 0)]

    def _unused(self) -> list[str]:
        taken = {*self.places.tolist()}
        return [*(name for i, name in enumerate(self.columns) if i not in taken), *self.aside]


def _alone(words: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the places of words that come once."""
    places: dict[str, list[int]] = {}
    for word, place in words:
        places.setdefault(word, []).append(place)
    return {word: found[0] for word, found in places.items() if len(found) == 1}
