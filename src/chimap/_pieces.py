"""Pieces of rows, and where functions of them are computed: in this process, or where an engine puts them.

An engine says so for the block of code within ``held_by(engine.pieces)``, as ``_threads.threads`` does for threads.
The results do not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from chimap import _arrays, _threads
from chimap._types import Rows

Shared = TypeVar("Shared")
Result = TypeVar("Result")


class RowPieces(Protocol):
    """Pieces of rows, kept for several functions."""

    def map(self, function: Callable[[Rows, Shared], Result], shared: Shared) -> list[Result]:
        """Return function(piece, shared) of each piece, in their order."""
        ...


class Piece(Protocol):
    """A value in the memory of a holder. It stays there until nothing refers to this object."""

    def call(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Return function(value, *arguments), computed by all threads of the holder; it must not change the value."""
        ...

    def made(self, function: Callable[..., object], *arguments: object) -> Piece:
        """Begin to compute function(value, *arguments) by all threads of the holder, which keeps it."""
        ...


class Held(Protocol):
    """Values of any kind, held where an engine puts them, and functions of them that are computed there.

    Functions depend on their arguments alone: what is lost with a holder is computed again.
    """

    @property
    def n_holders(self) -> int:
        """How many hold values, each in a memory of its own."""
        ...

    @property
    def n_threads(self) -> int:
        """How many threads they have together."""
        ...

    def put(self, makers: Sequence[Callable[[], object]], first: int = 0) -> Sequence[Piece]:
        """Hold the values that these functions return here, each by one holder, in turn from number ``first`` on.

        They are called again if what they returned is lost.
        """
        ...

    def summed(
        self, function: Callable[..., np.ndarray], pieces: Sequence[Any], shared: Any, each: Sequence[object]
    ) -> np.ndarray:
        """Return the sum of function(piece, shared, its one of ``each``) over pieces, of which there is at least one.

        ``shared`` is a piece that all of them need. Each is computed by one thread. The order of the sum depends on
        nothing but the number of holders and threads.
        """
        ...


class PiecesHere(RowPieces):
    """Pieces of at most ``size`` rows in the memory of this process."""

    def __init__(self, rows: Rows, size: int):
        self._rows, self._size = rows, size

    def map(self, function: Callable[[Rows, Shared], Result], shared: Shared) -> list[Result]:
        # Products of a piece stay on one thread, here as on a worker: more threads would round them in another order.
        parts = pieces_of(self._rows, self._size)
        return _threads.tasks(parts, lambda part: function(_arrays.take_rows(self._rows, part), shared))


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


def pieces_of(rows: Rows, size: int) -> list[slice]:
    """Return the places of ``size`` rows after the other; the last piece may have fewer."""
    return [slice(first, first + size) for first in range(0, rows.shape[0], size)]
