"""Powers of a kernel matrix: the same kernel with another gamma."""

from __future__ import annotations

import numpy as np

from chimap import _threads

_TILE = 512


def raise_below(square: np.ndarray, octaves: int) -> None:
    """Raise the entries below the diagonal to the power 2^octaves, in place."""
    n, step = square.shape[0], np.square if octaves > 0 else np.sqrt

    def part(first: int) -> None:
        rows = slice(first, min(first + _TILE, n))
        for start in range(0, rows.start, _TILE):
            tile = square[rows, start : start + _TILE]
            for _ in range(abs(octaves)):
                step(tile, out=tile)
        corner = np.tril(square[rows, rows], -1)
        for _ in range(abs(octaves)):
            step(corner, out=corner)
        square[rows, rows] = corner

    if octaves:
        _threads.tasks(range(0, n, _TILE), part)
