"""The features of all rows for repeated passes: kept if they fit in memory, otherwise computed again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from chimap import _threads
from chimap._progress import Progress, Stopwatch
from chimap._types import Rows
from chimap.backends.base import HostSums
from chimap.data import RowsInChunks
from chimap.engines.local import Engine, Pass
from chimap.losses import LossAt, LossSums
from chimap.losses.sums import FeatureRows
from chimap.moments import Targets, split

_ROWS = 1024  # kept rows of a chunk: enough for fast products, few enough to stay in cache between them
_PARTS = 8  # parts of the chunks, each for a thread; fixed, so that sums do not depend on the machine


class RowsInMemory(FeatureRows):
    """Features, targets and weights in memory, with the rows of each fold together.

    ``counts`` (K,) holds the number of rows of each fold.
    """

    def __init__(self, counts: np.ndarray, n_features: int, n_targets: int, dtype: np.dtype):
        self._ends = np.cumsum(counts)
        self._filled = self._ends - counts
        self._starts = self._filled.copy()
        self.Z = np.empty((int(counts.sum()), n_features), dtype=dtype)
        self.Y = np.empty((int(counts.sum()), n_targets))
        self.weights: np.ndarray | None = None

    def put(self, fold: int, Z: np.ndarray, Y: Targets) -> None:
        """Keep a copy of the next rows of a fold."""
        block = slice(self._filled[fold], self._filled[fold] + Z.shape[0])
        plain, weights = split(Y)
        self.Z[block], self.Y[block] = Z, np.asarray(plain)
        if weights is not None:
            if self.weights is None:
                self.weights = np.ones((self.Y.shape[0], *weights.shape[1:]))
            self.weights[block] = weights
        self._filled[fold] = block.stop

    def chunks(self, folds: Sequence[int]) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """Yield views of the kept rows, (features, targets, weights or None)."""
        for fold in folds:
            for start in range(self._starts[fold], self._ends[fold], _ROWS):
                chunk = slice(start, min(start + _ROWS, self._ends[fold]))
                yield self.Z[chunk], self.Y[chunk], None if self.weights is None else self.weights[chunk]

    def sums(self, at: LossAt, folds: Sequence[int]) -> LossSums:
        chunks = list(self.chunks(folds))

        def of_part(part: int) -> LossSums:
            sums = at.empty()
            for Z, Y, weights in chunks[part::_PARTS]:
                at.add(sums, Z, Y, weights)
            return sums

        sums, *rest = _threads.tasks(range(max(1, min(_PARTS, len(chunks)))), of_part)
        for partial in rest:
            sums.merge(partial)
        return sums


class ReplayedRows(FeatureRows):
    """Features that are computed again from the source in each pass, by the engine of the first pass."""

    def __init__(self, work: Pass[HostSums], source: RowsInChunks, chunk_rows: int, engine: Engine):
        # The time of these passes counts as a separate stage, so they get a new stopwatch.
        self._work = replace(work, clock=Stopwatch(), sums=work.sums.without_keeping())
        self._source, self._chunk_rows, self._engine = source, chunk_rows, engine

    def sums(self, at: LossAt, folds: Sequence[int]) -> LossSums:
        work = LossPass(self._work, at, tuple(folds), at.empty())
        self._engine.run(work, self._source, self._chunk_rows, Progress(), "passes", 0, _go_on)
        return work.moments


@dataclass(frozen=True)
class LossPass:
    """A pass that sums a loss and its gradient over the rows of some folds, with the features of a ``Pass``."""

    features: Pass[HostSums]
    at: LossAt
    folds: tuple[int, ...]
    moments: LossSums
    clock: Stopwatch = field(default_factory=Stopwatch)

    def fresh(self) -> LossPass:
        """See ``Work``."""
        return replace(self, features=self.features.fresh(), moments=self.moments.fresh(), clock=Stopwatch())

    def add(self, X: Rows, y: np.ndarray | None, start: int, name: str) -> None:
        """Add a chunk; see ``Work``."""
        rows, targets, folds = self.features.prepared(X, y, start, name)
        for _, Z, Y in self.features.sums.pieces(rows, targets, folds, self.folds, self.features.clock):
            self.at.add(self.moments, Z, *split(Y))


def _go_on(work: object, next_row: int) -> None:
    """Do nothing after a chunk: an interrupted pass starts again from the beginning."""
