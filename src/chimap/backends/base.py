"""What a backend does: four primitives, of which the rest of the package knows no more than these protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

Clock = Callable[[str], AbstractContextManager[Any]]
"""Puts the time of a block down to a stage."""
Keep = Callable[[int, np.ndarray, Any], None]
"""Handed the fold, features and targets of rows, both less their shifts, as they are added up."""


class RowFeatures(Protocol):
    """Fitted features, as rows are mapped to them."""

    _n_features_out: int

    def features_into(self, rows: Any, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Features of checked rows less a shift (D,), into out (n, D)."""


class Sums(Protocol):
    """Accumulate: features of checked rows are mapped and added to the moments of their folds."""

    @property
    def moments(self) -> Any:
        """What is added to."""
        ...

    def fresh(self) -> Sums:
        """The same, with nothing added up yet."""
        ...

    def add(self, rows: Any, targets: Any, folds: np.ndarray, clock: Clock) -> None:
        """Add rows (n, bins) and targets (n, t) less their shifts, which may have the weights of the rows
        (``moments.WeightedTargets``), to the folds (n,) that they are in."""

    def finish(self, clock: Clock) -> None:
        """Bring the sums to ``moments``, where they are elsewhere; nothing is added after that."""


class HostSums(Sums, Protocol):
    """Sums whose features pass through the memory of this process."""

    def pieces(
        self, rows: Any, targets: Any, folds: np.ndarray, wanted: Iterable[int], clock: Clock
    ) -> Iterator[tuple[int, np.ndarray, Any]]:
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

    def sums(self, features: Any, moments: Any, keep: Keep | None = None) -> Sums:
        """Sums of all features, fold by fold, about the shifts of ``moments``; keep: is handed what is added."""
        ...

    def block_sums(self, features: Any, moments: Any, dtype: np.dtype) -> Sums:
        """Sums of each block's features, without targets."""
        ...

    def scorer(
        self, features: Any, shift: np.ndarray, coef: np.ndarray, intercept: np.ndarray, dtype: np.dtype
    ) -> Callable[[Any], np.ndarray]:
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
