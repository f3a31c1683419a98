"""Kernel ridge of any number of rows, block by block, without a matrix larger than one block.

The problem is

    (K + alpha W^-1) a = Y - b,   f = sum_j K(., x_j) a_j + b,

with W the weights of the rows and K (n, n) never formed. A step takes a block B of rows and solves for its weights:

    r = Y_B - b - K_B,: a - alpha W_B^-1 a_B,      a_B += (K_BB + alpha W_B^-1)^-1 r.

Each step minimises phi(a) = a'(K + alpha W^-1) a / 2 - (Y - b)'a over the block exactly, so that phi falls with every
step and a sweep may end after any block. In the first sweep the blocks to come have weights 0, so K_B,: is needed for
the blocks before B only, which is half of the products: n^2 p multiply-adds and (n / m) m^3 / 3 for the factors of
blocks of m rows. Memory is that of the rows and of one block of the matrix.

Smooth directions, which all blocks share, converge slowly. A core S of the first rows is therefore solved again with
every block: (B, S) takes the place of B. The residual of S is 0 after each step, so that nothing else changes. On logP
of 15,000 molecules (b = 2500, 2000 rows of core) one sweep scores better than three without a core.

The sweep validates itself: before block B is solved, K_B,: a + b are outputs by a machine that has not seen its rows.
Leaving row i out of the block that was solved last changes its residual to change_i / (K_BB + alpha W_B^-1)^-1_ii, as
the blocks before it do not depend on that row.

References
----------
Bertsekas, Nonlinear Programming (block coordinate descent); Rathore, Frangella, Yang, Derezinski and Udell, Have
ASkotch (2024), on full kernel ridge against inducing points; Dawid, Prequential analysis (1984), on scores of rows to
come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.backends import backend_of
from chimap.backends.base import BlockFactor
from chimap.features.exact import RowKernel, SharedRows
from chimap.model_files import register
from chimap.solvers.exact import STEPS, DualRidge

_RAISES = (
    6  # decades by which the strength of a single step may be raised if rounding makes its block singular
)


class KernelHere:
    """See ``backends.base.HostKernel``: the values among the rows of a block have one memory, which blocks share."""

    def __init__(
        self, features: RowKernel, most_rows: int, dtype: np.dtype, shared: SharedRows | None = None
    ):
        self.features, self._dtype = features, dtype
        self._products = features if shared is None else shared
        self._memory = np.empty(most_rows**2, dtype)

    def add_outputs(self, places: slice, weights: np.ndarray, out: np.ndarray) -> None:
        """See ``BlockKernel``."""
        self._products.add_outputs(places, weights.shape[0], weights.astype(self._dtype), out)

    def among(self, rows: np.ndarray, row_weights: np.ndarray | None) -> DualRidge:
        """See ``BlockKernel``."""
        m = rows.size
        square = self._memory[: m * m].reshape(m, m)
        diagonal = self.features.take(rows).gram_into(square)
        return DualRidge(square, diagonal, np.empty((m, 0)), row_weights)


@dataclass(frozen=True)
class Swept:
    """A sweep between two blocks. With the rows in the same order, it goes on from here as if it had not stopped.

    Parameters
    ----------
    borders : ndarray of shape (blocks + 1,)
        Where the blocks begin, and the end of the last.
    octaves : int
        Octaves from the gamma of the features to that of the machine.
    selection : SelectionResult or None
        The settings that were compared on the first block.
    alpha, intercept, lift
        See ``BlockRidge``.
    weights : ndarray of shape (n_seen, t)
        Weights of the rows of the blocks so far.
    core_residuals : ndarray of shape (core, t)
        Residuals of the core: 0 unless the strength of the latest step was raised.
    held_out : ndarray of shape (n_seen, t)
        Outputs of these rows by machines of the blocks before theirs.
    scores : ndarray of shape (s, 2)
        Rows learned from, and score of the block that followed.
    """

    borders: np.ndarray
    octaves: int
    selection: object
    alpha: float
    intercept: np.ndarray
    lift: float
    weights: np.ndarray
    core_residuals: np.ndarray
    held_out: np.ndarray
    scores: np.ndarray


class BlockRidge:
    """Weights a (n, t) and intercept b (t,) of the rows of the blocks so far.

    Parameters
    ----------
    features : RowKernel
        Kernel values between all rows, in the order of the blocks.
    Y : ndarray of shape (n, t), float64
        Targets.
    row_weights : ndarray of shape (n,) or None
        Positive weights of the rows; None is 1 for all.
    alpha : float
        Strength of the penalty.
    intercept : ndarray of shape (t,)
        Intercept b. It stays as it is: kernels without a constant part of their own are lifted by one, see ``lift``.
    most_rows : int
        Rows of the largest block, with the core.
    dtype : dtype
        Precision of kernel values and factors.
    n_core : int, default=0
        Number of the first rows that are solved again with every block.
    device : str, default="cpu"
        Device on which kernel values are computed, and factorised.
    lift : float, default=0.0
        The constant that is added to the values of such kernels; 0 before the first block.
    shared : SharedRows or None, default=None
        Computes outputs where the rows are held elsewhere too; None for here.

    Attributes
    ----------
    weights : ndarray of shape (n, t)
        Weights a; 0 for the rows of blocks to come.
    n_seen : int
        Rows of the blocks so far.
    """

    def __init__(
        self,
        features: RowKernel,
        Y: np.ndarray,
        row_weights: np.ndarray | None,
        alpha: float,
        intercept: np.ndarray,
        most_rows: int,
        dtype: np.dtype,
        n_core: int = 0,
        device: str = "cpu",
        lift: float = 0.0,
        shared: SharedRows | None = None,
    ):
        self._features, self._Y, self._row_weights = features, Y, row_weights
        self._kernel = backend_of(device).placed(KernelHere(features, most_rows, dtype, shared))
        self._core = np.arange(n_core)
        self.core_residuals = np.zeros((n_core, Y.shape[1]))
        self.alpha, self._intercept, self.lift = alpha, intercept, lift
        self.weights = np.zeros(Y.shape)
        self.n_seen = 0
        self._last: tuple[slice, int, BlockFactor] | None = None

    @property
    def intercept(self) -> np.ndarray:
        """Intercept of the outputs (t,)."""
        return self._intercept + self.lift * self.weights.sum(axis=0)

    def outputs(self, block: slice) -> np.ndarray:
        """Return the outputs (m, t) of the rows of a block, by all rows that have weights."""
        out = np.zeros((block.stop - block.start, self._Y.shape[1]))
        if self.n_seen:
            self._kernel.add_outputs(block, self.weights[: self.n_seen], out)
        return out + self.intercept

    def adopt(self, weights: np.ndarray, core_residuals: np.ndarray) -> None:
        """Take the weights (n_seen, t) of the first rows, which were solved elsewhere together with the intercept."""
        self.n_seen = weights.shape[0]
        self.weights[: self.n_seen], self.core_residuals[:] = weights, core_residuals

    def learn(self, block: slice, outputs: np.ndarray | None = None) -> None:
        """Solve for the weights of a block, which follows the rows seen so far or is among them.

        ``outputs`` (m, t) are those of the machine before the step; None computes them.

        Raises
        ------
        DataError
            If no strength near alpha makes the block positive definite to rounding.
        """
        outputs = self.outputs(block) if outputs is None else outputs
        residuals = self._Y[block] - outputs - self._noise(block) * self.weights[block]
        core = self._core if block.start >= self._core.size else self._core[:0]
        rows = np.concatenate([core, np.arange(block.start, block.stop)])
        residuals = np.vstack([self.core_residuals[: core.size], residuals])
        factor, change = self._solved(rows, residuals)
        self.weights[rows] += change
        self.n_seen = max(self.n_seen, block.stop)
        self._last = block, core.size, factor

    def residuals(self, rows: slice) -> np.ndarray:
        """Return the residuals (m, t) of rows of the latest block, alpha a_i / w_i."""
        return np.asarray(self._noise(rows) * self.weights[rows])

    def _noise(self, rows: slice) -> float | np.ndarray:
        """Return alpha / w of rows."""
        return self.alpha if self._row_weights is None else self.alpha / self._row_weights[rows, None]

    def left_out(self, first: int) -> np.ndarray:
        """Return the outputs (m - first, t) for rows of the latest block from ``first`` on, each left out alone.

        They cost (m - first)^3 / 3 operations.
        """
        block, n_core, factor = self._latest
        rows = slice(block.start + first, block.stop)
        diagonal = factor.inverse_diagonal(n_core + first)
        return np.asarray(self._Y[rows] - self.weights[rows] / diagonal[:, None])

    def left_out_together(self, groups: Sequence[np.ndarray]) -> np.ndarray:
        """Return the outputs (m, t) for the rows of the latest block, those of a group left out together.

        ``groups`` are places in the block; NaN stands for rows that are in none.
        """
        block, n_core, factor = self._latest
        Y, weights = self._Y[block], self.weights[block]
        out = np.full(Y.shape, np.nan)

        def visit(k: int, inverse: np.ndarray) -> None:
            out[groups[k]] = Y[groups[k]] - np.linalg.solve(inverse, weights[groups[k]])

        factor.inverse_blocks([n_core + group for group in groups], visit)
        return out

    def variances(self, groups: Sequence[np.ndarray]) -> np.ndarray:
        """Return the variances (m,) of the residuals of these groups when they are left out, as ``DualRidge`` does.

        ``groups`` are consecutive places that cover the latest block.
        """
        _, n_core, factor = self._latest
        variances: list[np.ndarray] = [np.empty(0)] * len(groups)

        def visit(k: int, inverse: np.ndarray) -> None:
            variances[k] = np.linalg.inv(inverse).diagonal()

        factor.inverse_blocks([n_core + group for group in groups], visit)
        return np.concatenate(variances)

    @property
    def latest(self) -> slice | None:
        """The block that was solved last, whose rows can be left out; None before one, or if one was interrupted."""
        return None if self._last is None else self._last[0]

    @property
    def _latest(self) -> tuple[slice, int, BlockFactor]:
        if self._last is None:
            raise ValueError("no block has been solved: call learn first.")
        return self._last

    def _solved(self, rows: np.ndarray, residuals: np.ndarray) -> tuple[BlockFactor, np.ndarray]:
        """Return the factor of the rows of a block and of the core, and the change of their weights."""
        self._last = None
        row_weights = None if self._row_weights is None else self._row_weights[rows]
        factor = self._kernel.among(rows, row_weights)
        if self._features.is_centred and not self.lift:
            self.lift = float(factor.diagonal.mean())
        if self.lift:
            factor.lift(self.lift)
        for decades in range(_RAISES):
            # a step with more noise than the problem has is shorter, and phi still falls
            if factor.factorise(self.alpha * 10.0**decades):
                change = factor.solve_for(residuals, STEPS)
                if change is not None:
                    core = slice(self._core.size)
                    self.core_residuals = (10.0**decades - 1) * self._noise(core) * change[core]
                    return factor, change
        raise DataError(
            Message(
                "{alpha=:g} is too small: the kernel matrix of rows {:,} to {:,} is singular to rounding. Use a larger "
                "one, {alpha='auto'} or {precision='float64'}.",
                self.alpha, rows[-1] + 1 - rows.size, rows[-1] + 1,
            )
        )  # fmt: skip


register(Swept)
