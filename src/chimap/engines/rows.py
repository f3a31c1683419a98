"""The features of all rows, pass after pass: kept where they fit the memory, computed again where they do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from chimap.data import Source
from chimap.data.read_ahead import chunks_ahead
from chimap.engines.local import Pass
from chimap.moments import Targets

_ROWS = 2048  # a chunk of kept rows: large enough for the products, small enough to be in the cache for the second


class FeatureRows(Protocol):
    """Rows that can be had again and again, fold by fold."""

    def chunks(self, folds: Sequence[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(features (rows, D), targets (rows, t)), both less their shifts, of the rows of these folds."""
        ...


class KeptRows:
    """Features and targets in memory, each fold's rows together.

    counts: rows of each fold, (K,).
    """

    def __init__(self, counts: np.ndarray, n_features: int, n_targets: int, dtype: np.dtype):
        self._ends = np.cumsum(counts)
        self._filled = self._ends - counts
        self._starts = self._filled.copy()
        self.Z = np.empty((int(counts.sum()), n_features), dtype=dtype)
        self.Y = np.empty((int(counts.sum()), n_targets))

    def put(self, fold: int, Z: np.ndarray, Y: Targets) -> None:
        """Keep a copy of the next rows of a fold."""
        part = slice(self._filled[fold], self._filled[fold] + Z.shape[0])
        self.Z[part], self.Y[part] = Z, np.asarray(Y)
        self._filled[fold] = part.stop

    def of(self, folds: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Views of all rows of consecutive folds."""
        part = slice(self._starts[folds[0]], self._ends[folds[-1]])
        return self.Z[part], self.Y[part]

    def chunks(self, folds: Sequence[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Views of the kept rows."""
        for fold in folds:
            for start in range(self._starts[fold], self._ends[fold], _ROWS):
                part = slice(start, min(start + _ROWS, self._ends[fold]))
                yield self.Z[part], self.Y[part]


class ReplayedRows:
    """Features computed again from the source at each pass."""

    def __init__(self, work: Pass, source: Source, chunk_rows: int):
        self._work, self._source, self._chunk_rows = work, source, chunk_rows

    def chunks(self, folds: Sequence[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Features in a buffer that the next chunk overwrites."""
        work = self._work
        for chunk in work.clock.timed("read", chunks_ahead(self._source, self._chunk_rows)):
            for _, Z, Y in work.parts(chunk.X, chunk.y, chunk.start, self._source.name, folds):
                yield Z, np.asarray(Y)
