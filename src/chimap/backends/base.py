"""The protocols of a backend: four primitives, and all that the rest of the package knows about backends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

import numpy as np

from chimap._pieces import Result
from chimap._types import Array, ArrayMap, Rows
from chimap.moments import FoldMoments, Moments, Targets
from chimap.moments.kept_rows import KeptRows, OtherRows

Clock = Callable[[str], AbstractContextManager[object]]
"""Returns a context manager that adds the time of a block to the stage of the given name."""
Keep = Callable[[int, np.ndarray, Any], None]
"""Called with the fold, features and targets of rows, both less their shifts, as they are summed."""


class RowFeatures(Protocol):
    """Fitted features, as a map of rows."""

    @property
    def _n_features_out(self) -> int: ...

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write the features of checked rows, less a shift (D,), into ``out`` (n, D)."""

    @property
    def n_inputs(self) -> int:
        """Length of the widest row that the features are computed from, besides the row itself."""
        ...

    def on_device(self, like: Array) -> ArrayMap | None:
        """Return the map for arrays such as ``like``; None where the host computes the features."""
        ...


class BlockedFeatures(RowFeatures, Protocol):
    """Fitted features in several blocks of columns, side by side; ``borders_`` holds where each block begins."""

    borders_: np.ndarray


class BlockedMoments(Protocol):
    """Sums over rows for each block of features."""

    @property
    def blocks(self) -> Sequence[Moments]:
        """The sums of each block."""
        ...

    def fresh(self) -> BlockedMoments:
        """Return empty sums about the same shifts."""
        ...

    def add(self, features: Any, rows: Rows, no_targets: Any) -> None:
        """Add checked rows, block by block of their features."""
        ...


class Sums(Protocol):
    """The accumulate primitive: map checked rows to features and add these to the moments of their folds."""

    @property
    def moments(self) -> Any:
        """The moments to which rows are added."""
        ...

    def fresh(self) -> Sums:
        """Return the same with empty moments."""
        ...

    def add(self, rows: Rows, targets: Targets, folds: np.ndarray, clock: Clock) -> None:
        """Add rows (n, bins) with targets (n, t) to the folds (n,) that they belong to.

        The targets are less their shifts, and may carry the weights of the rows (``moments.WeightedTargets``).
        """

    def finish(self, clock: Clock) -> None:
        """Bring the sums to ``moments`` if they are elsewhere; nothing is added after that."""


class HostSums(Sums, Protocol):
    """Sums whose features pass through the memory of this process."""

    def pieces(
        self, rows: Rows, targets: Targets, folds: np.ndarray, wanted: Iterable[int], clock: Clock
    ) -> Iterator[tuple[int, np.ndarray, Targets]]:
        """Yield (fold, features, targets) for pieces of the rows in the wanted folds, less their shifts.

        The features are in a buffer that the next piece overwrites.
        """
        ...

    def without_keeping(self) -> HostSums:
        """Return the same without a ``keep`` callback."""
        ...


class Cholesky(Protocol):
    """The factor L with L L' = A."""

    def solve(self, B: np.ndarray) -> np.ndarray:
        """Return A^-1 B for B (D, columns)."""
        ...

    def whiten(self, B: np.ndarray) -> np.ndarray:
        """Return L^-1 B for B (D, columns)."""
        ...

    def unwhiten(self, V: np.ndarray) -> np.ndarray:
        """Return L^-T V, the weights whose ``coordinates`` are V."""
        ...

    def coordinates(self, W: np.ndarray) -> np.ndarray:
        """Return L' W, whose square is W'AW."""
        ...


class KernelSum(Protocol):
    """A sum of kernels, each a function of mapped rows: products, or exponentials of their distances."""

    @property
    def summands(self) -> Sequence[tuple[KeptRows, float | None]] | None:
        """Mapped training rows and gamma, None for products, of each kernel; None if one has no map."""
        ...

    def others(self, rows: Rows) -> Sequence[OtherRows]:
        """Return checked rows (m, bins) in the form of the mapped rows of each kernel."""
        ...


class BlockFactor(Protocol):
    """A = K + alpha diag(1/w) among the rows of a block, of which there is one at a time, with its Cholesky factor."""

    @property
    def diagonal(self) -> np.ndarray:
        """The values of the rows with themselves, (m,)."""
        ...

    def outputs_by_first(self, weights: np.ndarray) -> np.ndarray:
        """Return the values of the rows behind the first k with these, lifted, times weights (k, t)."""
        ...

    def lift(self, constant: float) -> None:
        """Add a constant to all values of the kernel, before A is factorised."""
        ...

    def factorise(self, alpha: float) -> bool:
        """Factorise A for a strength. Return False if it is not positive definite to rounding."""
        ...

    def solve_for(self, right: np.ndarray, steps: int) -> np.ndarray | None:
        """Return A^-1 of a right side (m, columns) with at most ``steps`` refinements; None if these diverge."""
        ...

    def inverse_diagonal(self, first: int) -> np.ndarray:
        """Return the diagonal of A^-1 from row ``first`` on, (m - first,)."""
        ...

    def of_inverse_blocks(
        self, groups: Sequence[np.ndarray], call: Callable[[int, np.ndarray], Result]
    ) -> list[Result]:
        """Return call(k, [A^-1]_gg) for each group g of rows, which may be computed elsewhere."""
        ...


WeightedRows: TypeAlias = tuple[slice, np.ndarray]
"""Places of training rows, and weights (rows, t) that they have."""


class BlockKernel(Protocol):
    """Values of a kernel between its training rows, as a machine that is solved block by block needs them."""

    def add_outputs(self, places: slice, by: Sequence[WeightedRows], out: np.ndarray) -> None:
        """Add sum_j K(x_i, x_j) weights_j to the first columns of ``out`` (m, columns), float64.

        i are the training rows at ``places``, and ``by`` has those j with their weights, of as many columns or fewer.
        """
        ...

    def among(self, rows: np.ndarray, row_weights: np.ndarray | None) -> BlockFactor:
        """Return the values among training rows, by their places (m,), with their weights (m,), to be factorised.

        They take the memory of those before.
        """
        ...


class Backend(Protocol):
    """The place where features, their sums and factors are computed.

    ``scorer`` maps and multiplies: rows to outputs. ``sums`` and ``block_sums`` map and accumulate. ``cholesky`` and
    ``eigenpairs`` factorise matrices in the memory of this machine. ``block_kernel`` multiplies, and factorises, values
    of a kernel that are never in memory together.
    """

    speed: float
    """Operations on kernel values per second, in units of those of two cores: what fits can do is counted in them."""

    def holds(self, n_rows: int, n_columns: int, block_rows: int, dtype: np.dtype) -> bool:
        """Return whether there is room for mapped rows and a block of their kernel matrix outside of this process.

        ``n_columns`` are those of dense mapped rows.
        """
        ...

    def block_kernel(self, features: KernelSum) -> BlockKernel | None:
        """Return the values among training rows with a map (``summands``); None on the host: solvers have them."""
        ...

    def sums(self, features: RowFeatures, moments: FoldMoments, keep: Keep | None = None) -> Sums:
        """Return sums of all features, fold by fold, about the shifts of ``moments``.

        ``keep`` is called with the rows as they are added.
        """
        ...

    def block_sums(self, features: BlockedFeatures, moments: BlockedMoments, dtype: np.dtype) -> Sums:
        """Return sums of the features of each block, without targets."""
        ...

    def scorer(
        self, features: RowFeatures, shift: np.ndarray, coef: np.ndarray, intercept: np.ndarray, dtype: np.dtype
    ) -> Callable[[Rows], np.ndarray]:
        """Return a function of checked rows that computes f(x) = coef' z(x) + intercept, (n, t) float64."""
        ...

    def cholesky(self, square: np.ndarray) -> Cholesky | None:
        """Factorise a matrix (D, D) float64 whose upper triangle is given; return None if it is not positive definite.

        The matrix may be overwritten, and must stay alive as long as the factor.
        """
        ...

    def eigenpairs(self, square: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray]:
        """Return at least the ``wanted`` leading eigenpairs, values ascending, of a matrix as for ``cholesky``."""
        ...
