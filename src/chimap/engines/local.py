"""Passes over the rows: chunks in, moments out; on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from chimap._progress import Progress, Stopwatch
from chimap._types import Rows
from chimap.backends.base import Sums
from chimap.data import Source
from chimap.data.io.read_ahead import chunks_ahead
from chimap.moments import RowFolds, RowWeights, Targets, weighted

S = TypeVar("S", bound=Sums)
_ALL_ALIKE = RowWeights()


class Accumulated(Protocol):
    """Sums over rows: of two parts they are merged."""

    def fresh(self) -> Self:
        """Empty ones about the same shifts."""
        ...

    def merge(self, other: Self) -> object:
        """Add the rows of other sums."""
        ...

    def release_buffers(self) -> None:
        """Give back what is kept for the next chunk."""
        ...


class Work(Protocol):
    """What a pass does with each chunk, and what it has added up so far: moments that have ``fresh`` and ``merge``."""

    @property
    def moments(self) -> Any:
        """What is added to: ``Accumulated``, where parts of the rows are added up apart."""
        ...

    @property
    def clock(self) -> Stopwatch:
        """That the stages are put down to."""
        ...

    def add(self, X: Rows, y: np.ndarray | None, start: int, name: str) -> None:
        """Add a chunk whose first row is row ``start`` of the source of this name."""

    def fresh(self) -> Self:
        """The same work, with nothing added up yet."""
        ...


Reached = Callable[[Work, int], None]
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
        work: Work,
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
        work: Work,
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
class Pass(Generic[S]):
    """A pass over the rows: checked, and their features added up.

    prepare(X, first row, name) checks and normalises rows; encode(y) gives targets (rows, t) less their shifts; sums
    map the rows and add them up, on this machine or a device. The fold and the weight of a row depend on its place in
    the source alone, so that another chunk size gives the same ones.
    """

    prepare: Callable[[Rows, int, str], Rows]
    encode: Callable[[Any], Targets | None]
    sums: S
    folds: RowFolds
    clock: Stopwatch
    weights: RowWeights = _ALL_ALIKE

    @property
    def moments(self) -> Any:
        """See ``Work``."""
        return self.sums.moments

    def fresh(self) -> Pass[Any]:
        """See ``Work``."""
        sums = self.sums.fresh()
        return Pass(self.prepare, self.encode, sums, self.folds, Stopwatch(), self.weights)

    def add(self, X: Rows, y: np.ndarray | None, start: int, name: str) -> None:
        """Add a chunk whose first row is row ``start`` of the source, fold by fold.

        Rows and labels are checked before the first sum changes: a bad chunk leaves the moments as they were.
        """
        self.sums.add(*self.prepared(X, y, start, name), self.clock)

    def prepared(
        self, X: Rows, y: np.ndarray | None, start: int, name: str
    ) -> tuple[Rows, Targets, np.ndarray]:
        """Checked rows, targets with the weights of the rows, and folds of a chunk."""
        with self.clock("check"):
            rows = self.prepare(X, start, name)
            n, targets = rows.shape[0], self.encode(y)
            targets = np.zeros((n, 0)) if targets is None else targets
            return rows, weighted(targets, self.weights(start, n)), self.folds(start, n)

    def finish(self) -> None:
        """Bring the sums to ``moments``; nothing is added after that."""
        self.sums.finish(self.clock)


def no_targets(y: np.ndarray | None) -> None:
    """What a pass encodes that takes no targets, whatever the labels: rows get none of them (n, 0)."""
