"""What a backend does: four primitives, of which the rest of the package knows no more than these protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import numpy as np

from chimap._types import Rows, RowTargets

T = TypeVar("T", bound=RowTargets)

Clock = Callable[[str], AbstractContextManager[object]]
"""Puts the time of a block down to a stage."""
Keep = Callable[[int, np.ndarray, Any], None]
"""Handed the fold, features and targets of rows, both less their shifts, as they are added up."""


class RowFeatures(Protocol):
    """Fitted features, as rows are mapped to them."""

    @property
    def _n_features_out(self) -> int: ...

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Features of checked rows less a shift (D,), into out (n, D)."""


class BlockedFeatures(RowFeatures, Protocol):
    """Fitted features of several blocks of columns, side by side; those of a block begin at its border."""

    borders_: np.ndarray


class SumsOfRows(Protocol):
    """Sums over rows of a fold or a block, to which those that were made elsewhere are added."""

    @property
    def n_features(self) -> int:
        """D."""
        ...

    @property
    def n_targets(self) -> int:
        """t."""
        ...

    @property
    def shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """What features (D,) and targets (t,) are less by."""
        ...

    def add_sums(self, square: np.ndarray, sums: np.ndarray) -> None:
        """See ``moments.Moments``."""
        ...

    def add_targets(self, Y: Any) -> None:
        """See ``moments.Moments``."""
        ...


class FoldedMoments(Protocol):
    """Sums over rows, fold by fold, about one shift; see ``moments.FoldMoments``."""

    @property
    def shift(self) -> np.ndarray:
        """What features are less by, (D,)."""
        ...

    @property
    def dtype(self) -> np.dtype:
        """Of the features."""
        ...

    @property
    def folds(self) -> Sequence[SumsOfRows]:
        """One for each fold."""
        ...

    def fresh(self) -> FoldedMoments:
        """Empty ones about the same shifts."""
        ...

    def buffer(self, n_rows: int) -> np.ndarray:
        """Memory (n_rows, D) for features."""
        ...

    def collecting(self) -> AbstractContextManager[None]:
        """See ``moments.FoldMoments``."""
        ...

    def add_shifted(self, fold: int, Z: np.ndarray, Y: Any) -> None:
        """Add features and targets, less their shifts, to a fold."""
        ...

    def add_sums(self, fold: int, square: np.ndarray, sums: np.ndarray) -> None:
        """Add sums made elsewhere to a fold."""
        ...

    def add_targets(self, fold: int, Y: Any) -> None:
        """Count targets of rows whose features come by ``add_sums``."""
        ...


class BlockedMoments(Protocol):
    """Sums over rows, block by block of their features."""

    @property
    def blocks(self) -> Sequence[SumsOfRows]:
        """One for each block."""
        ...

    def fresh(self) -> BlockedMoments:
        """Empty ones about the same shifts."""
        ...

    def add(self, features: Any, rows: Rows, no_targets: Any) -> None:
        """Add checked rows, block by block of their features."""
        ...


class Sums(Protocol):
    """Accumulate: features of checked rows are mapped and added to the moments of their folds."""

    @property
    def moments(self) -> Any:
        """What is added to."""
        ...

    def fresh(self) -> Sums:
        """The same, with nothing added up yet."""
        ...

    def add(self, rows: Rows, targets: RowTargets, folds: np.ndarray, clock: Clock) -> None:
        """Add rows (n, bins) and targets (n, t) less their shifts, which may have the weights of the rows
        (``moments.WeightedTargets``), to the folds (n,) that they are in."""

    def finish(self, clock: Clock) -> None:
        """Bring the sums to ``moments``, where they are elsewhere; nothing is added after that."""


class HostSums(Sums, Protocol):
    """Sums whose features pass through the memory of this process."""

    def pieces(
        self, rows: Rows, targets: T, folds: np.ndarray, wanted: Iterable[int], clock: Clock
    ) -> Iterator[tuple[int, np.ndarray, T]]:
        """(fold, features, targets) of the rows in the wanted folds, some at a time, less their shifts.

        The features are in a buffer that the next ones overwrite.
        """
        ...

    def without_keeping(self) -> HostSums:
        """The same, which hands its features to nobody."""
        ...


class Cholesky(Protocol):
    """L with L L' = A."""

    def solve(self, B: np.ndarray) -> np.ndarray:
        """A^-1 B for B (D, columns)."""
        ...

    def whiten(self, B: np.ndarray) -> np.ndarray:
        """L^-1 B for B (D, columns)."""
        ...

    def unwhiten(self, V: np.ndarray) -> np.ndarray:
        """L^-T V, the weights whose ``coordinates`` are V."""
        ...

    def coordinates(self, W: np.ndarray) -> np.ndarray:
        """L' W, whose square is W'AW."""
        ...


class Backend(Protocol):
    """Where features, their sums and factors are computed.

    Map and multiply are ``scorer``: rows to outputs. Map and accumulate are ``sums`` and ``block_sums``. Factorise is
    ``cholesky`` and ``eigenpairs``, of matrices in the memory of this machine.
    """

    def sums(self, features: RowFeatures, moments: FoldedMoments, keep: Keep | None = None) -> Sums:
        """Sums of all features, fold by fold, about the shifts of ``moments``; keep: is handed what is added."""
        ...

    def block_sums(self, features: BlockedFeatures, moments: BlockedMoments, dtype: np.dtype) -> Sums:
        """Sums of each block's features, without targets."""
        ...

    def scorer(
        self,
        features: RowFeatures,
        shift: np.ndarray,
        coef: np.ndarray,
        intercept: np.ndarray,
        dtype: np.dtype,
    ) -> Callable[[Rows], np.ndarray]:
        """f(x) = coef' z(x) + intercept of checked rows, (n, t) float64."""
        ...

    def cholesky(self, square: np.ndarray) -> Cholesky | None:
        """Of a matrix (D, D) float64 whose upper triangle is given; None where it is not positive definite.

        The matrix may be overwritten, and is used as long as the factor is.
        """
        ...

    def eigenpairs(self, square: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray]:
        """The leading ``wanted`` at least, values ascending, of a matrix as for ``cholesky``."""
        ...
