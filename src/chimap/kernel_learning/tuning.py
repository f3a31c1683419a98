"""The rows that widths are learned on, as each evaluation of the objective reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chimap._types import Rows
from chimap.backends.host import HOST
from chimap.data.source import chunks_ahead
from chimap.engines import Stopwatch
from chimap.engines.memory import FIRST_ROWS
from chimap.features.base import FittedFeatures
from chimap.fit.collecting.sums import empty_moments
from chimap.machines.rows import PreparedRows
from chimap.moments import FoldMoments, Targets, weighted

MOST_KEPT_ENTRIES = 2**18  # entries of prepared rows, about a megabyte, that are kept between evaluations


@dataclass(frozen=True)
class PreparedChunk:
    """Checked rows, targets (rows, t) minus their shifts, folds (rows,), and weights (rows,) or None."""

    rows: Rows
    targets: Targets
    folds: np.ndarray
    weights: np.ndarray | None


@dataclass(frozen=True)
class TuningRows:
    """Rows that each evaluation reads again in chunks of ``chunk_rows``; few rows are kept once prepared."""

    rows: PreparedRows
    chunk_rows: int
    clock: Stopwatch

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rows.source.n_rows

    def chunks(self) -> Iterator[tuple[Rows, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield checked rows, targets (rows, t), folds (rows,) and weights (rows,)."""
        for chunk in self._prepared:
            weights = np.ones(chunk.rows.shape[0]) if chunk.weights is None else chunk.weights
            yield chunk.rows, np.asarray(chunk.targets) + self.rows.codec.shift, chunk.folds, weights

    def moments(self, features: FittedFeatures, dtype: np.dtype) -> FoldMoments:
        """Return the moments of the features, fold by fold, in one pass."""
        moments = empty_moments(features, self._first, self.rows.n_folds, self.rows.codec.shift, dtype)
        sums = HOST.sums(features, moments)
        for chunk in self._prepared:
            sums.add(chunk.rows, weighted(chunk.targets, chunk.weights), chunk.folds, self.clock)
        moments.release_buffers()
        return moments

    @property
    def _is_small(self) -> bool:
        return self.n_rows * self.rows.source.n_features <= MOST_KEPT_ENTRIES

    @property
    def _first(self) -> Rows:
        """Prepared rows whose features give the provisional mean."""
        return self._kept_first if self._is_small else self._read_first()

    @property
    def _prepared(self) -> Iterable[PreparedChunk]:
        return self._kept if self._is_small else self._read()

    @cached_property
    def _kept_first(self) -> Rows:
        return self._read_first()

    @cached_property
    def _kept(self) -> list[PreparedChunk]:
        return list(self._read())

    def _read_first(self) -> Rows:
        source = self.rows.source
        first_rows = source.block(0, min(FIRST_ROWS, source.n_rows)).X
        return self.rows.prepare(first_rows, 0, source.name)

    def _read(self) -> Iterator[PreparedChunk]:
        rows, source = self.rows, self.rows.source
        for chunk in self.clock.timed("read", chunks_ahead(source, self.chunk_rows)):
            with self.clock("check"):
                prepared = rows.prepare(chunk.X, chunk.start, source.name)
                targets = rows.codec.encode(np.asarray(chunk.y))
                folds = rows.folds(chunk.start, prepared.shape[0])
                weights = rows.weights(chunk.start, prepared.shape[0])
            yield PreparedChunk(prepared, targets, folds, weights)
