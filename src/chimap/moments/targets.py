"""Targets of moments, among them those of one-versus-all classification kept as the class of each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap import _blas, _loops, _threads
from chimap._types import DTypeLike
from chimap.moments.weights import of_rows


class OneVersusAll:
    """Targets (n, t) that are 1 for the class of the row and -1 for the others, kept as classes only.

    Row i is 2 e_k - 1 for its class k. The products of rows and targets are then sums of rows by class, whose cost does
    not grow with the number of classes. ``numpy.asarray`` makes the matrix. ``classes`` (n,) holds the indices of the
    classes and ``n_targets`` is t.

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
    """Targets (n, t) of rows with weights (n,), or of targets with weights (n, t). ``numpy.asarray`` drops the weights.

    With weights (n, t), sums that all targets share use the mean of the weights of each row.
    """

    plain: np.ndarray | OneVersusAll
    weights: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape (n, t)."""
        return self.plain.shape

    def __getitem__(self, rows: np.ndarray | slice) -> WeightedTargets:
        return WeightedTargets(self.plain[rows], self.weights[rows])

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.plain, dtype=dtype)


Targets = np.ndarray | OneVersusAll | WeightedTargets


def weighted(targets: Targets, weights: np.ndarray | None) -> Targets:
    """Return targets with weights (n,) for the rows or (n, t) for the entries; unchanged if ``weights`` is None."""
    return targets if weights is None else WeightedTargets(split(targets)[0], weights)


def split(targets: Targets) -> tuple[np.ndarray | OneVersusAll, np.ndarray | None]:
    """Return (targets without weights, weights or None)."""
    if isinstance(targets, WeightedTargets):
        return targets.plain, targets.weights
    return targets, None


class ClassSums:
    """The part that one-versus-all targets add to sums y z' for every class alike, kept until it is needed.

    With y = 2 e_k - 1 the product is 2 e_k z' - 1 z'. A batch adds the first term to its class at once; adding the
    second would be a pass over all classes for every batch.
    """

    def __init__(self, n_features: int):
        self.total = np.zeros(n_features)

    def add(self, Z: np.ndarray, Y: OneVersusAll, scales: np.ndarray | None, cross: np.ndarray) -> np.ndarray:
        """Add rows Z times scales (n,) (None: 1) and return their sum (D,).

        The term of the product that belongs to a single class is added to ``cross`` (t, D) float64 at once.
        """
        total = np.zeros(Z.shape[1])
        scales = np.ones(Z.shape[0], Z.dtype) if scales is None else scales
        _threads.over_rows(
            Z.shape[1],
            Z.shape[0],
            lambda columns: _loops.add_by_class(Z, Y.classes, scales, columns.start, columns.stop, cross, total),
        )
        self.total += total
        return total

    def copy(self) -> ClassSums:
        """Return an independent copy."""
        twin = ClassSums(0)
        twin.total = self.total.copy()
        return twin

    def combine(self, other: ClassSums, sign: int) -> None:
        """Add or subtract the sums of ``other``."""
        self.total += sign * other.total

    def join(self, cross: np.ndarray) -> None:
        """Add the kept part to ``cross`` (t, D) and reset it."""
        if self.total.any():
            cross -= self.total
            self.total[:] = 0


def filled(Y: np.ndarray) -> np.ndarray:
    """Return targets with missing entries (NaN) replaced by 0, the value of the provisional mean after the shift."""
    missing = np.isnan(Y)
    return np.where(missing, 0.0, Y) if missing.any() else Y


def sums_with(Z: np.ndarray, Y: np.ndarray, scales: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return (sum s z (D,), sum s y z' (t, D)) over C-contiguous rows Z (n, D), in the dtype of Z.

    Y (n, t) holds the targets and ``scales`` (n,) the factors s (None: 1). Missing entries, NaN, add nothing.
    """
    columns = np.column_stack([np.ones(Z.shape[0]), filled(Y)])
    columns = (columns if scales is None else columns * scales[:, None]).astype(Z.dtype)
    sums = np.empty((columns.shape[1], Z.shape[1]), dtype=Z.dtype)
    _blas.multiply(np.ascontiguousarray(columns.T), Z, sums)
    return sums[0], sums[1:]


def sums_of(Y: Targets) -> tuple[np.ndarray, np.ndarray]:
    """Return (sum y (t,), sum y^2 (t,)), float64, weighted by row, over the entries that are not missing."""
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
    """Return the sum of the weights of the rows; the number of rows if they have no weights."""
    _, weights = split(Y)
    return Y.shape[0] if weights is None else float(of_rows(weights).sum())
