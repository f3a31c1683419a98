"""What an engine is, and the engine of this process; passes over the rows, from chunks to moments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from chimap._pieces import Held, PiecesHere, RowPieces
from chimap._progress import Progress, Stopwatch
from chimap._types import Rows
from chimap.backends.base import Sums
from chimap.data import RowsInChunks
from chimap.data.source import chunks_ahead
from chimap.moments import RowFolds, RowWeights, Targets, weighted

S = TypeVar("S", bound=Sums)
_ALL_ALIKE = RowWeights()


class Work(Protocol):
    """The processing of each chunk of a pass, with the sums so far."""

    @property
    def moments(self) -> Any:
        """The sums to which chunks are added; an ``Accumulator`` if parts of the rows are summed separately."""
        ...

    @property
    def clock(self) -> Stopwatch:
        """The stopwatch that times the stages."""
        ...

    def add(self, X: Rows, y: np.ndarray | None, start: int, name: str) -> None:
        """Add a chunk whose first row is row ``start`` of the source called ``name``."""

    def fresh(self) -> Self:
        """Return the same work with empty sums."""
        ...


Reached = Callable[[Work, int], None]
"""Called after each chunk with the work and the first row that has not been added."""


class Engine(ABC):
    """Reads the rows of a source and processes them.

    Attributes
    ----------
    can_keep : bool, default=True
        Whether features pass through this process and can be kept for further passes.
    n_waiting : int, default=0
        Number of moments of parts that a worker holds in memory besides those that it adds to.
    """

    can_keep: ClassVar[bool] = True
    n_waiting: ClassVar[int] = 0

    @abstractmethod
    def run(
        self,
        work: Work,
        source: RowsInChunks,
        chunk_rows: int,
        progress: Progress,
        stage: str,
        first: int,
        reached: Reached,
    ) -> None:
        """Add all chunks from row ``first`` on to the work, and call ``reached`` after each."""

    def pieces(self, rows: Rows, size: int) -> RowPieces:
        """Return pieces of rows where they are worked on: in this process."""
        return PiecesHere(rows, size)

    def hold(self) -> Held | None:
        """Return an empty place on workers for rows and their factors; None where they stay in this process."""
        return None


class LocalEngine(Engine):
    """The engine of this process: chunks are processed one after the other, and the next is read meanwhile."""

    def run(
        self,
        work: Work,
        source: RowsInChunks,
        chunk_rows: int,
        progress: Progress,
        stage: str,
        first: int,
        reached: Reached,
    ) -> None:
        progress.stage(stage, source.n_rows)
        progress.advance(first)
        for chunk in work.clock.timed("read", chunks_ahead(source, chunk_rows, first)):
            work.add(chunk.X, chunk.y, chunk.start, source.name)
            progress.advance(chunk.X.shape[0])
            reached(work, chunk.start + chunk.X.shape[0])


@dataclass(frozen=True)
class Pass(Generic[S]):
    """A pass over the rows that checks them and sums their features.

    ``prepare(X, first_row, name)`` checks and normalises rows; ``encode(y)`` gives targets (rows, t) less their shifts;
    and ``sums`` maps the rows and adds them up, on the CPU or a device. The fold and the weight of a row depend only on
    its place in the source, so they are the same for any chunk size.
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

    def prepared(self, X: Rows, y: np.ndarray | None, start: int, name: str) -> tuple[Rows, Targets, np.ndarray]:
        """Return checked rows, targets with the weights of the rows, and folds of a chunk."""
        with self.clock("check"):
            rows = self.prepare(X, start, name)
            n, targets = rows.shape[0], self.encode(y)
            targets = np.zeros((n, 0)) if targets is None else targets
            return rows, weighted(targets, self.weights(start, n)), self.folds(start, n)

    def finish(self) -> None:
        """Bring the sums to ``moments``; nothing is added after that."""
        self.sums.finish(self.clock)


def no_targets(y: np.ndarray | None) -> None:
    """The ``encode`` of a pass without targets: rows get targets (n, 0), whatever their labels."""
