"""Values of a kernel between its training rows, block by block, and their factors: here, on a device, or on workers.

The factor of a block depends on the strength, the weights of its rows and the lift, but on no weights of the machine.
So as many blocks as there are workers are factorised together, each by one of them, which keeps the factor. The blocks
are then solved one after the other: all workers multiply the rows of a block with their shares of the rows before it,
and the worker with its factor takes the residuals and returns the step. W workers take the factors of W blocks the
time of one, and the products a W-th of theirs. Rows go out, and a few numbers for each row come back; no matrix does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from chimap._pieces import Held, Piece, Result
from chimap.backends import backend_of
from chimap.backends.base import BlockFactor, BlockKernel, WeightedRows
from chimap.features.exact import RowKernel
from chimap.solvers.exact import DualRidge


@dataclass(frozen=True)
class FactorRows:
    """Places (m,) of the rows that are factorised together, those of the core first, and their weights (m,)."""

    places: np.ndarray
    weights: np.ndarray | None

    @property
    def last(self) -> int:
        """Place of the last row, which no other block has."""
        return int(self.places[-1])


@dataclass(frozen=True)
class HeldRows:
    """Rows where they are held, and the factor of the values among them."""

    rows: FactorRows
    piece: Piece
    factor: Piece


class KernelHere(BlockKernel):
    """See ``backends.base.BlockKernel``: the values among the rows of a block have one memory, which blocks share."""

    def __init__(self, features: RowKernel, most_rows: int, dtype: np.dtype):
        self._features, self._dtype = features, dtype
        self._memory = np.empty(most_rows**2, dtype)

    def add_outputs(self, places: slice, by: Sequence[WeightedRows], out: np.ndarray) -> None:
        for others, weights in by:
            self._features.add_outputs(places, others, weights.astype(self._dtype), out[:, : weights.shape[1]])

    def among(self, rows: np.ndarray, row_weights: np.ndarray | None) -> DualRidge:
        m = rows.size
        return _ridge(self._features.take(rows), self._memory[: m * m].reshape(m, m), row_weights)


class HeldKernel(BlockKernel):
    """See ``backends.base.BlockKernel``: each holder has a share of the rows, and the factor of one block at a time.

    Parameters
    ----------
    features : RowKernel
        The training rows.
    held : Held
        Where the shares and factors are held; nothing is there yet.
    dtype : dtype
        Precision of the values and factors.
    ahead : sequence of FactorRows
        What will be factorised, in this order. What follows is factorised together with what is asked for.
    n_core : int, default=0
        Number of the first rows, which have shares of their own.
    """

    def __init__(
        self, features: RowKernel, held: Held, dtype: np.dtype, ahead: Sequence[FactorRows] = (), n_core: int = 0
    ):
        self._features, self._held, self._dtype = features, held, dtype
        self._gamma = features.gamma_at(0)
        self._ahead, self._borders = ahead, [n_core, *(own.last + 1 for own in ahead)]
        self._shares: list[tuple[slice, Piece]] = []
        self._factors: dict[int, HeldRows] = {}  # of the blocks that are factorised together, by their last rows
        self._setting = (0.0, 0.0)  # strength and lift of these factors
        self._next: dict[int, Piece] = {}  # rows of the blocks that will be factorised together after them

    def add_outputs(self, places: slice, by: Sequence[WeightedRows], out: np.ndarray) -> None:
        """See ``BlockKernel``; ``by`` begins and ends at 0, at the end of the core and at those of blocks."""
        self._let_other_gammas_go()
        for others, _ in by:
            self._deal(others.stop)
        pieces, each = [], []
        for others, weights in by:
            for share, piece in self._shares:
                if others.start <= share.start < others.stop:
                    own = weights[share.start - others.start : share.stop - others.start]
                    pieces.append(piece)
                    each.append((out.shape, own.astype(self._dtype)))
        if pieces:
            out += self._held.summed(_outputs_by, pieces, self._block(places), each)

    def _block(self, places: slice) -> Piece:
        """Return held rows that end with those at ``places``: those of a factor, if there is one."""
        m, own = places.stop - places.start, self._factors.get(places.stop - 1)
        if own is not None and m <= own.rows.places.size and own.rows.places[-m] == places.start:
            return own.piece
        return self._held.put([partial(self._features.take, places)])[0]

    def _deal(self, stop: int) -> None:
        """Deal the rows up to ``stop`` that are not held yet, those of each block in as many shares as threads."""
        for border in [*(border for border in self._borders if border < stop), stop]:
            start = self._shares[-1][0].stop if self._shares else 0
            if start < border:
                ends = np.linspace(start, border, self._held.n_threads + 1).round().astype(int).tolist()
                shares = [slice(a, b) for a, b in pairwise(ends) if a < b]
                pieces = self._held.put([partial(self._features.take, share) for share in shares])
                self._shares += zip(shares, pieces, strict=True)

    def among(self, rows: np.ndarray, row_weights: np.ndarray | None) -> HeldFactor:
        return HeldFactor(self, FactorRows(rows, row_weights))

    def diagonal(self, rows: FactorRows) -> np.ndarray:
        """Return the values (m,) of rows with themselves."""
        return self._features.take(rows.places).diagonal()

    def factor(self, rows: FactorRows, alpha: float, lift: float) -> Piece:
        """Return the lifted values among rows, factorised for a strength, where they are held.

        If they are not under way, they are begun, together with those ahead.
        """
        self._let_other_gammas_go()
        if (alpha, lift) != self._setting or rows.last not in self._factors:
            self._factors, self._setting = {}, (alpha, lift)  # frees the memory of those before
            n, some = self._held.n_holders, [rows, *(later for later in self._ahead if later.last > rows.last)]
            if [own.last for own in some[:n]] != [*self._next]:  # each by another holder
                self._next = {own.last: self._put(own, k) for k, own in enumerate(some[:n])}
            for own in some[:n]:
                piece = self._next[own.last]
                factor = piece.made(_factorised, own.weights, alpha, lift, self._dtype)
                self._factors[own.last] = HeldRows(own, piece, factor)
            # While the holders factorise, they get the rows that they need next.
            self._next = {own.last: self._put(own, k) for k, own in enumerate(some[n : 2 * n])}
            self._deal(some[:n][-1].last + 1)
        return self._factors[rows.last].factor

    def _let_other_gammas_go(self) -> None:
        """Let go of rows and factors that are held with another gamma than the features have now."""
        gamma = self._features.gamma_at(0)
        if gamma != self._gamma:
            self._gamma, self._shares, self._factors, self._next = gamma, [], {}, {}

    def _put(self, rows: FactorRows, holder: int) -> Piece:
        return self._held.put([partial(self._features.take, rows.places)], first=holder)[0]


class HeldFactor(BlockFactor):
    """See ``backends.base.BlockFactor``: what is asked of the factor is computed where it is held."""

    def __init__(self, kernel: HeldKernel, rows: FactorRows):
        self._kernel, self._rows, self._lift = kernel, rows, 0.0
        self._factor: Piece | None = None

    @cached_property
    def diagonal(self) -> np.ndarray:
        return self._kernel.diagonal(self._rows)

    def lift(self, constant: float) -> None:
        self._lift = constant

    def factorise(self, alpha: float) -> bool:
        self._factor = None  # frees the memory of another strength
        self._factor = self._kernel.factor(self._rows, alpha, self._lift)
        return self._there.call(_is_definite)

    def outputs_by_first(self, weights: np.ndarray) -> np.ndarray:
        return self._there.call(DualRidge.outputs_by_first, weights)

    def solve_for(self, right: np.ndarray, steps: int) -> np.ndarray | None:
        return self._there.call(DualRidge.solve_for, right, steps)

    def inverse_diagonal(self, first: int) -> np.ndarray:
        return self._there.call(DualRidge.inverse_diagonal, first)

    def of_inverse_blocks(
        self, groups: Sequence[np.ndarray], call: Callable[[int, np.ndarray], Result]
    ) -> list[Result]:
        return self._there.call(DualRidge.of_inverse_blocks, groups, call)

    @property
    def _there(self) -> Piece:
        assert self._factor is not None  # callers factorise first
        return self._factor


def block_kernel(
    features: RowKernel,
    most_rows: int,
    dtype: np.dtype,
    device: str = "cpu",
    held: Held | None = None,
    ahead: Sequence[FactorRows] = (),
    n_core: int = 0,
) -> BlockKernel:
    """Return the values between rows, which a device computes and factorises, or holders of the rows, or this machine.

    Parameters
    ----------
    features : RowKernel
        Fitted on the rows, in the order of the blocks.
    most_rows : int
        Rows of the largest block, with the core.
    dtype : dtype
        Precision of the values and factors, unless a device has its own.
    device : str, default="cpu"
        The device.
    held : Held or None, default=None
        Where rows and factors are held; None for here.
    ahead, n_core
        See ``HeldKernel``.
    """
    on_device = backend_of(device).block_kernel(features)
    if on_device is not None:
        return on_device
    return KernelHere(features, most_rows, dtype) if held is None else HeldKernel(features, held, dtype, ahead, n_core)


def _ridge(features: RowKernel, square: np.ndarray, row_weights: np.ndarray | None) -> DualRidge:
    """Return the values among all rows of ``features``, in the memory of ``square`` (m, m), to be factorised."""
    return DualRidge(square, features.gram_into(square), np.empty((square.shape[0], 0)), row_weights)


def _factorised(
    rows: RowKernel, row_weights: np.ndarray | None, alpha: float, lift: float, dtype: np.dtype
) -> DualRidge:
    """Return the lifted values among rows, factorised for a strength."""
    m = rows._n_features_out
    ridge = _ridge(rows, np.empty((m, m), dtype), row_weights)
    if lift:
        ridge.lift(lift)
    ridge.factorise(alpha)
    return ridge


def _is_definite(ridge: DualRidge) -> bool:
    """Whether values were positive definite to rounding when they were factorised."""
    return ridge.factor_of is not None


def _outputs_by(share: RowKernel, rows: RowKernel, own: tuple[tuple[int, int], np.ndarray]) -> np.ndarray:
    """Return the outputs of the last rows by those of a share; ``own`` is the shape of these, and weights (n, t)."""
    shape, weights = own
    out = np.zeros(shape)
    share.add_outputs_of(rows, rows._n_features_out - shape[0], weights, out[:, : weights.shape[1]])
    return out
