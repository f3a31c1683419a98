"""Margins of a table: a row or a column that is the sum of all others, or is called their mean and is, is no sample.

A sum is evidence by itself where chance cannot explain it: at least three others add up to it, in bins that together
hold more than twenty bits. Where its name says so too, two others are enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import Rows
from chimap._validation import DataError
from chimap.data.label_kinds import is_text
from chimap.data.source import Source
from chimap.data.views import ChosenColumns, ChosenRows

_MOST_BYTES = 2**25  # of a table that is searched; margins are written by spreadsheets, not by programs for large data
_FEWEST_OTHERS, _FEWEST_OTHERS_OF_NAMED = 3, 2
_FEWEST_BITS = 20.0  # by chance, a table in a million has such a row
_MOST_BITS_OF_BIN = 10.0
_ERROR = 1e-4  # of printed sums, as a share
_SUMS = re.compile(
    r"(grand |sub|over)?-?(totals?|sum|sums|all|summe|gesamt(summe)?|insgesamt|totale|suma)\W*", re.IGNORECASE
)
_MEANS = re.compile(r"(mean|average|avg|mittel(wert)?|durchschnitt|moyenne|media)\W*", re.IGNORECASE)


@dataclass(frozen=True)
class Margin:
    """A row, or a column, that is made of all others.

    Parameters
    ----------
    place : int
        Its position.
    name : str or None
        Its name.
    what : str
        "sum" or "mean".
    """

    place: int
    name: str | None
    what: str

    def __str__(self) -> str:
        return f"{self.place}" if self.name is None else f"{self.place} ({self.name!r})"


def margin_of(X: Rows, names: Sequence[str] | np.ndarray | None = None) -> Margin | None:
    """Return the row that is the sum of all others, or that is called a mean and is one; None if there is none.

    >>> table = np.array([[90.0, 31.0], [25.0, 70.0], [115.0, 101.0]])
    >>> margin_of(table), margin_of(table, ["a", "b", "Total"])
    (None, Margin(place=2, name='Total', what='sum'))
    """
    n_rows = X.shape[0]
    of_rows = np.asarray(X.sum(axis=1, dtype=np.float64)).reshape(-1)
    of_bins = np.asarray(X.sum(axis=0, dtype=np.float64)).reshape(-1)
    if not np.isfinite(of_rows).all() or not of_bins.any():
        return None
    for what, n_parts, called in (("sum", 2, _SUMS), ("mean", n_rows, _MEANS)):
        expected = of_bins / n_parts
        near = np.abs(of_rows - expected.sum()) <= _ERROR * np.abs(expected).sum()
        for place in np.flatnonzero(near).tolist():
            name = None if names is None else str(names[place])
            is_named = name is not None and called.fullmatch(name.strip()) is not None
            row = np.asarray(_arrays.to_dense(X[[place]]), dtype=np.float64)[0]
            is_made_of_others = np.all(np.abs(row - expected) <= _ERROR * np.abs(expected))
            if is_made_of_others and (is_named or what == "sum") and _is_evident(X, place, row, is_named):
                return Margin(place, name, what)
    return None


def _is_evident(X: Rows, place: int, row: np.ndarray, is_named: bool) -> bool:
    """Return whether a row is the sum or the mean of the others by more than chance."""
    others = _arrays.take_rows(X, np.delete(np.arange(X.shape[0]), place))
    totals = np.asarray(others.sum(axis=1, dtype=np.float64)).reshape(-1)
    filled = np.flatnonzero(totals)
    if is_named:
        return filled.size >= _FEWEST_OTHERS_OF_NAMED
    bits = np.log2(1 + np.abs(row)) if _arrays.are_whole(X) else np.full(row.size, np.inf)
    bits = np.where(_arrays.n_nonzero(others) > 1, np.minimum(bits, _MOST_BITS_OF_BIN), 0)
    # If the others are in proportion, one bin tells all.
    shares = (_arrays.to_dense(others[[part]])[0] / totals[part] for part in filled)
    has_factors = all(np.allclose(share, row / row.sum(), rtol=_ERROR, atol=0) for share in shares)
    is_enough = bits.sum() - bits.max() >= _FEWEST_BITS + np.log2(X.shape[0])
    return bool(filled.size >= _FEWEST_OTHERS and is_enough and not has_factors)


def without_margins(source: Source, *, keeps_columns: bool) -> Source:
    """Return a source of a small table without the row and the column that are the sum of all others, with notes.

    Among rows without labels, which have a prediction each, such a row gets a note alone. ``keeps_columns`` says that
    the columns were chosen.
    """
    if source.reading is not None or source.images is not None or source.n_rows * source.row_bytes > _MOST_BYTES:
        return source
    rows: Rows | None = None
    with suppress(DataError):  # whoever reads the rows says so
        rows = source.take(np.arange(source.n_rows))
    if rows is None:
        return source
    y = source.labels()
    words = [source.row_ids, None if y is None or y.ndim > 1 or not is_text(y) else y]
    found = [margin_of(rows, names) for names in words if names is not None] or [margin_of(rows)]
    margin = next((margin for margin in found if margin is not None), None)
    if margin is not None:
        kept = np.delete(np.arange(source.n_rows), margin.place)
        told = f"{source.name}: row {margin} is the {margin.what} of the others"
        if y is None:
            source.notes = (*source.notes, f"{told}: its answer is not that of a sample.")
        else:
            notes = source.notes
            source = ChosenRows(source, kept, y[kept])
            source.notes = (*notes, f"{told}, and is left out.")
        rows = _arrays.take_rows(rows, kept)
    if not keeps_columns and (column := margin_of(_transposed(rows), source.column_names)) is not None:
        notes = source.notes
        source = ChosenColumns(source, np.delete(np.arange(source.n_features), column.place))
        source.notes = (
            *notes,
            Message(
                "{}: column {} is the {} of the others in every row, and is left out. To have it, name the bins with "
                "{columns}.",
                source.name,
                column,
                column.what,
            ),
        )
    return source


def doubts_of_margins(rows: Rows, names: Sequence[str] | None, where: str, *, are_all: bool) -> Iterator[str]:
    """Yield a note where one of the rows to fit on, or one of their columns, is the sum of the others."""
    if are_all and (margin := margin_of(rows)) is not None:
        yield f"{where}: row {margin} is the {margin.what} of the others. If it is no sample, leave it out."
    if (margin := margin_of(_transposed(rows), names)) is not None:
        yield Message(
            "{}: column {} is the {} of the others. If it is no bin, leave it out with {exclude=}.",
            where,
            margin,
            margin.what,
            str(margin.place) if margin.name is None else margin.name,
        )


def _transposed(X: Rows) -> Rows:
    return X.T.tocsr() if _arrays.is_sparse(X) else X.T
