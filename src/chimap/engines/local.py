"""The pass on this machine: chunks in, fold moments out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from chimap import _arrays
from chimap.data import Source
from chimap.data.read_ahead import chunks_ahead
from chimap.engines.progress import Progress, Stopwatch
from chimap.moments import FoldMoments, fold_of_rows


@dataclass(frozen=True)
class Pass:
    """What happens to each chunk of rows on its way into the moments.

    prepare(X, first row, name) checks and normalises rows; features.features_into(rows, out, shift) maps them;
    encode(y) gives targets (rows, t); keep(fold, Z, Y), if given, is handed what was added. The fold of a row depends
    on the seed and on its place in the source alone, so that another chunk size gives the same folds.
    """

    prepare: Callable[[Any, Any, str], Any]
    features: Any
    encode: Callable[[np.ndarray], np.ndarray]
    moments: FoldMoments
    seed: int
    clock: Stopwatch
    keep: Callable[[int, np.ndarray, np.ndarray], None] | None = None

    def run(self, source: Source, chunk_rows: int, progress: Progress) -> None:
        """Read the source once and add all of its rows."""
        progress.stage("learning", source.n_rows)
        for chunk in self.clock.timed("read", chunks_ahead(source, chunk_rows)):
            self.add(chunk.X, chunk.y, chunk.start, source.name)
            progress.advance(chunk.X.shape[0])
        self.moments.release_buffers()

    def add(self, X: Any, y: Any, start: int, name: str) -> None:
        """Add a chunk whose first row is row ``start`` of the source, fold by fold.

        Rows and labels are checked before the first sum changes: a bad chunk leaves the moments as they were.
        """
        for fold, Z, Y in self.parts(X, y, start, name, range(len(self.moments.folds))):
            with self.clock("moments"):
                self.moments.add_shifted(fold, Z, Y)
            if self.keep is not None:
                self.keep(fold, Z, Y)

    def parts(
        self, X: Any, y: Any, start: int, name: str, wanted: Iterable[int]
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """(fold, features, targets) of the rows of a chunk that are in the wanted folds, both less their shifts.

        The features are in a buffer that the next fold overwrites.
        """
        n_folds = len(self.moments.folds)
        with self.clock("check"):
            rows = self.prepare(X, start, name)
            targets = self.encode(y) - self.moments.target_shift
            folds = fold_of_rows(start, rows.shape[0], n_folds, self.seed)
        for fold in wanted:
            chosen = np.flatnonzero(folds == fold) if n_folds > 1 else slice(None)
            with self.clock("features"):
                part = _arrays.take_rows(rows, chosen)
                Z = self.moments.buffer(part.shape[0])
                self.features.features_into(part, Z, self.moments.shift)
            yield fold, Z, targets[chosen]
