"""What runs on the workers of a Dask cluster: parts of a source added up, and merged."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chimap import _threads
from chimap.data import ArraySource, Source
from chimap.data.source import Chunk
from chimap.engines.local import Accumulated, Work


def added(template: Work, source: Source, first: int, stop: int, chunk_rows: int) -> Accumulated:
    """On a worker: the rows of a part of a source added up, chunk by chunk."""
    return sums(template, source.chunks_from(first, chunk_rows, stop), 0, source.name)


def added_array(
    template: Work, X: np.ndarray, y: np.ndarray | None, first: int, chunk_rows: int, name: str
) -> Accumulated:
    """On a worker: rows that begin at row ``first`` of the whole added up, chunk by chunk."""
    return sums(template, ArraySource(X, y).chunks(chunk_rows), first, name)


def sums(template: Work, chunks: Iterator[Chunk], first: int, name: str) -> Accumulated:
    """The sums of a template over chunks, the first of which begins at row ``first`` of the whole."""
    work = template.fresh()
    # a worker of several threads does as many tasks at once
    with _threads.threads(1):
        for chunk in chunks:
            work.add(chunk.X, chunk.y, first + chunk.start, name)
    work.moments.release_buffers()
    return work.moments


def unpacked(*parts: bytes) -> object:
    """On a worker: what was sent in parts."""
    from distributed.protocol import pickle

    return pickle.loads(b"".join(parts))


def merged(left: Accumulated, right: Accumulated) -> Accumulated:
    """On a worker: both added up, in memory of their own, so that a lost result can be computed again."""
    both = left.fresh()
    both.merge(left)
    both.merge(right)
    return both
