"""Symmetric matrices kept as their upper halves, and the products Z'Z that are added to them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chimap import _blas, _loops, _threads
from chimap._errors import InputError

PANEL = 256  # rows of a panel; the square corners of the panels waste PANEL / n of the memory
_PARTS = 4  # partial sums of BLAS products, fixed so that results do not depend on the number of threads
_FEW = 24  # right-hand sides up to which reading a panel once beats BLAS, which copies it for every product


class Symmetric:
    """An n x n symmetric float64 matrix in half the memory.

    Panel p holds the rows from p*PANEL on and the columns from p*PANEL on, C-contiguous in ``flat``; below the diagonal
    of its corner the entries are zero and not used. Sums and differences act on ``flat``; products and factorisations
    take whole panels, so no entry is ever unpacked by itself.
    """

    def __init__(self, n: int, flat: np.ndarray | None = None):
        self.n = n
        rows = np.arange(0, n, PANEL, dtype=np.int64)
        sizes = np.minimum(PANEL, n - rows) * (n - rows)
        self.starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64) if n else rows
        size = int(sizes.sum())
        self.flat = np.zeros(size) if flat is None else flat
        if self.flat.shape != (size,):
            raise InputError(f"a symmetric matrix of order {n} keeps {size} numbers; got {self.flat.shape}.")

    @classmethod
    def of(cls, square: np.ndarray) -> Symmetric:
        """Return the matrix with the upper triangle of a full matrix (n, n)."""
        packed = cls(square.shape[0])
        for first, panel in packed.panels():
            panel[:] = np.triu(square[first : first + panel.shape[0], first:])
        return packed

    @staticmethod
    def nbytes(n: int) -> int:
        """Return the bytes that a matrix of order n takes."""
        return 4 * n * (n + min(PANEL, n))

    def panels(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first row, view of the panel), whose rows and columns begin at the first row."""
        for p, first in enumerate(range(0, self.n, PANEL)):
            height, width = min(PANEL, self.n - first), self.n - first
            start = self.starts[p]
            yield first, self.flat[start : start + height * width].reshape(height, width)

    def copy(self) -> Symmetric:
        """Return an independent copy."""
        return Symmetric(self.n, self.flat.copy())

    def combine(self, other: Symmetric, sign: int) -> None:
        """Add (sign 1) or subtract (-1) another matrix of the same order."""
        left, right = self.flat, other.flat
        change = np.add if sign > 0 else np.subtract

        def part(chosen: slice) -> None:
            change(left[chosen], right[chosen], out=left[chosen])

        _threads.over_rows(left.size, 1, part)

    def add_outer(self, a: np.ndarray, b: np.ndarray, factor: float = 1.0) -> None:
        """Add factor (a b' + b a') / 2 for vectors a and b (n,)."""
        for first, panel in self.panels():
            height = panel.shape[0]
            rows = slice(first, first + height)
            added = (0.5 * factor) * (np.outer(a[rows], b[first:]) + np.outer(b[rows], a[first:]))
            added[:, :height] = np.triu(added[:, :height])
            panel += added

    def add_at(self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
        """Add values (m,) to m different entries, of which no row is above its column."""
        panel = rows // PANEL
        first = panel * PANEL
        self.flat[self.starts[panel] + (rows - first) * (self.n - first) + columns - first] += values

    def taken(self, chosen: np.ndarray) -> Symmetric:
        """Return the matrix of the rows and columns ``chosen``, ascending indices (m,)."""
        small = Symmetric(chosen.size)
        whole = [panel for _, panel in self.panels()]
        for first, panel in small.panels():
            for i, row in enumerate(chosen[first : first + panel.shape[0]], start=first):
                place, inside = divmod(int(row), PANEL)
                panel[i - first, i - first :] = whole[place][inside, chosen[i:] - place * PANEL]
        return small

    def upper_into(self, square: np.ndarray) -> None:
        """Copy the upper triangle into a float64 array (n, n); entries below its diagonal are then not defined."""
        for first, panel in self.panels():
            square[first : first + panel.shape[0], first:] = panel

    def to_square(self) -> np.ndarray:
        """Return the full matrix, (n, n) float64."""
        square = np.zeros((self.n, self.n))
        self.upper_into(square)
        upper = np.triu(square)
        return upper + np.triu(upper, 1).T

    def diagonal(self) -> np.ndarray:
        """Return the diagonal, (n,)."""
        parts = [np.diagonal(panel[:, : panel.shape[0]]) for _, panel in self.panels()]
        return np.concatenate(parts) if parts else np.zeros(0)

    def __matmul__(self, B: np.ndarray) -> np.ndarray:
        """Return the product with B (n, columns), Fortran-ordered."""
        if B.shape[0] != self.n:
            raise InputError(f"a symmetric matrix of order {self.n} multiplies {self.n} rows; got {B.shape}.")
        P = np.ascontiguousarray(B.T, dtype=np.float64)
        add = _add_few if P.shape[0] <= _FEW else _add_many
        panels = list(self.panels())

        def part(chosen: slice) -> np.ndarray:
            out = np.zeros_like(P)
            for first, panel in panels[chosen]:
                add(first, panel, P, out)
            return out

        if add is _add_few:
            parts = _threads.over_rows(len(panels), PANEL * self.n * P.shape[0], part)
        else:  # panels get shorter, so every part takes panels of all lengths
            parts = _threads.tasks([slice(k, None, _PARTS) for k in range(_PARTS)], part)
        total, *rest = parts
        for partial in rest:  # numpy's sum of a list would copy all of them first
            total += partial
        return total.T

    def quadratic(self, B: np.ndarray) -> float:
        """Return tr(B' H B) for B (n, t), with half the work of the product."""
        P = np.ascontiguousarray(B.T, dtype=np.float64)
        buffer, total = np.empty((min(PANEL, self.n), self.n)), 0.0
        for first, panel in self.panels():
            rows, (height, width) = slice(first, first + panel.shape[0]), panel.shape
            gram = buffer[:height, :width]
            _blas.multiply(P[:, rows].T, P[:, first:], gram)
            total += 2 * float(np.einsum("ij,ij->", panel, gram)) - float(panel.diagonal() @ gram.diagonal())
        return total


def _add_few(first: int, panel: np.ndarray, P: np.ndarray, out: np.ndarray) -> None:
    _loops.panel_product(panel, first, P, out)


def _add_many(first: int, panel: np.ndarray, P: np.ndarray, out: np.ndarray) -> None:
    """Add the contribution of a panel to out (t, n) by two general products: h_ij p_j to row i, h_ij p_i to row j."""
    rows = slice(first, first + panel.shape[0])
    _blas.multiply(P[:, first:], panel, out[:, rows], transpose=True, add=True)
    _blas.multiply(P[:, rows], panel, out[:, first:], add=True)
    out[:, rows] -= P[:, rows] * np.diagonal(panel)  # the diagonal was added twice


MOST_ROWS = 8192  # rows summed in the precision of the features before they join the float64 sums
_PAD = 48  # unused numbers between the rows: rows a power of two apart would share a few sets of the cache


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
