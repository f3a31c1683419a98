"""Outputs of a model for sources of rows, chunk by chunk."""

from __future__ import annotations

import numpy as np

from chimap._validation import finite_outputs
from chimap.data import Source
from chimap.data.read_ahead import chunks_ahead
from chimap.models.model import ROWS_AT_ONCE, Model


def source_outputs(model: Model, source: Source) -> np.ndarray:
    """Return f(x) (n, t), float64, of every row of a source with the columns of the fit."""
    out, room = np.empty((source.n_rows, model.n_outputs)), model.room(min(ROWS_AT_ONCE, source.n_rows))
    for chunk in chunks_ahead(source, ROWS_AT_ONCE):
        rows = model.preparation(chunk.X, chunk.start, source.name)
        outputs = model.outputs(rows, room)
        out[chunk.start : chunk.start + outputs.shape[0]] = finite_outputs(outputs, chunk.start, source.name)
    return out
