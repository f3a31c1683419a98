"""What sums over rows have in common, whatever they are sums of."""

from __future__ import annotations

from typing import Protocol, Self


class Accumulator(Protocol):
    """Sums over rows that engines add up in parts: of features and targets, of blocks, or of a loss and its gradient.

    Sums of any two parts of the rows merge into those of both, in any order, so that it does not matter how the rows
    are split between workers.
    """

    def fresh(self) -> Self:
        """Return empty sums about the same shifts."""
        ...

    def merge(self, other: Self) -> object:
        """Add the rows of other sums."""
        ...

    def release_buffers(self) -> None:
        """Free the buffers for the next chunk."""
        ...
