"""Ridge on any features, its strength by folds, the way the estimators of the package do it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpstrf

from chimap import _arrays
from chimap._validation import DataError, MemoryBudgetError, format_bytes
from chimap.backends.host import HOST
from chimap.engines import Job, Stopwatch, chunk_rows_within
from chimap.engines.local import Pass
from chimap.fit.passes import empty_moments
from chimap.moments import DealtFolds
from chimap.report import classification_metrics, regression_metrics
from chimap.report.comparison import Score
from chimap.selection import choose_alpha
from chimap.solvers import ridge

N_FOLDS = 5
_BLOCK = 2048  # rows, or columns, that are dense float64 at a time
_SURE = 1.959964  # standard deviations to the end of a 95 % interval


@dataclass(frozen=True)
class Targets:
    """Labels as the ridge takes them: -1 and 1 a class (one column for two classes), or the numbers themselves.

    classes: None for a regression. Raises DataError for one class.
    """

    classes: np.ndarray | None

    @classmethod
    def of(cls, y: np.ndarray, task: str) -> Targets:
        """Those of the labels to learn from; task is "classify" or "regress"."""
        if task == "regress":
            return cls(None)
        classes = np.unique(y)
        if classes.size < 2:
            raise DataError(
                f"one class only: all labels to learn from are {classes.tolist()[0]!r}. A comparison of classifiers "
                "needs two classes at least; check the labels."
            )
        return cls(classes)

    @property
    def count(self) -> int:
        """Columns."""
        return 1 if self.classes is None or self.classes.size == 2 else self.classes.size

    def encode(self, y: np.ndarray) -> np.ndarray:
        """(n, count) float64."""
        if self.classes is None:
            return np.asarray(y, np.float64)[:, None]
        wanted = self.classes[1:] if self.classes.size == 2 else self.classes
        return np.where(y[:, None] == wanted, 1.0, -1.0)

    def decode(self, outputs: np.ndarray) -> np.ndarray:
        """Labels, or numbers, (n,)."""
        if self.classes is None:
            return outputs[:, 0]
        best = outputs[:, 0] > 0 if self.classes.size == 2 else np.argmax(outputs, axis=1)
        return self.classes[np.asarray(best, np.intp)]

    def score(self, y: np.ndarray, predicted: np.ndarray) -> Score:
        """Accuracy or R2 with its 95 % interval and its standard error."""
        if self.classes is None:
            metrics = regression_metrics(y, predicted)
            return Score(metrics.r2, metrics.r2_interval, (metrics.r2 - metrics.r2_interval[0]) / _SURE)
        found = classification_metrics(y, predicted)
        p = found.accuracy
        return Score(p, found.interval, float(np.sqrt(p * (1 - p) / found.n_rows)))


class Learned(NamedTuple):
    """Linear outputs on the test rows (n, t), the seconds that learning took, and what was solved."""

    outputs: np.ndarray
    seconds: float
    solved: str


class RawRows:
    """The rows themselves as features: what a linear model on the bins sees."""

    def transform(self, X: Any) -> Any:
        """X."""
        return X


def learn(features: Any, train: Any, Y: np.ndarray, test: Any, seed: int, memory: int) -> Learned:
    """Ridge with intercept on fitted ``features`` of train, with targets Y (n, t); outputs on test.

    From moments, as the estimators do; where there are more features than rows, from the Gram matrix of the features,
    which gives the same weights at a cost that does not grow with the features. Raises MemoryBudgetError where
    neither fits into ``memory`` bytes.
    """
    began = time.perf_counter()
    n_features = features.transform(_arrays.take_rows(train, slice(1))).shape[1]
    if n_features <= train.shape[0]:
        coef, intercept = _by_moments(features, n_features, train, Y, seed, memory)
        seconds = time.perf_counter() - began
        parts = [_arrays.take_rows(test, slice(i, i + _BLOCK)) for i in range(0, test.shape[0], _BLOCK)]
        outputs = [features.transform(part) @ coef.astype(test.dtype) + intercept for part in parts]
        return Learned(np.concatenate(outputs), seconds, "moments")
    _check_gram_memory(features, n_features, train, test, memory)
    inner, rotated = _rotated(features.transform(train), features.transform(test))
    coef, intercept = _by_moments(RawRows(), inner.shape[1], inner, Y, seed, memory)
    return Learned(rotated @ coef + intercept, time.perf_counter() - began, "Gram matrix")


def _by_moments(
    features: Any, n_features: int, rows: Any, Y: np.ndarray, seed: int, memory: int
) -> tuple[np.ndarray, np.ndarray]:
    """Weights (D, t) and intercepts (t,) at the strength with the smallest held-out error."""
    into = features if hasattr(features, "features_into") else _Into(features, n_features)
    row_bytes = rows.dtype.itemsize * rows.shape[1]
    job = Job(n_features, Y.shape[1], N_FOLDS, 0, 0, row_bytes, row_bytes, rows.dtype.itemsize)
    chunk_rows = chunk_rows_within(job, memory)
    moments = empty_moments(into, rows, N_FOLDS, Y.mean(axis=0), rows.dtype)
    encode = lambda y: y - moments.target_shift  # noqa: E731
    adding = Pass(
        lambda X, first, name: X, encode, HOST.sums(into, moments), DealtFolds(N_FOLDS, seed), Stopwatch()
    )
    for start in range(0, rows.shape[0], chunk_rows):
        part = slice(start, start + chunk_rows)
        adding.add(_arrays.take_rows(rows, part), Y[part], start, "rows")
    moments.release_buffers()
    whole = moments.whole()
    found = ridge(whole, choose_alpha(moments, whole, "auto").best["alpha"])
    return found.coef, found.intercept


class _Into:
    """A transformer as the pass over the rows takes it."""

    def __init__(self, features: Any, n_features: int):
        self._features, self._n_features_out = features, n_features

    def features_into(self, rows: Any, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        out[:] = _arrays.to_dense(self._features.transform(rows))
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)


def _check_gram_memory(features: Any, n_features: int, train: Any, test: Any, memory: int) -> None:
    n, m = train.shape[0], test.shape[0]
    sample = features.transform(_arrays.take_rows(train, slice(100)))
    row = stored_bytes(sample) / sample.shape[0]
    needed = int((n + m) * (row + 8 * (_BLOCK + 2 * n)))
    if needed > memory:
        raise MemoryBudgetError(
            f"memory={format_bytes(memory)} is too small: {n_features} features of {n} rows need "
            f"{format_bytes(needed)}. Give more, or fewer rows."
        )


def stored_bytes(Z: Any) -> int:
    """Bytes of the arrays of dense or CSR features."""
    return Z.data.nbytes + Z.indices.nbytes + Z.indptr.nbytes if _arrays.is_sparse(Z) else Z.nbytes


def _rotated(train: Any, test: Any) -> tuple[np.ndarray, np.ndarray]:
    """Features of as many columns as train has independent rows, with the dot products of the centred ones given.

    G = L L' with pivots (LAPACK's pstrf), so that rows of L are the training rows turned about the origin, and a test
    row with products g to the pivots is L1^-1 g. Ridge weights lie in the span of the training rows, so any ridge
    on these, each fold of it too, has the outputs of the one on the features themselves.
    """
    n = train.shape[0]
    gram, cross = np.zeros((n, n), order="F"), np.zeros((test.shape[0], n))
    for first in range(0, train.shape[1], _BLOCK):
        columns = slice(first, first + _BLOCK)
        left, right = (_arrays.to_dense(Z[:, columns]).astype(np.float64) for Z in (train, test))
        middle = left.mean(axis=0)
        left -= middle
        right -= middle
        gram = dsyrk(1.0, left.T, beta=1.0, c=gram, trans=1, lower=1, overwrite_c=1)
        cross += right @ left.T
    factor, pivots, rank, _ = dpstrf(gram, lower=1, overwrite_a=1)
    if rank == 0:
        raise DataError("all rows have the same features: there is nothing to learn from.")
    order = pivots - 1
    inner = np.zeros((n, rank))
    inner[order] = np.tril(factor)[:, :rank]
    turned = solve_triangular(factor[:rank, :rank], cross[:, order[:rank]].T, lower=True, check_finite=False)
    return inner, np.ascontiguousarray(turned.T)
