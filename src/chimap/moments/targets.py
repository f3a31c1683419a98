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
    """What one-versus-all targets add to sums y z' for every class alike, kept until these are asked for.

    With y = 2 e_k - 1 the product is 2 e_k z' - 1 z'. A batch adds the first term where its class is; the other would
    be a pass over all classes for every batch.
    """

    def __init__(self, n_features: int):
        self.total = np.zeros(n_features)

    def add(self, Z: np.ndarray, Y: OneVersusAll, cross: np.ndarray) -> np.ndarray:
        """Add rows, and the products that are theirs alone to cross (t, D) float64; returns sum z (D,)."""
        total = np.zeros(Z.shape[1])
        _threads.over_rows(
            Z.shape[1],
            Z.shape[0],
            lambda columns: _loops.add_by_class(Z, Y.classes, columns.start, columns.stop, cross, total),
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


def sums_with(Z: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(sum z (D,), sum y z' (t, D)) over C-contiguous rows Z (n, D) and targets Y (n, t), in the dtype of Z."""
    columns = np.column_stack([np.ones(Z.shape[0]), Y]).astype(Z.dtype)
    sums = np.empty((columns.shape[1], Z.shape[1]), dtype=Z.dtype)
    _blas.multiply(np.ascontiguousarray(columns.T), Z, sums)
    return sums[0], sums[1:]


def sums_of(Y: Targets) -> tuple[np.ndarray, np.ndarray]:
    """(sum y (t,), sum y^2 (t,)), float64."""
    if isinstance(Y, OneVersusAll):
        counts = np.bincount(Y.classes, minlength=Y.shape[1]).astype(np.float64)
        return 2 * counts - Y.shape[0], np.full(Y.shape[1], float(Y.shape[0]))
    return Y.sum(axis=0, dtype=np.float64), np.square(Y, dtype=np.float64).sum(axis=0)
