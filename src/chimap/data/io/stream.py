"""Sources whose rows come in blocks that the file determines, regrouped into chunks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from chimap._types import JSON, Rows
from chimap._validation import DataError
from chimap.data.rows import digest, regroup
from chimap.data.source import Chunk, Source

BLOCK_BYTES = 2**22  # size of the rows that are decoded at a time, where the file leaves the choice


class StreamSource(Source):
    """A source of blocks of rows, which a subclass reads from the first to the last.

    A subclass sets the attributes of ``Source`` and ``_y``, and returns from ``_content`` what its fingerprint is made
    of.
    """

    _y: np.ndarray | None

    def chunks(self, chunk_rows: int) -> Iterator[Chunk]:
        """Yield all rows in order. Raises DataError if their number has changed since the source was opened."""
        start = stop = 0
        for X in regroup(self._blocks(), chunk_rows, self.n_rows):
            stop = start + X.shape[0]
            if stop > self.n_rows:
                break
            yield Chunk(X, None if self._y is None else self._y[start:stop], start)
            start = stop
        if stop != self.n_rows:
            raise DataError(
                f"{self.name}: {'more' if stop > self.n_rows else 'fewer'} rows than when it was opened "
                f"({self.n_rows}). All passes must read the same rows; wait until they are written completely, then "
                "open them again."
            )
        self._check_unchanged()

    def labels(self) -> np.ndarray | None:
        """Return the labels of all rows, or None."""
        return self._y

    def fingerprint(self) -> JSON:
        """Return name, shape, dtype, and digests of the labels and of some of the content."""
        return {
            "name": self.name,
            **self._content(),
            "shape": [self.n_rows, self.n_features],
            "dtype": str(self.dtype),
            "labels": None if self._y is None else digest(self._y),
        }

    @abstractmethod
    def _blocks(self) -> Iterator[Rows]:
        """Yield all rows in order: dense blocks of type ``dtype``, or canonical CSR."""

    @abstractmethod
    def _content(self) -> JSON:
        """Return the part of the fingerprint that stands for the content: bytes and digest."""

    def _check_unchanged(self) -> None:
        """Raise DataError if the data changed during the pass; nothing to check by default."""


class SeekableStream(StreamSource):
    """A source whose blocks can be read from any row on; each block that is needed is decoded once in a pass."""

    can_seek = True

    def chunks_from(self, first: int, chunk_rows: int, stop: int | None = None) -> Iterator[Chunk]:
        """Yield chunks as ``Source`` does; blocks before ``first`` are not read."""
        stop, start = self.n_rows if stop is None else stop, first
        for X in regroup(self._blocks_between(first, stop), chunk_rows, stop - first):
            yield Chunk(X, None if self._y is None else self._y[start : start + X.shape[0]], start)
            start += X.shape[0]

    def _blocks(self) -> Iterator[Rows]:
        yield from self._blocks_between(0, self.n_rows)

    @abstractmethod
    def _blocks_between(self, first: int, stop: int) -> Iterator[Rows]:
        """Yield the rows from ``first`` up to ``stop`` in order: dense blocks of type ``dtype``, or canonical CSR."""
