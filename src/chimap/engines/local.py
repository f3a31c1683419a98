"""The pass on this machine: chunks in, fold moments out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chimap import _arrays
from chimap.data import Source
from chimap.engines.progress import Progress, Stopwatch
from chimap.moments import FoldMoments, fold_of_rows


def accumulate(
    source: Source,
    chunk_rows: int,
    prepare: Callable[[Any, int, str], Any],
    features: Any,
    encode: Callable[[np.ndarray], np.ndarray],
    moments: FoldMoments,
    seed: int,
    clock: Stopwatch,
    progress: Progress,
) -> None:
    """Read the source once and add its rows to the moments.

    prepare(X, first row, name) checks and normalises rows; features.features_into(rows, out, shift) maps them;
    encode(y) gives targets (rows, t). Which fold a row belongs to depends on the seed and its place in the source
    alone, so that another chunk size gives the same folds.
    """
    progress.stage("learning", source.n_rows)
    for chunk in clock.timed("read", source.chunks(chunk_rows)):
        add_rows(chunk.X, chunk.y, chunk.start, source.name, prepare, features, encode, moments, seed, clock)
        progress.advance(chunk.X.shape[0])
    moments.release_buffers()


def add_rows(
    X: Any,
    y: Any,
    start: int,
    name: str,
    prepare: Callable[[Any, int, str], Any],
    features: Any,
    encode: Callable[[np.ndarray], np.ndarray],
    moments: FoldMoments,
    seed: int,
    clock: Stopwatch,
) -> None:
    """Add one chunk of rows, fold by fold."""
    n_folds, shift = len(moments.folds), moments.folds[0].shift
    with clock("check"):
        rows = prepare(X, start, name)
        targets = encode(y) - moments.folds[0].target_shift
        folds = fold_of_rows(start, rows.shape[0], n_folds, seed)
    for fold in range(n_folds):
        chosen = np.flatnonzero(folds == fold) if n_folds > 1 else slice(None)
        with clock("features"):
            part = _arrays.take_rows(rows, chosen)
            Z = moments.buffer(part.shape[0])
            features.features_into(part, Z, shift)
        with clock("moments"):
            moments.add_shifted(fold, Z, targets[chosen])
