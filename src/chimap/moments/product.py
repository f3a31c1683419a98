"""Products Z'Z that are accumulated before they are added to float64 sums."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from chimap import _blas, _loops, _onednn, _threads
from chimap.backends.units import has_bfloat16_units
from chimap.moments.symmetric import PANEL, Symmetric

MOST_ROWS = 8192  # rows summed in the precision of the features before they join the float64 sums
_TILE = 768  # rows and columns of a tile: larger ones waste more of the lower triangle, smaller ones copy more
_PAD = 48  # unused numbers between the rows: rows a power of two apart would share a few sets of the cache


def product_of(n: int, dtype: np.dtype, *, rounded: bool) -> BatchProduct:
    """Return the product for rows of this dtype, on bfloat16 units if they exist and the rows are ``rounded``."""
    return (BFloat16Product if rounded and has_bfloat16_units() else BatchProduct)(n, dtype)


class BatchProduct:
    """The upper triangle of Z'Z over several batches, in the precision of their features.

    Adding a triangle to float64 sums is a pass over memory; for 2048 float32 rows it takes a tenth of the time of the
    product. So BLAS sums the products of several batches, of ``MOST_ROWS`` rows at most, and a single pass serves them
    all. ``n`` is the number of columns of Z and ``dtype`` their dtype, float32 or float64.
    """

    def __init__(self, n: int, dtype: np.dtype):
        self.rows = 0
        self._square = np.empty((n, n + _PAD), dtype=dtype)[:, :n]

    @staticmethod
    def nbytes(n: int, itemsize: int) -> int:
        """Return the bytes that a product takes."""
        return n * (n + _PAD) * itemsize

    def add(self, Z: np.ndarray) -> None:
        """Add rows Z (rows, n), of the dtype of this product, which may be overwritten."""
        _blas.add_square(Z, self._square, add=self.rows > 0)
        self.rows += Z.shape[0]

    def move_to(self, sums: Symmetric) -> None:
        """Add the product to float64 sums and reset it."""
        if self.rows:
            square = self._square
            _threads.over_rows(
                sums.n,
                sums.n // 2,
                lambda rows: _loops.add_triangle(sums.flat, sums.starts, PANEL, square, rows.start, rows.stop),
            )
        self.rows = 0


class BFloat16Product(BatchProduct):
    """A product of float32 rows that bfloat16 represents exactly, on units that multiply bfloat16.

    The tiles of the triangle are summed in float32, one after the other on each thread.
    """

    def add(self, Z: np.ndarray) -> None:
        """Add C-contiguous rows Z (rows, n), and overwrite them: their upper halves move together."""
        square, n = self._square, Z.shape[1]
        if not self.rows:
            square[:] = 0
        halves = Z.view(np.uint16)[:, :n]
        _threads.over_rows(Z.shape[0], n, lambda rows: _loops.join_upper_halves(Z[rows]))

        def add_tile(tile: tuple[slice, slice]) -> None:
            rows, columns = tile
            _onednn.multiply(halves[:, rows].T, halves[:, columns], square[rows, columns], add=True)

        _threads.tasks(_tiles(n), add_tile)
        self.rows += Z.shape[0]


def _tiles(n: int) -> Iterator[tuple[slice, slice]]:
    """Yield the rows and columns of each tile of the upper triangle of a matrix (n, n)."""
    steps = [slice(first, min(first + _TILE, n)) for first in range(0, n, _TILE)]
    yield from itertools.combinations_with_replacement(steps, 2)
