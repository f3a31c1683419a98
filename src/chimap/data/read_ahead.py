"""Read the next chunk while the current one is being processed."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from chimap.data.source import Chunk, Source


def chunks_ahead(source: Source, chunk_rows: int, first: int = 0) -> Iterator[Chunk]:
    """Yield the chunks of a source in order; if it reads files, a thread reads the next chunk meanwhile.

    At most one chunk is ahead, which a memory budget counts (``Job.reads_ahead``). An error in reading is raised in
    place of the chunk that it concerns. When the consumer stops or ends, so does the thread: it finishes the chunk
    that it is reading, and the source closes its files.

    Parameters
    ----------
    source : Source
        The rows.
    chunk_rows : int
        Rows per chunk.
    first : int, default=0
        Index of the first row, a multiple of ``chunk_rows``; chunks before it are skipped.

    Examples
    --------
    >>> from chimap.data import ArraySource
    >>> [chunk.start for chunk in chunks_ahead(ArraySource([[1.0], [2.0], [3.0]]), 2)]
    [0, 2]
    """
    chunks = source.chunks(chunk_rows) if first == 0 else source.chunks_from(first, chunk_rows)
    return _ahead(chunks) if source.from_files else chunks


def _ahead(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    # The limit of threads is a context variable, which a new thread does not inherit.
    run: Any = contextvars.copy_context().run
    with ThreadPoolExecutor(1, thread_name_prefix="chimap-read") as reader:
        waiting = reader.submit(run, next, chunks, None)
        try:
            while (chunk := waiting.result()) is not None:
                waiting = reader.submit(run, next, chunks, None)
                yield chunk
                del chunk  # otherwise it would stay in memory until the next chunk has been read
        finally:
            waiting.cancel()
            # This runs after a read that could not be cancelled, and closes the files of a generator.
            reader.submit(getattr(chunks, "close", int)).result()
