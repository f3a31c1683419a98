"""The backend of this machine's CPU: compiled loops, BLAS and LAPACK."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from chimap import _arrays
from chimap._types import Rows
from chimap.backends.base import Backend, BlockedFeatures, BlockedMoments, Cholesky, Clock, Keep, KernelSum, RowFeatures
from chimap.moments import FoldMoments, Targets

PIECE_ROWS = 2048  # rows of a fold whose features are in memory at once; enough for products at full rate

# For at most D / _PARTIAL of D eigenpairs LAPACK's partial solver is faster; for more, divide and conquer for all of
# them. (Lanczos iterations were measured too: they win only below D/50, and there by a fifth.)
_PARTIAL = 7


@dataclass(frozen=True)
class FoldSums:
    """Adds the features of rows to the moments of their folds; see ``base.HostSums``."""

    features: RowFeatures
    moments: FoldMoments
    keep: Keep | None = None

    def fresh(self) -> FoldSums:
        """See ``Sums``."""
        return replace(self, moments=self.moments.fresh(), keep=None)

    def without_keeping(self) -> FoldSums:
        """See ``HostSums``."""
        return replace(self, keep=None)

    def add(self, rows: Rows, targets: Targets, folds: np.ndarray, clock: Clock) -> None:
        """See ``Sums``."""
        pieces = self.pieces(rows, targets, folds, range(len(self.moments.folds)), clock)
        with clock("moments"), self.moments.collecting():
            for fold, Z, Y in pieces:
                if self.keep is not None:
                    self.keep(fold, Z, Y)
                self.moments.add_shifted(fold, Z, Y)  # after keep, because it changes rows with weights

    def pieces(
        self, rows: Rows, targets: Targets, folds: np.ndarray, wanted: Iterable[int], clock: Clock
    ) -> Iterator[tuple[int, np.ndarray, Targets]]:
        """See ``HostSums``; folds come one after the other."""
        is_whole = len(self.moments.folds) == 1
        for fold in wanted:
            members = np.arange(rows.shape[0]) if is_whole else np.flatnonzero(folds == fold)
            for first in range(0, members.size, PIECE_ROWS):
                with clock("features"):
                    chosen = members[first : first + PIECE_ROWS]
                    piece = _arrays.take_rows(rows, slice(first, first + PIECE_ROWS) if is_whole else chosen)
                    Z = self.moments.buffer(piece.shape[0])
                    self.features.features_into(piece, Z, self.moments.shift)
                yield fold, Z, targets[chosen]

    def finish(self, clock: Clock) -> None:
        """Do nothing: the sums are in ``moments`` already."""


@dataclass(frozen=True)
class BlockSums:
    """Adds the features of rows to the moments of their blocks."""

    features: BlockedFeatures
    moments: BlockedMoments

    def fresh(self) -> BlockSums:
        """See ``Sums``."""
        return replace(self, moments=self.moments.fresh())

    def add(self, rows: Rows, targets: Targets, folds: np.ndarray, clock: Clock) -> None:
        """See ``Sums``; the targets are (n, 0) with the weights of the rows, and folds are ignored."""
        with clock("components"):
            self.moments.add(self.features, rows, targets)

    def finish(self, clock: Clock) -> None:
        """Do nothing: the sums are in ``moments`` already."""


class HostCholesky(Cholesky):
    """The factor is in the memory of the matrix."""

    def __init__(self, square: np.ndarray):
        self._lower = square.T  # an upper triangle in C order is a lower one in Fortran order

    def solve(self, B: np.ndarray) -> np.ndarray:
        return dpotrs(self._lower, B, lower=1)[0]

    def whiten(self, B: np.ndarray) -> np.ndarray:
        return dtrtrs(self._lower, B, lower=1)[0]

    def unwhiten(self, V: np.ndarray) -> np.ndarray:
        return dtrtrs(self._lower, V, lower=1, trans=1)[0]

    def coordinates(self, W: np.ndarray) -> np.ndarray:
        return dtrmm(1.0, self._lower, W, lower=1, trans_a=1)


class Host(Backend):
    """The backend of this machine: NumPy, SciPy and compiled loops."""

    speed = 1.0

    def holds(self, n_rows: int, n_columns: int, block_rows: int, dtype: np.dtype) -> bool:
        """Return True: the memory budget is planned for all that is here."""
        return True

    def block_kernel(self, features: KernelSum) -> None:
        """Return None: the solver has the values here."""

    def sums(self, features: RowFeatures, moments: FoldMoments, keep: Keep | None = None) -> FoldSums:
        return FoldSums(features, moments, keep)

    def block_sums(self, features: BlockedFeatures, moments: BlockedMoments, dtype: np.dtype) -> BlockSums:
        return BlockSums(features, moments)

    def scorer(
        self, features: RowFeatures, shift: np.ndarray, coef: np.ndarray, intercept: np.ndarray, dtype: np.dtype
    ) -> Callable[[Rows], np.ndarray]:
        weights, constant = coef.astype(dtype, order="C"), shift @ coef + intercept

        def score(rows: Rows) -> np.ndarray:
            Z = np.empty((rows.shape[0], shift.size), dtype)
            features.features_into(rows, Z, shift)
            return np.asarray((Z @ weights).astype(np.float64) + constant)

        return score

    def cholesky(self, square: np.ndarray) -> HostCholesky | None:
        _, info = dpotrf(square.T, lower=1, clean=0, overwrite_a=1)
        return None if info else HostCholesky(square)

    def eigenpairs(self, square: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray]:
        n = square.shape[0]
        subset = [n - wanted, n - 1] if _PARTIAL * wanted <= n else None
        values, vectors = eigh(
            square.T,
            lower=True,
            subset_by_index=subset,
            driver="evr" if subset else "evd",
            overwrite_a=True,
            check_finite=False,
        )
        return values, vectors


HOST = Host()
