"""Moments of K folds from a single pass over the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from chimap.moments.moments import Moments
from chimap.moments.symmetric import MOST_ROWS, BatchProduct
from chimap.moments.targets import Targets

_BLOCK = 1024  # rows whose folds are drawn at once
_PART_OF_EIGHTHS = np.array([0, 1, 2, 2, 3, 3, 3, 3])


def fold_of_rows(first: int, n_rows: int, n_folds: int, seed: int) -> np.ndarray:
    """Return the folds (n_rows,) of the rows from ``first`` on: random, of equal size, independent of the chunks.

    Row i is in block i // 1024, whose random numbers are drawn from (seed, block). Within a block every n_folds
    consecutive rows are dealt to different folds, so that folds are of equal size (up to a row for each block) however
    few rows there are.

    >>> np.bincount(fold_of_rows(0, 1000, 5, seed=0)).max() <= 210
    np.True_
    """
    blocks = range(first // _BLOCK, (first + n_rows - 1) // _BLOCK + 1)
    deals = np.tile(np.arange(n_folds), (-(-_BLOCK // n_folds), 1))
    folds = [np.random.default_rng([seed, b]).permuted(deals, axis=1).reshape(-1)[:_BLOCK] for b in blocks]
    start = first % _BLOCK
    return np.concatenate(folds or [deals[0]])[start : start + n_rows]


class RowFolds(Protocol):
    """Protocol for the assignment of the rows of a source to ``n_folds`` folds."""

    @property
    def n_folds(self) -> int:
        """Number of folds K; 1 if all rows are summed together."""
        ...

    @property
    def n_held(self) -> int:
        """Number of folds, the first ones, that are held out in turn; 0 if none is."""
        ...

    def __call__(self, first: int, n_rows: int) -> np.ndarray:
        """Return the folds (n_rows,) of the rows from ``first`` on."""
        ...


@dataclass(frozen=True)
class DealtFolds:
    """Random folds of equal size, see ``fold_of_rows``.

    ``parts`` is the number of parts to which rows are dealt; parts beyond the last fold join it. For example, with two
    folds and five parts the first fold has a fifth of the rows. 0 means as many parts as folds.
    """

    n_folds: int
    seed: int
    parts: int = 0

    @property
    def n_held(self) -> int:
        """See ``RowFolds``."""
        return self.n_folds

    def __call__(self, first: int, n_rows: int) -> np.ndarray:
        """See ``RowFolds``."""
        dealt = fold_of_rows(first, n_rows, self.parts or self.n_folds, self.seed)
        return np.minimum(dealt, self.n_folds - 1)


@dataclass(frozen=True, eq=False)
class GivenFolds:
    """Folds (n,) of all rows, as given; ``n_first`` is the number of those that are held out, None for all."""

    folds: np.ndarray
    n_folds: int
    n_first: int | None = None

    @property
    def n_held(self) -> int:
        """See ``RowFolds``."""
        return self.n_folds if self.n_first is None else self.n_first

    def __call__(self, first: int, n_rows: int) -> np.ndarray:
        """See ``RowFolds``."""
        return self.folds[first : first + n_rows]


@dataclass(frozen=True)
class DoublingParts:
    """Random parts of an eighth, an eighth, a quarter and a half of the rows, none of which is held out for selection.

    Each part is as large as all parts before it together.

    >>> np.bincount(DoublingParts(seed=0)(0, 1024)).tolist()
    [128, 128, 256, 512]
    """

    seed: int
    n_folds: ClassVar[int] = 4
    n_held: ClassVar[int] = 0

    def __call__(self, first: int, n_rows: int) -> np.ndarray:
        """See ``RowFolds``."""
        return _PART_OF_EIGHTHS[fold_of_rows(first, n_rows, _PART_OF_EIGHTHS.size, self.seed)]


class FoldMoments:
    """K moments with the same shifts.

    Their sum is the moments of all rows, and that sum less a fold is the moments of the training set without it. One
    product of features serves all folds; n_folds = 1 is plain moments.
    """

    def __init__(
        self,
        n_folds: int,
        n_features: int,
        n_targets: int,
        shift: np.ndarray,
        target_shift: np.ndarray,
        dtype: np.dtype,
    ):
        self.shift, self.target_shift = shift, target_shift
        self.folds = [Moments(n_features, n_targets, shift, target_shift) for _ in range(n_folds)]
        self.dtype = np.dtype(dtype)
        self._product: BatchProduct | None = None
        self._collects = False
        self._fold = 0  # fold that the product belongs to
        self._rows: np.ndarray | None = None

    @property
    def parts(self) -> list[Moments]:
        """The moments of each fold, which a checkpoint saves."""
        return self.folds

    @classmethod
    def of(cls, folds: Sequence[Moments], dtype: np.dtype) -> FoldMoments:
        """Return moments with the same shifts as folds."""
        first = folds[0]
        made = cls(0, first.n_features, first.n_targets, *first.shifts, dtype)
        made.folds = list(folds)
        return made

    def fresh(self) -> FoldMoments:
        """Return empty moments with as many folds and the same shifts."""
        return FoldMoments.of([fold.fresh() for fold in self.folds], self.dtype)

    def merge(self, other: FoldMoments) -> None:
        """Add the rows of other moments, fold by fold."""
        for fold, other_fold in zip(self.folds, other.folds, strict=True):
            fold.merge(other_fold)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(fold.__sizeof__() for fold in self.folds)

    @property
    def count(self) -> float:
        """Sum of the weights of the rows in all folds; the number of rows if they have no weights."""
        return sum(fold.count for fold in self.folds)

    @property
    def n_rows(self) -> int:
        """Number of rows in all folds."""
        return sum(fold.n_rows for fold in self.folds)

    def buffer(self, n_rows: int) -> np.ndarray:
        """Return a C-contiguous array (n_rows, D) for the features of a batch, in memory that all batches share."""
        if self._rows is None or self._rows.shape[0] < n_rows:
            self._rows = np.empty((n_rows, self.folds[0].n_features), dtype=self.dtype)
        return self._rows[:n_rows]

    def add_sums(self, fold: int, square: np.ndarray, sums: np.ndarray) -> None:
        """Add sums computed elsewhere to a fold; its targets are counted separately. See ``Moments.add_sums``."""
        self.folds[fold].add_sums(square, sums)

    def add_targets(self, fold: int, Y: Targets) -> None:
        """Count targets (rows, t), less their shift, of rows whose features are added by ``add_sums``."""
        self.folds[fold].add_targets(Y)

    def add_shifted(self, fold: int, Z: np.ndarray, Y: Targets) -> None:
        """Add C-contiguous rows, already less the shifts, to a fold; see ``collecting``.

        The rows may be overwritten (``Moments.add_shifted``).
        """
        if self._product is None:
            self._product = BatchProduct(self.folds[0].n_features, self.dtype)
        if fold != self._fold or self._product.rows + Z.shape[0] > MOST_ROWS:
            self._settle()
        self._fold = fold
        self.folds[fold].add_shifted(Z, Y, self._product)
        if not self._collects:
            self._settle()

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Within the block, add the products of consecutive batches of a fold to the float64 sums together."""
        self._collects = True
        try:
            yield
        finally:
            self._collects = False
            self._settle()

    def _settle(self) -> None:
        if self._product is not None:
            self._product.move_to(self.folds[self._fold].features)

    def release_buffers(self) -> None:
        """Free the memory for batches; the next batch allocates it again."""
        self._product = self._rows = None

    def whole(self) -> Moments:
        """Return the moments of all rows: the fold itself if there is only one, otherwise a new sum."""
        if len(self.folds) == 1:
            return self.folds[0]
        total = self.folds[0].copy()
        for fold in self.folds[1:]:
            total.merge(fold)
        return total
