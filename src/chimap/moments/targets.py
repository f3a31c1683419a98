"""Targets of one-versus-all classification, kept as the class of each row, and what moments need of any targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from chimap import _blas, _loops, _threads


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

    def __getitem__(self, rows: Any) -> OneVersusAll:
        return OneVersusAll(self.classes[rows], self.shape[1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        signs = np.full(self.shape, -1.0, dtype=dtype)
        signs[np.arange(self.classes.size), self.classes] = 1.0
        return signs


Targets = np.ndarray | OneVersusAll


class ClassSums:
    """What one-versus-all targets add to sums y z' and yy' for every class alike, kept until these are asked for.

    With y = 2 e_k - 1 the products are 2 e_k z' - 1 z' and 4 e_k e_k' - 2 (e_k 1' + 1 e_k') + 1 1'. A batch adds the
    first term of each where its class is; the others would be a pass over all classes for every batch.
    """

    def __init__(self, n_features: int, n_targets: int):
        self.total = np.zeros(n_features)
        self.counts = np.zeros(n_targets)

    def add(self, Z: np.ndarray, Y: OneVersusAll, cross: np.ndarray) -> np.ndarray:
        """Add rows, and the products that are theirs alone to cross (t, D) float64; returns sum z (D,)."""
        total = np.zeros(Z.shape[1])
        _threads.over_rows(
            Z.shape[1],
            Z.shape[0],
            lambda columns: _loops.add_by_class(Z, Y.classes, columns.start, columns.stop, cross, total),
        )
        self.total += total
        self.counts += np.bincount(Y.classes, minlength=self.counts.size)
        return total

    def copy(self) -> ClassSums:
        """An independent copy."""
        twin = ClassSums(0, 0)
        twin.total, twin.counts = self.total.copy(), self.counts.copy()
        return twin

    def combine(self, other: ClassSums, sign: int) -> None:
        """Add or subtract what others keep."""
        self.total += sign * other.total
        self.counts += sign * other.counts

    def join(self, cross: np.ndarray, targets: np.ndarray) -> None:
        """Add what was kept to cross (t, D) and targets (t, t), and begin anew."""
        if self.counts.any():
            cross -= self.total
            targets += sums_of_classes(self.counts)
            self.total[:] = self.counts[:] = 0


def sums_of_classes(counts: np.ndarray) -> np.ndarray:
    """sum yy' (t, t) of so many rows of each class."""
    sums = counts.sum() - 2 * (counts[:, None] + counts)
    sums[np.diag_indices_from(sums)] += 4 * counts
    return sums


def sums_with(Z: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(sum z (D,), sum y z' (t, D)) over C-contiguous rows Z (n, D) and targets Y (n, t), in the dtype of Z."""
    columns = np.column_stack([np.ones(Z.shape[0]), Y]).astype(Z.dtype)
    sums = np.empty((columns.shape[1], Z.shape[1]), dtype=Z.dtype)
    _blas.multiply(np.ascontiguousarray(columns.T), Z, sums)
    return sums[0], sums[1:]


def sums_of(Y: Targets) -> tuple[np.ndarray, np.ndarray]:
    """(sum y (t,), sum yy' (t, t)), float64."""
    if isinstance(Y, OneVersusAll):
        counts = np.bincount(Y.classes, minlength=Y.shape[1]).astype(np.float64)
        return 2 * counts - Y.shape[0], sums_of_classes(counts)
    return Y.sum(axis=0, dtype=np.float64), Y.T.astype(np.float64) @ Y
