"""Sources whose entries come in no order of rows: they are put in order once, on a temporary file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from chimap.data.io.row_buckets import RowBuckets
from chimap.data.io.stream import SeekableStream
from chimap.data.rows import csr_row_bytes


class BucketsSource(SeekableStream):
    """A source over ``RowBuckets``, which a subclass fills (``_filled``) when it is opened."""

    is_sparse = True
    from_files = True

    def _open(self) -> None:
        """Fill the buckets, and say what the rows take; ``n_rows`` and ``dtype`` are there."""
        self._buckets: RowBuckets | None = self._filled()
        self.row_bytes = csr_row_bytes(self._buckets.n_entries, self.n_rows, self.dtype)
        self.held_bytes = self._buckets.held_bytes
        self.stored_rows = min(self.n_rows, self._buckets.bucket_rows)

    def __getstate__(self) -> dict[str, Any]:
        # A copy in another process reads the file itself: the temporary one cannot be sent.
        return {**self.__dict__, "_buckets": None}

    def take(self, rows: np.ndarray) -> Any:
        """The rows with these increasing indices."""
        return self._in_order().take(np.asarray(rows))

    def _blocks_between(self, first: int, stop: int) -> Iterator[Any]:
        self._check_unchanged()
        yield from self._in_order().blocks(first, stop)

    def _in_order(self) -> RowBuckets:
        if self._buckets is None:
            self._buckets = self._filled()
        return self._buckets

    @abstractmethod
    def _filled(self) -> RowBuckets:
        """All entries, finished."""
