"""Outputs of a fitted model for rows of any kind: in memory, from a source, or chunk by chunk of one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chimap import _arrays
from chimap._progress import compilation
from chimap._threads import threads
from chimap._types import MatrixLike, Rows
from chimap._validation import finite_outputs
from chimap.data import Source
from chimap.data.doubts import say
from chimap.data.labelled import note_on_unread
from chimap.data.source import chunks_ahead
from chimap.data.units import RowTraits
from chimap.engines import Progress, Stopwatch
from chimap.models.model import Model
from chimap.models.predictor import Predictor, RowScorer
from chimap.models.schema import check_source
from chimap.models.unassigned import checked_share, is_unassigned, marked, with_shares

_LOOKED_AT = 256  # rows of a chunk that are compared with those of the fit
_MOST_LOOKED_AT = 2**16  # of all chunks


def outputs_in_memory(model: Predictor, rows: Rows, scorer: RowScorer | None = None) -> np.ndarray:
    """Return f(x) (n, t), float64, of at most ``rows_at_once`` rows in memory, with the columns of the fit.

    It is said if they are unlike those of the fit. scorer: what gives outputs in place of the model.
    """
    schema, scorer = model.schema, scorer or model
    if schema.units is not None:
        say(schema.units.doubts(_looked_at(rows, schema.shares), "X"))
    with threads(model.n_jobs):
        return finite_outputs(scorer.scores(rows, 0, "X", scorer.room(rows.shape[0])))


def predict_chunks(
    model: Predictor, source: Source, progress: Progress | None = None
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the linear outputs of consecutive rows of a source; memory does not grow with its rows.

    Rows whose record could not be read, such as a broken image, have NaN for outputs, with a warning. It is said if the
    rows are unlike those of the fit.

    Parameters
    ----------
    source : Source
        Rows to predict.
    progress : Progress or None, default=None
        Receives the rows predicted.

    Yields
    ------
    tuple of int and ndarray of shape (rows, t)
        The first row of a chunk, and the outputs of its rows in float64.
    """
    return _in_chunks(model, model, source, progress)


def predict_source(model: Predictor, source: Source, progress: Progress | None = None) -> np.ndarray:
    """Return the linear outputs f(x) of every row of a source, computed chunk by chunk.

    Parameters
    ----------
    source : Source
        Rows to predict.
    progress : Progress or None, default=None
        Receives the rows predicted.

    Returns
    -------
    ndarray of shape (n, t)
        Outputs in float64.
    """
    return outputs_of_source(model, source, progress)


def outputs_of_source(
    model: Predictor, source: Source, progress: Progress | None = None, scorer: RowScorer | None = None
) -> np.ndarray:
    """Return what ``predict_source`` returns; ``scorer`` gives outputs in place of the model."""
    check_source(source)
    scorer = scorer or model
    out = np.empty((source.n_rows, scorer.n_outputs))
    for start, outputs in _in_chunks(model, scorer, source, progress):
        out[start : start + outputs.shape[0]] = outputs
    return out


def labels_in_chunks(
    model: Predictor, source: Source, unassigned: float, progress: Progress | None = None
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield linear outputs and labels of consecutive rows of a source; rows like none of the classes are "unassigned".

    Parameters
    ----------
    source : Source
        Rows to predict.
    unassigned : float
        See ``predict``.
    progress : Progress or None, default=None
        Receives the rows predicted.

    Yields
    ------
    tuple of int, ndarray of shape (rows, t) and ndarray of shape (rows,)
        The first row of a chunk, the outputs of its rows in float64, and their labels.
    """
    share, scorer = checked_share(unassigned), with_shares(model)
    for start, both in _in_chunks(model, scorer, source, progress):
        outputs = both[:, :-1]
        yield start, outputs, marked(model.answers.predicted(outputs), is_unassigned(both[:, -1], share))


def _in_chunks(
    model: Predictor, scorer: RowScorer, source: Source, progress: Progress | None
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the first row of each chunk, and what the scorer gives for its rows (rows, t), float64."""
    check_source(source)
    schema, source, progress = model.schema, model.schema.rows(source), progress or Progress()
    with threads(model.n_jobs):
        room = scorer.room(min(scorer.rows_at_once, source.n_rows))
        with progress, compilation(Stopwatch(), progress):
            progress.stage("predicting", source.n_rows)
            seen: list[RowTraits] = []
            if source.unread:
                say([f"{note_on_unread(source)}. They have no prediction."])
            for chunk in chunks_ahead(source, scorer.rows_at_once):
                if schema.units is not None and len(seen) * _LOOKED_AT < _MOST_LOOKED_AT:
                    seen.append(_looked_at(chunk.X, schema.shares))
                outputs = scorer.scores(chunk.X, chunk.start, source.name, room)
                outputs = finite_outputs(outputs, chunk.start, source.name)
                yield chunk.start, _without_unread(outputs, chunk.start, source)
                progress.advance(chunk.X.shape[0])
            if schema.units is not None and seen:
                say(schema.units.doubts(RowTraits.joined(seen), source.name))


def _without_unread(outputs: np.ndarray, first: int, source: Source) -> np.ndarray:
    """Return the outputs of rows from ``first`` on, with NaN for those whose record could not be read."""
    places = [row - first for row in source.unread if first <= row < first + outputs.shape[0]]
    if places:
        outputs = outputs.astype(np.float64)
        outputs[places] = np.nan
    return outputs


def _looked_at(rows: Rows, shares: np.ndarray) -> RowTraits:
    """Return what some rows are like, spread over all of them."""
    n = rows.shape[0]
    places = np.unique(np.linspace(0, n - 1, min(n, _LOOKED_AT)).astype(np.intp))
    return RowTraits.of(_arrays.take_rows(rows, places), shares)


def variance_factors(model: Model, X: MatrixLike | Source) -> np.ndarray:
    """Return 1 + q (n,): variances of new targets of rows X divided by that of the noise.

    See ``solvers.posterior``. Raise ValueError if the model has no posterior.
    """
    model.checked_posterior  # noqa: B018  before the rows are looked at
    source = model.schema.rows(X)
    factors = np.empty(source.n_rows)
    with threads(model.n_jobs):
        for chunk in source.chunks(model.rows_at_once):
            q = model.variances(model.preparation(chunk.X, chunk.start, source.name))
            factors[chunk.start : chunk.start + q.size] = 1 + q
    return factors
