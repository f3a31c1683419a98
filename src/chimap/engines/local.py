"""Passes over the rows: chunks in, moments out; on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from chimap import _arrays
from chimap.data import Source
from chimap.data.io.read_ahead import chunks_ahead
from chimap.engines.memory import PIECE_ROWS
from chimap.engines.progress import Progress, Stopwatch
from chimap.features.blocks import BlockFeatures, BlockMoments
from chimap.moments import FoldMoments, Targets, fold_of_rows


class Work(Protocol):
    """What a pass does with each chunk, and what it has added up so far: moments that have ``fresh`` and ``merge``."""

    moments: Any
    clock: Stopwatch

    def add(self, X: Any, y: Any, start: int, name: str) -> None:
        """Add a chunk whose first row is row ``start`` of the source of this name."""

    def fresh(self) -> Self:
        """The same work, with nothing added up yet."""
        ...


Reached = Callable[[Any, int], None]
"""Told after each chunk: the work, and the first row that it has not seen."""


class Engine(Protocol):
    """What reads the rows of a source and has them worked on.

    can_keep: whether features pass through this process and can be kept for further passes. n_waiting: moments of parts
    that lie in the memory of a worker beside those that it adds to.
    """

    can_keep: bool
    n_waiting: int

    def run(
        self,
        work: Any,
        source: Source,
        chunk_rows: int,
        progress: Progress,
        stage: str,
        first: int,
        reached: Reached,
    ) -> None:
        """Have all chunks from row ``first`` on added to the work; ``reached`` is told after each."""


class LocalEngine:
    """This process: one chunk after the other, the next being read meanwhile."""

    can_keep = True
    n_waiting = 0

    def run(
        self,
        work: Any,
        source: Source,
        chunk_rows: int,
        progress: Progress,
        stage: str,
        first: int,
        reached: Reached,
    ) -> None:
        """See ``Engine``."""
        progress.stage(stage, source.n_rows)
        progress.advance(first)
        for chunk in work.clock.timed("read", chunks_ahead(source, chunk_rows, first)):
            work.add(chunk.X, chunk.y, chunk.start, source.name)
            progress.advance(chunk.X.shape[0])
            reached(work, chunk.start + chunk.X.shape[0])


@dataclass(frozen=True)
class Pass:
    """The pass that learns: features of the rows, fold by fold, into moments.

    prepare(X, first row, name) checks and normalises rows; features.features_into(rows, out, shift) maps them;
    encode(y) gives targets (rows, t) less their shifts; keep(fold, Z, Y), if given, is handed what was added. The
    fold of a row depends on the seed and on its place in the source alone, so that another chunk size gives the same
    folds.
    """

    prepare: Callable[[Any, Any, str], Any]
    features: Any
    encode: Callable[[np.ndarray], Targets]
    moments: FoldMoments
    seed: int
    clock: Stopwatch
    keep: Callable[[int, np.ndarray, Targets], None] | None = None

    def fresh(self) -> Pass:
        """See ``Work``."""
        return replace(self, moments=self.moments.fresh(), clock=Stopwatch(), keep=None)

    def finish(self) -> None:
        """Nothing waits: the sums are on this machine."""

    def add(self, X: Any, y: Any, start: int, name: str) -> None:
        """Add a chunk whose first row is row ``start`` of the source, fold by fold.

        Rows and labels are checked before the first sum changes: a bad chunk leaves the moments as they were.
        """
        parts = self.parts(X, y, start, name, range(len(self.moments.folds)))
        with self.clock("moments"), self.moments.collecting():
            for fold, Z, Y in parts:
                self.moments.add_shifted(fold, Z, Y)
                if self.keep is not None:
                    self.keep(fold, Z, Y)

    def parts(
        self, X: Any, y: Any, start: int, name: str, wanted: Iterable[int]
    ) -> Iterator[tuple[int, np.ndarray, Targets]]:
        """(fold, features, targets) of the rows of a chunk that are in the wanted folds, both less their shifts.

        Some rows at a time, one fold after the other; the features are in a buffer that the next ones overwrite.
        """
        n_folds = len(self.moments.folds)
        with self.clock("check"):
            rows = self.prepare(X, start, name)
            targets = self.encode(y)
            folds = fold_of_rows(start, rows.shape[0], n_folds, self.seed)
        for fold in wanted:
            members = np.flatnonzero(folds == fold) if n_folds > 1 else np.arange(rows.shape[0])
            for first in range(0, members.size, PIECE_ROWS):
                with self.clock("features"):
                    chosen = members[first : first + PIECE_ROWS]
                    part = _arrays.take_rows(
                        rows, chosen if n_folds > 1 else slice(first, first + PIECE_ROWS)
                    )
                    Z = self.moments.buffer(part.shape[0])
                    self.features.features_into(part, Z, self.moments.shift)
                yield fold, Z, targets[chosen]


@dataclass(frozen=True)
class BlockPass:
    """The pass that finds principal components: features of the rows, block by block, into moments without targets."""

    prepare: Callable[[Any, Any, str], Any]
    features: BlockFeatures
    moments: BlockMoments
    clock: Stopwatch

    def fresh(self) -> BlockPass:
        """See ``Work``."""
        return replace(self, moments=self.moments.fresh(), clock=Stopwatch())

    def finish(self) -> None:
        """Nothing waits: the sums are on this machine."""

    def add(self, X: Any, y: Any, start: int, name: str) -> None:
        """Add a chunk; labels are not looked at."""
        rows = self.prepare(X, start, name)
        with self.clock("components"):
            self.moments.add(self.features, rows)
