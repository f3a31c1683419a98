"""Pieces of rows, and where functions of them are computed: in this process, or where an engine puts them.

An engine says so for the block of code within ``held_by(engine.pieces)``, as ``_threads.threads`` does for threads.
The results do not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeAlias, TypeVar

from chimap import _arrays, _threads
from chimap._types import Rows

Shared = TypeVar("Shared")
Result = TypeVar("Result")


class RowPieces(Protocol):
    """Pieces of rows, kept for several functions."""

    def map(self, function: Callable[[Rows, Shared], Result], shared: Shared) -> list[Result]:
        """Return function(piece, shared) of each piece, in their order."""
        ...


class Held(Protocol):
    """Pieces of any kind, held where an engine puts them; more may come."""

    @property
    def n_holders(self) -> int:
        """How many hold pieces, of which those that come together should have as many."""
        ...

    def add(self, pieces: Sequence[object]) -> None:
        """Hold more pieces."""
        ...

    def map(
        self, function: Callable[..., Result], shared: object, each: Sequence[object] | None = None
    ) -> list[Result]:
        """Return function(piece, shared) of each piece, or function(piece, shared, its one of ``each``), in order."""
        ...


class PiecesHere:
    """Pieces of at most ``size`` rows in the memory of this process."""

    def __init__(self, rows: Rows, size: int):
        self._rows, self._size = rows, size

    def map(self, function: Callable[[Rows, Shared], Result], shared: Shared) -> list[Result]:
        """See ``RowPieces``."""
        # Products of a piece stay on one thread, here as on a worker: more threads would round them in another order.
        return _threads.tasks(pieces_of(self._rows, self._size), lambda piece: function(piece, shared))


Holder: TypeAlias = Callable[[Rows, int], RowPieces]
"""Makes ``RowPieces`` of rows, of at most so many rows each."""

_holder: ContextVar[Holder] = ContextVar("chimap_pieces", default=PiecesHere)


@contextmanager
def held_by(holder: Holder) -> Iterator[None]:
    """Let ``in_pieces`` use a holder in the block."""
    token = _holder.set(holder)
    try:
        yield
    finally:
        _holder.reset(token)


def in_pieces(rows: Rows, size: int) -> RowPieces:
    """Return pieces of ``size`` rows, wherever they are held; a single piece stays here."""
    return (PiecesHere if rows.shape[0] <= size else _holder.get())(rows, size)


def pieces_of(rows: Rows, size: int) -> Iterator[Rows]:
    """Yield ``size`` rows after the other; the last piece may have fewer."""
    for first in range(0, rows.shape[0], size):
        yield _arrays.take_rows(rows, slice(first, first + size))
