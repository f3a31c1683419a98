"""A symmetric matrix of which one half is kept, in row panels that BLAS takes as they are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chimap import _blas, _loops, _threads

PANEL = 256  # rows of a panel: what is kept twice (the panels' own corners) is PANEL / n of the whole
_PARTS = 4  # that products of BLAS are added up in, whatever the number of threads
_FEW = 24  # right-hand sides up to which reading a panel once beats BLAS, which copies it for every product


class Symmetric:
    """An n x n symmetric float64 matrix in half the memory.

    Panel p holds rows p*PANEL .. and the columns from p*PANEL on, C-contiguous in ``flat``; below the diagonal of its
    corner the entries are zero and not used. Sums and differences act on ``flat``; products and factorisations
    take whole panels, so nothing is ever unpacked entry by entry.
    """

    def __init__(self, n: int, flat: np.ndarray | None = None):
        self.n = n
        rows = np.arange(0, n, PANEL, dtype=np.int64)
        sizes = np.minimum(PANEL, n - rows) * (n - rows)
        self.starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64) if n else rows
        size = int(sizes.sum())
        self.flat = np.zeros(size) if flat is None else flat
        if self.flat.shape != (size,):
            raise ValueError(f"a symmetric matrix of order {n} keeps {size} numbers; got {self.flat.shape}.")

    @classmethod
    def of(cls, square: np.ndarray) -> Symmetric:
        """The upper triangle of a full matrix (n, n)."""
        packed = cls(square.shape[0])
        for first, panel in packed.panels():
            panel[:] = np.triu(square[first : first + panel.shape[0], first:])
        return packed

    @staticmethod
    def nbytes(n: int) -> int:
        """Bytes that a matrix of order n takes."""
        return 4 * n * (n + min(PANEL, n))

    def panels(self) -> Iterator[tuple[int, np.ndarray]]:
        """(first row, view of the panel: rows from there, columns from there on)."""
        for p, first in enumerate(range(0, self.n, PANEL)):
            height, width = min(PANEL, self.n - first), self.n - first
            start = self.starts[p]
            yield first, self.flat[start : start + height * width].reshape(height, width)

    def copy(self) -> Symmetric:
        """An independent copy."""
        return Symmetric(self.n, self.flat.copy())

    def combine(self, other: Symmetric, sign: int) -> None:
        """Add (sign 1) or subtract (-1) another of the same order."""
        own, more = self.flat, other.flat
        change = np.add if sign > 0 else np.subtract

        def part(chosen: slice) -> None:
            change(own[chosen], more[chosen], out=own[chosen])

        _threads.over_rows(own.size, 1, part)

    def add_outer(self, a: np.ndarray, b: np.ndarray, factor: float = 1.0) -> None:
        """Add factor (a b' + b a') / 2 for vectors (n,)."""
        for first, panel in self.panels():
            height = panel.shape[0]
            rows = slice(first, first + height)
            added = (0.5 * factor) * (np.outer(a[rows], b[first:]) + np.outer(b[rows], a[first:]))
            added[:, :height] = np.triu(added[:, :height])
            panel += added

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
        """Copy the upper triangle into a float64 (n, n) array; what lies below it there is not defined."""
        for first, panel in self.panels():
            square[first : first + panel.shape[0], first:] = panel

    def to_square(self) -> np.ndarray:
        """The full matrix, (n, n) float64."""
        square = np.zeros((self.n, self.n))
        self.upper_into(square)
        upper = np.triu(square)
        return upper + np.triu(upper, 1).T

    def diagonal(self) -> np.ndarray:
        """The diagonal, (n,)."""
        parts = [np.diagonal(panel[:, : panel.shape[0]]) for _, panel in self.panels()]
        return np.concatenate(parts) if parts else np.zeros(0)

    def __matmul__(self, B: np.ndarray) -> np.ndarray:
        """The product with B (n, columns), Fortran-ordered."""
        if B.shape[0] != self.n:
            raise ValueError(f"a symmetric matrix of order {self.n} multiplies {self.n} rows; got {B.shape}.")
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
        else:  # panels get shorter, so that every part takes some of all lengths
            parts = _threads.tasks([slice(k, None, _PARTS) for k in range(_PARTS)], part)
        total, *others = parts
        for other in others:  # numpy's sum of a list would copy them all first
            total += other
        return total.T

    def quadratic(self, B: np.ndarray) -> float:
        """tr(B' H B) for B (n, t): half the work of the product."""
        P = np.ascontiguousarray(B.T, dtype=np.float64)
        room, total = np.empty((min(PANEL, self.n), self.n)), 0.0
        for first, panel in self.panels():
            rows, (height, width) = slice(first, first + panel.shape[0]), panel.shape
            gram = room[:height, :width]
            _blas.multiply(P[:, rows].T, P[:, first:], gram)
            total += 2 * float(np.einsum("ij,ij->", panel, gram)) - float(panel.diagonal() @ gram.diagonal())
        return total


def _add_few(first: int, panel: np.ndarray, P: np.ndarray, out: np.ndarray) -> None:
    _loops.panel_product(panel, first, P, out)


def _add_many(first: int, panel: np.ndarray, P: np.ndarray, out: np.ndarray) -> None:
    """What one panel adds to out (t, n) by two general products: h_ij p_j in row i, h_ij p_i in row j."""
    rows = slice(first, first + panel.shape[0])
    _blas.multiply(P[:, first:], panel, out[:, rows], transpose=True, add=True)
    _blas.multiply(P[:, rows], panel, out[:, first:], add=True)
    out[:, rows] -= P[:, rows] * np.diagonal(panel)  # it came twice
