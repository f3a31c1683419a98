"""Approximation of the functions of the bins by straight pieces, as few as a tolerance allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap import _loops
from chimap._errors import InputError
from chimap._memory import format_bytes
from chimap._messages import Message
from chimap._validation import MemoryBudgetError, check_positive
from chimap.tables.functions import BinFunctions
from chimap.tables.lines import LineTables

_POWERS = (0, 1, 2, 3)  # pieces of equal length in u, nearly its root, its fourth root or its eighth root
_FIRST = 32  # number of pieces at which the powers are compared
_MOST = 4096  # largest number of pieces
_COMPARED_BINS = 64  # number of bins on which the spacing is chosen
_NUMBERS = 2**21  # values of the functions that are in memory at once
_TESTED = np.array([0.0, 0.07, 0.25, 0.4, 0.5, 0.6, 0.75, 0.93, 1.0])  # places in a piece where it is tested
# The Chebyshev points of a piece, at which it meets the function.
_NODES = (np.array([1.0, 1.0]) + np.array([-1.0, 1.0]) * np.sqrt(0.5)) / 2
_BETWEEN = 1.25  # factor on the tested error, for errors between the tested places
_ROUNDING = 2.0**-20  # relative rounding error of a + b x, and of the sums, in float32
_NEAR_ZERO = 24  # further tested places in the first piece, each half as far from 0 as the one before


def line_tables(
    functions: BinFunctions, intercept: np.ndarray, tolerance: float, most_bytes: float = np.inf
) -> LineTables:
    """Return tables whose errors are at most ``tolerance`` times the largest values, both summed over the bins.

    This holds for values from the smallest in the fit of the map on. (Far below it ``OptimalMap`` takes values for 0,
    and jumps; the ``errors`` of the tables include what they are off there.)

    Each piece meets the function at its two Chebyshev points (the first piece, which begins at 0, at 0 and one point).
    Its error is the largest difference at nine places, plus a quarter for the places between. Four spacings are tried,
    and the one with the fewest pieces is used. Raises ValueError for functions that 4096 pieces in each bin do not
    approximate (they jump), and MemoryBudgetError for tables above ``most_bytes``.
    """
    check_positive(tolerance, "tolerance")
    bins = np.arange(functions.n_bins)
    chosen = np.unique(np.linspace(0, bins.size - 1, min(bins.size, _COMPARED_BINS)).astype(int))
    grid = _best_grid(functions, chosen, tolerance)
    while True:
        if grid.n_pieces > _MOST:
            raise InputError(
                Message(
                    "tables of {} pieces per bin do not come within the tolerance of this model. Either the tolerance "
                    "is below the rounding of float32: give {tolerance=1e-5} or more; or the map jumps, as "
                    "StaircaseMap does with constant steps: use AnchorMap without blocks, whose codes are looked up "
                    "exactly.",
                    _MOST,
                )
            )
        width = -(-functions.n_outputs // 4) * 4 if functions.n_outputs > 1 else 1
        needed = 8 * bins.size * grid.n_pieces * width * (2 if functions.is_signed else 1)
        if needed > most_bytes:
            raise MemoryBudgetError(
                f"the tables take {format_bytes(needed)} ({bins.size:,} bins, {grid.n_pieces} pieces, "
                f"{functions.n_outputs} outputs), above the {format_bytes(most_bytes)} allowed. Raise memory, or the "
                "tolerance."
            )
        tables = _fitted(functions, grid, bins)
        if tables.excess(tolerance) <= 1:
            tops = functions.tops
            return LineTables(
                tables.lines,
                tables.errors,
                tables.n_below,
                (1 / tops).astype(np.float32),
                np.asarray(intercept, np.float64),
                grid.power,
                functions.is_signed,
            )
        grid = grid.finer(tables.excess(tolerance))


@dataclass(frozen=True)
class _Grid:
    """Pieces of [0, 1): piece j holds the u whose root, as the loops compute it, is in [j, j + 1) / n_pieces."""

    power: int
    n_pieces: int

    def at(self, place: np.ndarray) -> np.ndarray:
        """Return float32 u at places j + t in [0, n_pieces], the inverse of the loops' root."""
        one = np.int32(_loops.TABLE_END)
        root = np.asarray(place / self.n_pieces, dtype=np.float32).view(np.int32)
        bits = (root.astype(np.int64) - (one - (one >> self.power))) << self.power
        return np.clip(bits, 0, int(one) - 1).astype(np.int32).view(np.float32)

    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first and the last float32 of each piece, as the loops assign them."""
        starts = self.at(np.arange(1, self.n_pieces)).view(np.int32)
        for step in (1, -1):  # rounding puts the border a few floats too high or too low
            while True:
                belongs = self._pieces(starts if step > 0 else starts - 1) >= np.arange(1, self.n_pieces)
                wrong = ~belongs if step > 0 else belongs
                if not wrong.any():
                    break
                starts = starts + step * wrong.astype(np.int32)
        first = np.append(np.int32(0), starts).astype(np.int32)
        last = np.append(starts, np.int32(_loops.TABLE_END)).astype(np.int32) - np.int32(1)
        return first.view(np.float32), last.view(np.float32)

    def _pieces(self, bits: np.ndarray) -> np.ndarray:
        out = np.empty(bits.size, dtype=np.uint32)
        _loops.pieces_of(bits, self.power, self.n_pieces, out)
        return out

    def finer(self, excess: float) -> _Grid:
        """Return a grid with enough pieces, a multiple of eight, for an error that falls with their square."""
        wanted = self.n_pieces * max(1.05, 1.02 * np.sqrt(min(excess, 1e6)))
        return _Grid(self.power, 8 * int(np.ceil(wanted / 8)))


def grid_of(tables: LineTables) -> _Grid:
    """Return the spacing of the pieces of tables."""
    return _Grid(tables.power, tables.n_pieces)


@dataclass(frozen=True)
class _Fitted:
    lines: np.ndarray
    errors: np.ndarray
    n_below: np.ndarray  # (bins,) number of pieces with only values smaller than all in the fit
    worst: np.ndarray  # (t,) sums over bins of the largest error in each
    largest: np.ndarray  # (t,) sums over bins of the largest value in each

    def excess(self, tolerance: float) -> float:
        """Return the error of the worst output as a multiple of the permitted error."""
        allowed = np.where(self.largest > 0, tolerance * self.largest, np.inf)
        return float((self.worst / allowed).max())


def _best_grid(functions: BinFunctions, bins: np.ndarray, tolerance: float) -> _Grid:
    """Return the spacing that needs the fewest pieces, judged on the given bins."""
    for n_pieces in sorted(functions.kinks):
        straight = _Grid(0, n_pieces)
        if n_pieces <= _MOST and _fitted(functions, straight, bins).excess(tolerance) <= 1:
            return straight
    grids = []
    for power in _POWERS:
        first = _Grid(power, _FIRST)
        excess = _fitted(functions, first, bins).excess(tolerance)
        grid = (
            first.finer(excess) if excess > 1 else _Grid(power, max(8, 8 * int(np.ceil(_FIRST * np.sqrt(excess) / 8))))
        )
        grids.append(grid)
    return min(grids, key=lambda grid: grid.n_pieces)


def _fitted(functions: BinFunctions, grid: _Grid, bins: np.ndarray) -> _Fitted:
    t, k = functions.n_outputs, grid.n_pieces
    first, last = grid.edges()
    inner = grid.at(np.arange(k)[:, None] + np.concatenate([_NODES, _TESTED]))
    inner = np.clip(inner, first[:, None], last[:, None])
    near = last[0] * np.float32(0.5) ** np.arange(_NEAR_ZERO, dtype=np.float32)
    u = np.concatenate([inner.reshape(-1), near]).astype(np.float64)
    lines = np.empty((bins.size, k, 2, t), dtype=np.float32)
    errors = np.empty((bins.size, k, t), dtype=np.float32)
    worst, largest = np.zeros(t), np.zeros(t)
    size = max(1, _NUMBERS // (u.size * max(t, 4)))
    tops = functions.tops
    n_below = np.sum(last * tops[bins, None] < functions.smallest, axis=1)
    for start in range(0, bins.size, size):
        block = bins[start : start + size]
        x = u[:, None] * tops[block]
        g = functions(x, block)
        pieces, error = _pieces(x, g, k)
        places = slice(start, start + block.size)
        lines[places], errors[places] = pieces.transpose(1, 0, 2, 3), error.transpose(1, 0, 2)
        known = np.arange(k)[:, None] >= n_below[places]
        worst += (error * known[:, :, None]).max(axis=0).sum(axis=0)
        largest += np.abs(g).max(axis=0).sum(axis=0)
    return _Fitted(lines, errors, n_below, worst, largest)


def _pieces(x: np.ndarray, g: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (lines (k, bins, 2, t) float32, errors (k, bins, t)) of values g (places, bins, t) at x (places, bins)."""
    n_inner, n_nodes = k * (_NODES.size + _TESTED.size), _NODES.size
    by_piece = x[:n_inner].reshape(k, -1, x.shape[1])
    values = g[:n_inner].reshape(k, -1, *g.shape[1:])
    run = by_piece[:, 1] - by_piece[:, 0]
    slope = (values[:, 1] - values[:, 0]) / np.where(run > 0, run, 1)[..., None]
    slope[0] = values[0, 1] / by_piece[0, 1][:, None]
    start = values[:, 1] - slope * by_piece[:, 1][..., None]
    start[0] = 0
    lines = np.stack([start, slope], axis=2).astype(np.float32)
    a, b = lines[:, :, 0].astype(np.float64), lines[:, :, 1].astype(np.float64)
    tested = slice(n_nodes, None)
    gaps = np.abs(values[:, tested] - a[:, None] - b[:, None] * by_piece[:, tested][..., None])
    error = gaps.max(axis=1)
    near = np.abs(g[n_inner:] - a[0] - b[0] * x[n_inner:][..., None])
    error[0] = np.maximum(error[0], near.max(axis=0))
    # If the function jumps at a border, rounding may put a value on the other side of it.
    jumps = np.abs(values[1:, n_nodes] - values[:-1, -1])
    error[1:] = np.maximum(error[1:], jumps)
    error[:-1] = np.maximum(error[:-1], jumps)
    size = np.abs(a) + np.abs(b) * by_piece[:, -1][..., None]
    return lines, _BETWEEN * error + _ROUNDING * size
