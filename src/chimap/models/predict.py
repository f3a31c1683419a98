"""Outputs of a fitted model for rows of any kind: in memory, from a source, or chunk by chunk of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from chimap import _arrays
from chimap._progress import compilation
from chimap._types import Rows
from chimap._validation import finite_outputs
from chimap.data import Source
from chimap.data.doubts import say
from chimap.data.labelled import note_on_unread
from chimap.data.source import chunks_ahead
from chimap.data.units import RowTraits, Units
from chimap.engines import Progress, Stopwatch

_LOOKED_AT = 256  # rows of a chunk that are compared with those of the fit
_MOST_LOOKED_AT = 2**16  # of all chunks

RowsOfFit = tuple[Units, np.ndarray]
"""What the rows of the fit are like, and the share of each bin in their mass."""


class OutputsOfRows(Protocol):
    """A fitted model: what gives linear outputs f(x) of rows as they were read."""

    @property
    def n_outputs(self) -> int:
        """Number of outputs t."""
        ...

    @property
    def rows_at_once(self) -> int:
        """Rows whose features are in memory together."""
        ...

    def room(self, n_rows: int) -> np.ndarray:
        """Allocate the memory in which the outputs of up to ``n_rows`` rows are computed."""
        ...

    def scores(self, rows: Rows, first_row: int | np.ndarray, name: str, room: np.ndarray) -> np.ndarray:
        """Return f(x) (n, t) for rows as they were read; an error names the row of ``name``."""
        ...


def outputs_in_memory(model: OutputsOfRows, rows: Rows, like: RowsOfFit | None = None) -> np.ndarray:
    """Return f(x) (n, t), float64, of at most ``rows_at_once`` rows in memory.

    like: what the rows of the fit are like; it is said if these are unlike them.
    """
    if like is not None:
        say(like[0].doubts(_looked_at(rows, like[1]), "X"))
    return finite_outputs(model.scores(rows, 0, "X", model.room(rows.shape[0])))


def outputs_in_chunks(
    model: OutputsOfRows, source: Source, progress: Progress | None = None, like: RowsOfFit | None = None
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the first row of each chunk of a source with the columns of the fit, and its outputs (rows, t), float64.

    Rows whose record could not be read, such as a broken image, have NaN for outputs, with a warning.

    like: what the rows of the fit are like; it is said if these are unlike them.
    """
    progress = progress or Progress()
    room = model.room(min(model.rows_at_once, source.n_rows))
    with progress, compilation(Stopwatch(), progress):
        progress.stage("predicting", source.n_rows)
        seen: list[RowTraits] = []
        if source.unread:
            say([f"{note_on_unread(source)}. They have no prediction."])
        for chunk in chunks_ahead(source, model.rows_at_once):
            if like is not None and len(seen) * _LOOKED_AT < _MOST_LOOKED_AT:
                seen.append(_looked_at(chunk.X, like[1]))
            outputs = model.scores(chunk.X, chunk.start, source.name, room)
            outputs = finite_outputs(outputs, chunk.start, source.name)
            yield chunk.start, _without_unread(outputs, chunk.start, source)
            progress.advance(chunk.X.shape[0])
        if like is not None and seen:
            say(like[0].doubts(RowTraits.joined(seen), source.name))


def _without_unread(outputs: np.ndarray, first: int, source: Source) -> np.ndarray:
    """Return the outputs of rows from ``first`` on, with NaN for those whose record could not be read."""
    places = [row - first for row in source.unread if first <= row < first + outputs.shape[0]]
    if places:
        outputs = outputs.astype(np.float64)
        outputs[places] = np.nan
    return outputs


def outputs_of_source(
    model: OutputsOfRows, source: Source, progress: Progress | None = None, like: RowsOfFit | None = None
) -> np.ndarray:
    """Return f(x) (n, t), float64, of every row of a source with the columns of the fit."""
    out = np.empty((source.n_rows, model.n_outputs))
    for start, outputs in outputs_in_chunks(model, source, progress, like):
        out[start : start + outputs.shape[0]] = outputs
    return out


def _looked_at(rows: Rows, shares: np.ndarray) -> RowTraits:
    """Return what some rows are like, spread over all of them."""
    n = rows.shape[0]
    places = np.unique(np.linspace(0, n - 1, min(n, _LOOKED_AT)).astype(np.intp))
    return RowTraits.of(_arrays.take_rows(rows, places), shares)
