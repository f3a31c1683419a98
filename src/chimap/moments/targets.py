"""Targets of moments and weights of rows; one-versus-all targets are kept as the class of each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap import _blas, _loops, _threads
from chimap._types import DTypeLike


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Weights (n,) of the rows of a source from row ``first`` on, or (n, t) of their targets; None if all are 1.

    Like the folds of rows (``RowFolds``), a weight depends only on the place of the row, not on the chunk that holds
    it.

    >>> RowWeights(np.array([2.0, 1.0, 3.0]), first=10)(11, 2)
    array([1., 3.])
    """

    values: np.ndarray | None = None
    first: int = 0

    def __call__(self, first: int, n_rows: int) -> np.ndarray | None:
        """Return the weights (n_rows,) or (n_rows, t) of the rows from ``first`` on, or None."""
        if self.values is None:
            return None
        return self.values[first - self.first : first - self.first + n_rows]


def of_rows(weights: np.ndarray) -> np.ndarray:
    """Return weights (n,) of the rows: unchanged, or the means over targets of weights (n, t).

    >>> of_rows(np.array([[1.0, 3.0], [2.0, 2.0]]))
    array([2., 2.])
    """
    return weights if weights.ndim == 1 else weights.mean(axis=1)


def of_entries(weights: np.ndarray) -> np.ndarray:
    """Return weights as a matrix (n, 1) or (n, t), which multiplies targets (n, t)."""
    return weights if weights.ndim == 2 else weights[:, None]


def rows_by_weight(weights: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Return ascending places (n,) of rows drawn in proportion to their weights (N,), some of them several times.

    A single random number places n equal steps along the sum of the weights, so a row appears n times its share of the
    weights, rounded up or down. A model of the sample then respects the weights: n equal weights give every row once.

    References
    ----------
    Kitagawa, Monte Carlo filter and smoother for non-Gaussian nonlinear state space models (1996), for the resampling.

    >>> rows_by_weight(np.array([1.0, 0.5, 2.5]), 8, seed=0)
    array([0, 0, 1, 2, 2, 2, 2, 2])
    """
    ends = np.cumsum(weights, dtype=np.float64)
    steps = (np.random.default_rng(seed).random() + np.arange(n)) * (ends[-1] / n)
    return np.minimum(np.searchsorted(ends, steps, side="right"), weights.size - 1)


def unit_of(weights: np.ndarray | None, counts: np.ndarray | None = None) -> float:
    """Return the weight that counts as one row, so that weights count as (sum w)^2 / sum (w^2 / c) rows in all.

    Weights say how much rows matter: with equal weights it is that weight, and n rows count as n rows; the more weights
    differ, the fewer rows they count as. A row that stands for c equal rows (``counts``, (n,)) counts as these. None is
    1 for all.

    References
    ----------
    Kish, Survey sampling (1965), sec. 8.2, for the effective number of rows.

    >>> equal, unequal = np.array([2.0, 2.0]), np.array([1.0, 3.0])
    >>> unit_of(equal), unit_of(unequal), unit_of(unequal, counts=unequal)
    (2.0, 2.5, 1.0)
    """
    if weights is None:
        return 1.0
    w = of_rows(weights)
    return float((np.square(w) if counts is None else np.square(w) / counts).sum() / w.sum())


def as_counts(weights: np.ndarray, counts: np.ndarray | None = None, groups: np.ndarray | None = None) -> np.ndarray:
    """Return weights (n,) of rows, scaled so that their sum is the number of independent rows, or of groups.

    That number is (sum w)^2 / sum (w^2 / c), see ``unit_of``. Rows of a group are not independent: with ``groups`` (n,)
    it is (sum w)^2 / sum_g (sum of w in g)^2, the number of groups where all have the same weight. Weights (n, t) of
    targets are scaled for each target.

    >>> as_counts(np.array([2.0, 2.0])), as_counts(np.array([5.0, 5.0, 5.0, 5.0]), groups=np.array([0, 0, 1, 1]))
    (array([1., 1.]), array([0.5, 0.5, 0.5, 0.5]))
    """
    if weights.ndim == 2:
        return np.column_stack([as_counts(column, counts, groups) for column in weights.T])
    total = weights.sum()
    if not total:
        return weights
    if groups is not None:
        _, places = np.unique(groups, return_inverse=True)
        return np.asarray(weights * (total / np.square(np.bincount(places, weights)).sum()))
    return np.asarray(weights / unit_of(weights, counts))


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


def add_by_class(
    Z: np.ndarray, Y: OneVersusAll, scales: np.ndarray | None, cross: np.ndarray, waiting: np.ndarray
) -> np.ndarray:
    """Add sums s y z' over rows Z and their scales s (n,) (None: 1), and return the sum of s z, (D,).

    With y = 2 e_k - 1 the product is 2 e_k z' - 1 z'. The first term is added to the row of its class in ``cross``
    (t, D), float64. The second, which all classes share, would be a pass over all of them for every batch: the sum of
    s z is added to ``waiting`` (D,), which is to be subtracted from all rows.
    """
    total = np.zeros(Z.shape[1])
    scales = np.ones(Z.shape[0], Z.dtype) if scales is None else scales
    _threads.over_rows(
        Z.shape[1],
        Z.shape[0],
        lambda columns: _loops.add_by_class(Z, Y.classes, scales, columns.start, columns.stop, cross, total),
    )
    waiting += total
    return total


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
