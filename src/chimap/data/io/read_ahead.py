"""Reading the next chunk while the current one is worked on."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from chimap.data.source import Chunk, Source


def chunks_ahead(source: Source, chunk_rows: int, first: int = 0) -> Iterator[Chunk]:
    """The chunks of a source, in order; where it reads files, the next is read on a thread meanwhile.

    Chunks before row ``first``, a multiple of chunk_rows, are passed over. At most one chunk is ahead, which a
    memory budget counts (``Job.reads_ahead``). An error in reading is raised in place of the chunk that it hit.
    When the consumer stops early or ends, the thread has ended, too: it finishes the chunk that it reads, and
    the source closes its files.

    >>> from chimap.data import ArraySource
    >>> [chunk.start for chunk in chunks_ahead(ArraySource([[1.0], [2.0], [3.0]]), 2)]
    [0, 2]
    """
    chunks = source.chunks(chunk_rows) if first == 0 else source.chunks_from(first, chunk_rows)
    return _ahead(chunks) if source.from_files else chunks


def _ahead(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    # The limit of threads lies in a context variable, which a new thread does not inherit.
    run: Any = contextvars.copy_context().run
    with ThreadPoolExecutor(1, thread_name_prefix="chimap-read") as reader:
        waiting = reader.submit(run, next, chunks, None)
        try:
            while (chunk := waiting.result()) is not None:
                waiting = reader.submit(run, next, chunks, None)
                yield chunk
                del chunk  # else it would be kept until the next but one is asked for
        finally:
            waiting.cancel()
            # Behind a read that could not be cancelled; closes the files of a generator.
            reader.submit(getattr(chunks, "close", int)).result()
