"""Products Z'Z on their way to float64 sums."""

from __future__ import annotations

import numpy as np

from chimap import _blas, _loops, _threads
from chimap.backends.units import has_bfloat16_units
from chimap.moments.symmetric import PANEL, Symmetric

MOST_ROWS = 8192  # added up in the precision of the features before they join the float64 sums
_WIDTH = 1024  # columns of a panel
_PAD = 48  # numbers between the rows: rows a power of two apart would share a few sets of the cache


def product_of(n: int, dtype: np.dtype, *, rounded: bool) -> Product:
    """The product for rows of this dtype, by the units for bfloat16 where the rows are ``rounded`` to it."""
    return (BFloat16Product if rounded and has_bfloat16_units() else Product)(n, dtype)


class Product:
    """The upper triangle of Z'Z of some batches, in the precision of their features.

    Adding a triangle to float64 sums is a pass over memory, for 2048 float32 rows a tenth of the time of the product.
    So BLAS adds up what comes of several batches, of ``MOST_ROWS`` rows at most, and the pass is made for all of them.

    n: columns of Z. dtype: theirs, float32 or float64.
    """

    def __init__(self, n: int, dtype: np.dtype):
        self.rows = 0
        self._square = np.empty((n, n + _PAD), dtype=dtype)[:, :n]

    @staticmethod
    def nbytes(n: int, itemsize: int) -> int:
        """Bytes that it takes."""
        return n * (n + _PAD) * itemsize

    def add(self, Z: np.ndarray) -> None:
        """Add rows Z (rows, n), of the dtype of this product."""
        _blas.add_square(Z, self._square, add=self.rows > 0)
        self.rows += Z.shape[0]

    def move_to(self, sums: Symmetric) -> None:
        """Add to float64 sums what is here, and begin anew."""
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


class BFloat16Product(Product):
    """The same for float32 rows that are bfloat16 numbers, by torch: its products take them as that and accumulate in
    float32, on AMX units. Panel by panel, so that half of the symmetric product is left out."""

    def add(self, Z: np.ndarray) -> None:
        """See ``Product.add``."""
        import torch

        from chimap.backends.uploads import float32_products

        rows, square = torch.from_numpy(Z), torch.from_numpy(self._square)
        with float32_products("medium"):
            for first in range(0, rows.shape[1], _WIDTH):
                part = square[first : first + _WIDTH, first:]
                panel = rows[:, first : first + _WIDTH].T
                torch.addmm(part, panel, rows[:, first:], beta=float(self.rows > 0), out=part)
        self.rows += Z.shape[0]
