"""Targets of one-versus-all classification, kept as the class of each row, and what moments need of any targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from chimap import _arrays, _blas


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


def sums_with(Z: np.ndarray, Y: Targets) -> tuple[np.ndarray, np.ndarray]:
    """(sum z (D,), sum y z' (t, D)) over C-contiguous rows Z (n, D) and targets Y (n, t), in the dtype of Z."""
    if isinstance(Y, OneVersusAll):
        by_class = np.empty((Y.shape[1], Z.shape[1]), dtype=Z.dtype)
        order = np.argsort(Y.classes, kind="stable")
        borders = np.concatenate([[0], np.cumsum(np.bincount(Y.classes, minlength=Y.shape[1]))])
        members = _arrays.csr(np.ones(order.size, Z.dtype), order, borders, (Y.shape[1], Z.shape[0]))
        _arrays.sparse_product(members, Z, by_class)
        total = by_class.sum(axis=0)
        by_class *= 2
        by_class -= total
        return total, by_class
    columns = np.column_stack([np.ones(Z.shape[0]), Y]).astype(Z.dtype)
    sums = np.empty((columns.shape[1], Z.shape[1]), dtype=Z.dtype)
    _blas.multiply(np.ascontiguousarray(columns.T), Z, sums)
    return sums[0], sums[1:]


def sums_of(Y: Targets) -> tuple[np.ndarray, np.ndarray]:
    """(sum y (t,), sum yy' (t, t)), float64."""
    if isinstance(Y, OneVersusAll):
        counts = np.bincount(Y.classes, minlength=Y.shape[1]).astype(np.float64)
        n = float(Y.shape[0])
        # (2 e - 1)(2 e - 1)' = 4 e e' - 2 e 1' - 2 1 e' + 1 1'
        return 2 * counts - n, 4 * np.diag(counts) - 2 * (counts[:, None] + counts) + n
    return Y.sum(axis=0, dtype=np.float64), Y.T.astype(np.float64) @ Y
