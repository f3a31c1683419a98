"""Targets of one-versus-all classification, kept as the class of each row, and what moments need of any targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap import _blas, _loops, _threads
from chimap._types import DTypeLike
from chimap.moments.weights import of_rows


class OneVersusAll:
    """Targets (n, t): 1 for the class of the row and -1 for the others, of which only the class is kept.

    Row i is 2 e_k - 1 for its class k. So the products of rows and targets are sums of rows by class, whose cost does
    not grow with the number of classes. ``numpy.asarray`` makes the matrix.

    classes: (n,) indices of classes. n_targets: t.

    >>> np.asarray(OneVersusAll(np.array([2, 0]), 3))
    array([[-1., -1.,  1.],
           [ 1., -1., -1.]])
    """

    def __init__(self, classes: np.ndarray, n_targets: int):
        self.classes = classes
        self.shape = (classes.size, n_targets)

    def __getitem__(self, rows: np.ndarray | slice) -> OneVersusAll:
        return OneVersusAll(self.classes[rows], self.shape[1])

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> np.ndarray:
        signs = np.full(self.shape, -1.0, dtype=dtype)
        signs[np.arange(self.classes.size), self.classes] = 1.0
        return signs


@dataclass(frozen=True, eq=False)
class WeightedTargets:
    """Targets (n, t) of rows that count as often as their weights (n,) say. ``numpy.asarray`` makes the plain ones.

    Weights (n, t) are of the targets each: what all of them share is summed with the means of the rows.
    """

    plain: np.ndarray | OneVersusAll
    weights: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, t)."""
        return self.plain.shape

    def __getitem__(self, rows: np.ndarray | slice) -> WeightedTargets:
        return WeightedTargets(self.plain[rows], self.weights[rows])

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.plain, dtype=dtype)


Targets = np.ndarray | OneVersusAll | WeightedTargets


def weighted(targets: Targets, weights: np.ndarray | None) -> Targets:
    """Targets with the weights (n,) of their rows, or (n, t) of their own; as they are where these are None."""
    return targets if weights is None else WeightedTargets(split(targets)[0], weights)


def split(targets: Targets) -> tuple[np.ndarray | OneVersusAll, np.ndarray | None]:
    """(plain targets, weights of the rows or None)."""
    if isinstance(targets, WeightedTargets):
        return targets.plain, targets.weights
    return targets, None


class ClassSums:
    """What one-versus-all targets add to sums y z' for every class alike, kept until these are asked for.

    With y = 2 e_k - 1 the product is 2 e_k z' - 1 z'. A batch adds the first term where its class is; the other would
    be a pass over all classes for every batch.
    """

    def __init__(self, n_features: int):
        self.total = np.zeros(n_features)

    def add(self, Z: np.ndarray, Y: OneVersusAll, scales: np.ndarray | None, cross: np.ndarray) -> np.ndarray:
        """Add rows times scales (n,) (None: 1), and the products that are theirs alone to cross (t, D) float64; returns
        the sum of the rows (D,)."""
        total = np.zeros(Z.shape[1])
        scales = np.ones(Z.shape[0], Z.dtype) if scales is None else scales
        _threads.over_rows(
            Z.shape[1],
            Z.shape[0],
            lambda columns: _loops.add_by_class(
                Z, Y.classes, scales, columns.start, columns.stop, cross, total
            ),
        )
        self.total += total
        return total

    def copy(self) -> ClassSums:
        """An independent copy."""
        twin = ClassSums(0)
        twin.total = self.total.copy()
        return twin

    def combine(self, other: ClassSums, sign: int) -> None:
        """Add or subtract what others keep."""
        self.total += sign * other.total

    def join(self, cross: np.ndarray) -> None:
        """Add what was kept to cross (t, D), and begin anew."""
        if self.total.any():
            cross -= self.total
            self.total[:] = 0


def filled(Y: np.ndarray) -> np.ndarray:
    """Targets with 0, the provisional mean that they are less by, for missing entries, which are NaN."""
    missing = np.isnan(Y)
    return np.where(missing, 0.0, Y) if missing.any() else Y


def sums_with(
    Z: np.ndarray, Y: np.ndarray, scales: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(sum s z (D,), sum s y z' (t, D)) over C-contiguous rows Z (n, D), targets Y (n, t) and scales s (n,) (None: 1),
    in the dtype of Z. Missing entries, NaN, add nothing."""
    columns = np.column_stack([np.ones(Z.shape[0]), filled(Y)])
    columns = (columns if scales is None else columns * scales[:, None]).astype(Z.dtype)
    sums = np.empty((columns.shape[1], Z.shape[1]), dtype=Z.dtype)
    _blas.multiply(np.ascontiguousarray(columns.T), Z, sums)
    return sums[0], sums[1:]


def sums_of(Y: Targets) -> tuple[np.ndarray, np.ndarray]:
    """(sum y (t,), sum y^2 (t,)), float64, of the entries that are there, every row as often as its weight says."""
    plain, weights = split(Y)
    if isinstance(plain, OneVersusAll):
        counts = np.bincount(plain.classes, weights, minlength=Y.shape[1]).astype(np.float64)
        total = count_of(Y)
        return 2 * counts - total, np.full(Y.shape[1], float(total))
    plain = filled(plain)
    if weights is None:
        return plain.sum(axis=0, dtype=np.float64), np.square(plain, dtype=np.float64).sum(axis=0)
    weights = of_rows(weights)
    return weights @ plain, weights @ np.square(plain, dtype=np.float64)


def count_of(Y: Targets) -> float:
    """The sum of the weights of the rows; their number where they have none."""
    _, weights = split(Y)
    return Y.shape[0] if weights is None else float(of_rows(weights).sum())
