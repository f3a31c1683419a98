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
from chimap.data.doubts import FEWEST_ROWS, Units, say
from chimap.data.labels import note_on_unread
from chimap.data.source import chunks_ahead
from chimap.engines import Progress, Stopwatch

_LOOKED_AT = 256  # rows whose units are compared with those of the fit


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


def outputs_in_memory(model: OutputsOfRows, rows: Rows, units: Units | None = None) -> np.ndarray:
    """Return f(x) (n, t), float64, of at most ``rows_at_once`` rows in memory.

    units: those of the rows of the fit; other units are said.
    """
    _say_doubts(units, rows, "X")
    return finite_outputs(model.scores(rows, 0, "X", model.room(rows.shape[0])))


def outputs_in_chunks(
    model: OutputsOfRows, source: Source, progress: Progress | None = None, units: Units | None = None
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the first row of each chunk of a source with the columns of the fit, and its outputs (rows, t), float64.

    Rows whose record could not be read, such as a broken image, have NaN for outputs, with a warning.

    units: those of the rows of the fit; other units are said.
    """
    progress = progress or Progress()
    room = model.room(min(model.rows_at_once, source.n_rows))
    with progress, compilation(Stopwatch(), progress):
        progress.stage("predicting", source.n_rows)
        if source.unread:
            say([f"{note_on_unread(source)}. They have no prediction."])
        for chunk in chunks_ahead(source, model.rows_at_once):
            if chunk.start == 0:
                _say_doubts(units, chunk.X, source.name)
            outputs = model.scores(chunk.X, chunk.start, source.name, room)
            outputs = finite_outputs(outputs, chunk.start, source.name)
            yield chunk.start, _without_unread(outputs, chunk.start, source)
            progress.advance(chunk.X.shape[0])


def _without_unread(outputs: np.ndarray, first: int, source: Source) -> np.ndarray:
    """Return the outputs of rows from ``first`` on, with NaN for those whose record could not be read."""
    places = [row - first for row in source.unread if first <= row < first + outputs.shape[0]]
    if places:
        outputs = outputs.astype(np.float64)
        outputs[places] = np.nan
    return outputs


def outputs_of_source(
    model: OutputsOfRows, source: Source, progress: Progress | None = None, units: Units | None = None
) -> np.ndarray:
    """Return f(x) (n, t), float64, of every row of a source with the columns of the fit."""
    out = np.empty((source.n_rows, model.n_outputs))
    for start, outputs in outputs_in_chunks(model, source, progress, units):
        out[start : start + outputs.shape[0]] = outputs
    return out


def _say_doubts(units: Units | None, rows: Rows, name: str) -> None:
    """Warn if rows have other units than those of the fit."""
    if units is not None and rows.shape[0] >= FEWEST_ROWS:
        say(units.doubts(_arrays.take_rows(rows, slice(_LOOKED_AT)), name))
