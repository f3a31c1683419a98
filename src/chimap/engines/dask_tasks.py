"""Tasks that run on the workers of a Dask cluster: sum parts of a source, and merge the sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from chimap import _threads
from chimap._pieces import Result
from chimap.data import ArraySource, RowsInChunks
from chimap.data.source import Chunk
from chimap.engines.local import Work
from chimap.moments.moments import Accumulator


def added(template: Work, source: RowsInChunks, first: int, stop: int, chunk_rows: int) -> Accumulator:
    """Sum the rows of a part of a source, chunk by chunk, on a worker."""
    return sums(template, source.chunks_from(first, chunk_rows, stop), 0, source.name)


def added_array(
    template: Work, X: np.ndarray, y: np.ndarray | None, first: int, chunk_rows: int, name: str
) -> Accumulator:
    """Sum rows that begin at row ``first`` of the whole, chunk by chunk, on a worker."""
    return sums(template, ArraySource(X, y).chunks(chunk_rows), first, name)


def sums(template: Work, chunks: Iterator[Chunk], first: int, name: str) -> Accumulator:
    """Return the sums of a template over chunks, the first of which begins at row ``first`` of the whole."""
    work = template.fresh()
    # A worker with several threads runs as many tasks at once, so each task uses one thread.
    with _threads.threads(1):
        for chunk in chunks:
            work.add(chunk.X, chunk.y, first + chunk.start, name)
    work.moments.release_buffers()
    return work.moments


def computed(function: Callable[..., Result], *arguments: object) -> Result:
    """Return function(*arguments), on one thread of a worker."""
    with _threads.threads(1):
        return function(*arguments)


def summed(
    function: Callable[..., np.ndarray], shared: object, pieces: Sequence[object], each: Sequence[object]
) -> np.ndarray:
    """Return the sum of function(piece, shared, its one of ``each``) over pieces, on one thread of a worker."""
    with _threads.threads(1):
        total = function(pieces[0], shared, each[0])
        for piece, own in zip(pieces[1:], each[1:], strict=True):
            total += function(piece, shared, own)
    return total


def computed_alone(function: Callable[..., Result], piece: object, arguments: Sequence[object]) -> Result:
    """Return function(piece, *arguments), on all threads of a worker that has nothing else to do."""
    from distributed import get_worker

    with _threads.threads(get_worker().state.nthreads):
        return function(piece, *arguments)


def unpacked(*parts: bytes) -> object:
    """Restore a value that was sent in parts, on a worker."""
    from distributed.protocol import pickle

    return pickle.loads(b"".join(parts))


def merged(left: Accumulator, right: Accumulator) -> Accumulator:
    """Return the sum of both on a worker, in new memory, so that a lost result can be computed again."""
    both = left.fresh()
    both.merge(left)
    both.merge(right)
    return both
