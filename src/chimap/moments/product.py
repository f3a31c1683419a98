"""Products Z'Z that are accumulated before they are added to float64 sums."""

from __future__ import annotations

import numpy as np

from chimap import _blas, _loops, _threads
from chimap.backends.units import has_bfloat16_units
from chimap.moments.symmetric import PANEL, Symmetric

MOST_ROWS = 8192  # rows summed in the precision of the features before they join the float64 sums
_WIDTH = 1024  # columns of a panel
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
        """Add rows Z (rows, n), of the dtype of this product."""
        _blas.add_square(Z, self._square, add=self.rows > 0)
        self.rows += Z.shape[0]

    def move_to(self, sums: Symmetric) -> None:
        """Add the product to float64 sums and reset it."""
        if self.rows:
            square = self._square
            _threads.over_rows(
                sums.n,
                sums.n // 2,
                lambda rows: _loops.add_triangle(
                    sums.flat, sums.starts, PANEL, square, rows.start, rows.stop
                ),
            )
        self.rows = 0


class BFloat16Product(BatchProduct):
    """A product of float32 rows that bfloat16 represents exactly, computed by torch on AMX units.

    Torch multiplies the rows as bfloat16 and accumulates in float32. Half of the symmetric product is left out by
    working panel by panel.
    """

    def add(self, Z: np.ndarray) -> None:
        """See ``Product.add``."""
        import torch

        from chimap.backends.uploads import float32_products

        rows, square = torch.from_numpy(Z), torch.from_numpy(self._square)
        with float32_products("medium"):
            for first in range(0, rows.shape[1], _WIDTH):
                block = square[first : first + _WIDTH, first:]
                panel = rows[:, first : first + _WIDTH].T
                torch.addmm(block, panel, rows[:, first:], beta=float(self.rows > 0), out=block)
        self.rows += Z.shape[0]
