"""Tables of straight pieces for each bin, and scores that are looked up in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from chimap import _arrays, _loops, _threads
from chimap._types import JSON, Rows, Shape
from chimap.features.mapped_functions import Tables

_LANES = 16  # largest number of outputs that are summed together
_BLOCK_BYTES = 2**17  # bytes of tables that stay in cache while rows pass over them
_BLOCK_ROWS = 4096  # rows that pass over these tables
_LINE = 16  # numbers in a cache line: blocks of bins are whole lines of a row


@dataclass(frozen=True, eq=False)
class LineTables(Tables):
    """f_c(x) = intercept_c + sum_i sign(x_i) a + b x_i, with (a, b) of the piece in which |x_i| lies.

    With u = |x_i| rate_i, the pieces of [0, 1) are of equal length in u^(1 / 2^power) (nearly: see ``_loops.tables``),
    and of the same number in each bin; the first has a = 0.

    Parameters
    ----------
    lines : ndarray of shape (bins, n_pieces, 2, t)
        a and b of each piece, float32.
    errors : ndarray of shape (bins, n_pieces, t)
        Largest distance of each piece from the function, float32.
    n_below : ndarray of shape (bins,)
        Number of pieces that hold only values smaller than all values in the fit of the map.
    rates : ndarray of shape (bins,)
        1 / the value at which the table ends, float32.
    intercept : ndarray of shape (t,)
        Intercepts, float64.
    power : int
        Power of the spacing.
    is_signed : bool
        Whether negative values are looked up as those of an odd function.
    """

    lines: Annotated[np.ndarray, Shape("bins", "pieces", 2, "t")]
    errors: Annotated[np.ndarray, Shape("bins", "pieces", "t")]
    n_below: Annotated[np.ndarray, Shape("bins")]
    rates: Annotated[np.ndarray, Shape("bins")]
    intercept: Annotated[np.ndarray, Shape("t")]
    power: int
    is_signed: bool

    @property
    def n_bins(self) -> int:
        return int(self.lines.shape[0])

    @property
    def n_pieces(self) -> int:
        """Number of pieces in each bin."""
        return int(self.lines.shape[1])

    @property
    def n_outputs(self) -> int:
        return int(self.lines.shape[3])

    @property
    def nbytes(self) -> int:
        """Bytes of the tables in memory, in the form used for look-ups."""
        return sum(table.nbytes for table in self._packed)

    @property
    def worst_error(self) -> float:
        """Upper bound of the error of any score of a row within the tables.

        The values of the row must be 0 or at least the smallest in the fit of the map. The bound is the sum over bins
        of the largest error in each, for the worst output. A row comes near it if in every bin its value has the
        largest error of that output, all with the same sign. In other rows errors of both signs cancel, and the error
        is far smaller. ``bound`` gives a bound for given rows.
        """
        return worst_error(self.errors, self.n_below)

    def describe(self) -> str:
        """Return a description such as "48 straight pieces per bin"."""
        return f"{self.n_pieces} straight pieces per bin"

    def scores(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return (scores (n, t) float64, outside (n,) bool) of float32 rows (n, bins), dense or CSR.

        A row is outside, and its scores are meaningless, if it has a value beyond the table of its bin, a value that is
        not a number, or a value below 0 (or -0.0) although the kernel is not signed.
        """
        scores, outside = np.empty((rows.shape[0], self.n_outputs)), np.zeros(rows.shape[0], dtype=bool)
        for first, table in zip(range(0, self.n_outputs, _LANES), self._packed, strict=True):
            lanes = slice(first, min(self.n_outputs, first + _LANES))
            sums = self._sums(rows, table, outside)
            np.add(sums[:, : lanes.stop - lanes.start], self.intercept[lanes], out=scores[:, lanes])
        return scores, outside

    def bound(self, rows: Rows) -> np.ndarray:
        """Return an upper bound of the error of each row's scores, (n,) float64, for rows that are not outside."""
        bounds, outside = np.zeros(rows.shape[0], dtype=np.float32), np.zeros(rows.shape[0], dtype=bool)
        entries = _arrays.to_sparse(rows)  # zeros are exact, whatever the error of their piece
        for table in self._error_tables:
            np.maximum(bounds, self._sums(entries, table, outside).max(axis=1), out=bounds)
        return bounds.astype(np.float64)

    def _sums(self, rows: Rows, table: np.ndarray, outside: np.ndarray) -> np.ndarray:
        lanes, n = table.shape[2], rows.shape[0]
        out = np.zeros((n, lanes), dtype=np.float32)
        mirror = self.n_pieces if self.is_signed else 0
        grid = (
            np.int32(0x7FFFFFFF if self.is_signed else -1),
            np.int32(self.power),
            np.int32(self.n_pieces),
            np.int32(mirror),
            self._starts,
            table,
        )
        call: Callable[[slice], None]
        if _arrays.is_sparse(rows):
            work = max(1, rows.nnz // max(1, n)) * lanes
            sparse = _loops.sparse_table_scores[lanes]

            def call(part: slice) -> None:
                indptr = rows.indptr[part.start : part.stop + 1]
                sparse(rows.data, rows.indices, indptr, self.rates, *grid, out[part], outside[part])
        else:
            work = self.n_bins * lanes
            dense = _loops.dense_table_scores[lanes]
            lines_at_once = _BLOCK_BYTES * self.n_bins // max(1, table.nbytes) // _LINE
            bins_at_once = _LINE * max(1, lines_at_once)

            def call(part: slice) -> None:
                dense(rows[part], self.rates, *grid, bins_at_once, _BLOCK_ROWS, out[part], outside[part])

        _threads.over_rows(n, work, call)
        return out

    @cached_property
    def _starts(self) -> np.ndarray:
        places = self.n_pieces * (2 if self.is_signed else 1)
        return (np.arange(self.n_bins) * places).astype(np.uint32)

    @cached_property
    def _packed(self) -> list[np.ndarray]:
        """Tables (bins * places, 2, lanes) of up to sixteen outputs each, as the loops take them."""
        return self._by_lanes(self.lines, odd=True)

    @cached_property
    def _error_tables(self) -> list[np.ndarray]:
        return self._by_lanes(np.stack([self.errors, np.zeros_like(self.errors)], axis=2), odd=False)

    def _by_lanes(self, lines: np.ndarray, odd: bool) -> list[np.ndarray]:
        groups = range(0, self.n_outputs, _LANES)
        return [self._pack(lines[:, :, :, first : first + _LANES], odd) for first in groups]

    def _pack(self, lines: np.ndarray, odd: bool) -> np.ndarray:
        width = next(lanes for lanes in (1, 4, 8, _LANES) if lanes >= lines.shape[3])
        if self.is_signed:  # sign(x) (a + b |x|) = -a + b x for x < 0
            signs = np.array([-1.0, 1.0], dtype=np.float32) if odd else np.ones(2, dtype=np.float32)
            lines = np.concatenate([lines, lines * signs[:, None]], axis=1)
        out = _aligned((lines.shape[0] * lines.shape[1], 2, width))
        out[:, :, : lines.shape[3]] = lines.reshape(-1, 2, lines.shape[3])
        return out

    def __getstate__(self) -> JSON:
        # Packing the tables again takes less time than sending them.
        return {k: v for k, v in vars(self).items() if not k.startswith("_")}


def worst_error(errors: np.ndarray, n_below: np.ndarray) -> float:
    """Return the sum over bins of the largest error (bins, n_pieces, t) in each, for the worst output.

    The first ``n_below`` (bins,) pieces are left out.
    """
    known = np.arange(errors.shape[1]) >= n_below[:, None]
    return float(np.where(known[:, :, None], errors, 0).max(axis=1).sum(axis=0, dtype=np.float64).max())


def _aligned(shape: tuple[int, ...]) -> np.ndarray:
    """Return float32 zeros that begin at a cache line, so that sixteen outputs are in two lines, not three."""
    size = 4 * int(np.prod(shape))
    memory = np.zeros(size + 64, dtype=np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(np.float32).reshape(shape)
