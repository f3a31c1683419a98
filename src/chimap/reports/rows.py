"""Rows of a source that a report names, samples or takes along."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap._errors import DataError
from chimap._messages import Message
from chimap.data import ArraySource, Source
from chimap.data.covariates import beside
from chimap.data.label_kinds import texts_of
from chimap.data.source import choose_rows

SAMPLE_SIZE = 1000  # rows sampled for importances and densities


def row_names(source: Source) -> np.ndarray:
    """Return the names of the rows: their ids, or else their numbers in the file."""
    return texts_of(source.places_in_file() if source.row_ids is None else source.row_ids)


def named_rows(source: Source, wanted: Sequence[str]) -> np.ndarray:
    """Return the places of rows named by id or number. Raise DataError for unknown rows."""
    names, numbers = row_names(source), source.places_in_file()
    chosen = []
    for word in wanted:
        places = np.flatnonzero(names == word)
        if not places.size and word.isdecimal():
            places = np.flatnonzero(numbers == int(word))
        if not places.size:
            examples = ", ".join(names[:3])
            raise DataError(
                Message(
                    "{rows}: {} has no row {!r}. Its {:,} rows are called {}, ..., or can be named by number from 0.",
                    source.name,
                    word,
                    source.n_rows,
                    examples,
                )
            )
        chosen.append(int(places[0]))
    if not chosen:
        raise DataError(Message("{rows} must name rows by id or number, such as 0,17; got none."))
    return np.array(chosen)


def sample_of(source: Source, size: int = SAMPLE_SIZE) -> tuple[Source, np.ndarray]:
    """Return a random sample of the rows as a source, and the places of these rows."""
    places = choose_rows(source.n_rows, min(size, source.n_rows), 0)
    return taken(source, places), places


def taken(source: Source, places: np.ndarray, labels: np.ndarray | None = None) -> Source:
    """Return the rows at ``places``, in that order, as a source in memory, with these labels."""
    increasing, order = np.unique(places, return_inverse=True)
    rows = ArraySource(source.take(increasing)[order], labels, name=source.name, column_names=source.column_names)
    return rows if source.covariates is None else beside(rows, source.covariates.take(places))
