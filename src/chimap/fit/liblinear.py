"""Linear support vector machines, one class against the rest, by LIBLINEAR on features in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from chimap import _arrays
from chimap.data import Source
from chimap.engines import Job
from chimap.engines.keeping import KeptFeatures
from chimap.engines.memory import KeepingJob
from chimap.features.additive.base import keeps_zeros, mapped
from chimap.solvers import LinearSolution, zero_solution

_TOLERANCE = 1e-4  # scikit-learn's
_MOST_ITERATIONS = 10_000  # over the rows
_BIAS_SCALE = (
    1.0  # of the constant feature whose weight is the intercept: penalised as the others, scikit-learn's
)
_USUAL_COST = (
    10.0  # of an error, for features of mean squared norm 1: where the search for the strength begins
)
_ROWS = 2048  # whose outputs are computed together

_SAMPLE_ERROR = 1.05  # what a sample's density may fall short of that of all rows by
_SPARSE_BELOW = 2 / 3  # density under which float64 CSR, with its columns, is the smaller


def keeping_job(job: Job, source: Source, sample: Any, features: Any) -> KeepingJob:
    """What keeping these fitted features of all rows takes, judged by a sample of prepared rows.

    They are CSR where zeros have features of zeros and that takes less: LIBLINEAR passes over zeros in any case.
    """
    density, is_sparse = 1.0, False
    if keeps_zeros(features):
        found = mapped(features, _arrays.to_sparse(sample))
        density = found.nnz / max(1, found.shape[0] * found.shape[1])
        is_sparse = source.is_sparse or density < _SPARSE_BELOW
    if is_sparse and sample.shape[0] < source.n_rows:
        density = min(1.0, _SAMPLE_ERROR * density)
    n_features = features._n_features_out
    n_stored = int((density if is_sparse else 1.0) * source.n_rows * n_features)
    return KeepingJob.of(replace(job, n_features=n_features), n_stored, is_sparse)


class HingeFitter:
    """alpha/2 (|w|^2 + b^2) + sum_r max(0, 1 - y_r (w . z_r + b)) for one target after the other.

    The targets take turns although LIBLINEAR would let threads run: all its fits draw from one random generator, so
    that fits side by side differ from run to run, and each has a copy of the features.

    Source: Hsieh, Chang, Lin, Keerthi and Sundararajan, A dual coordinate descent method for large-scale linear SVM
    (2008).
    """

    passes = 0  # over the source

    def __init__(self, kept: KeptFeatures, seed: int, on_target: Callable[[], None]):
        self.kept, self.seed = kept, seed
        self._on_target = on_target

    def usual_alpha(self) -> float:
        """Where the search begins: strengths that fit do so in units of the mean squared norm of the features."""
        values = _arrays.stored_values(self.kept.Z)
        mean_square = float(np.vdot(values, values)) / self.kept.Y.shape[0]
        return (mean_square or 1.0) / _USUAL_COST

    def start(self, alpha: float) -> LinearSolution:
        """Nothing: LIBLINEAR starts by itself."""
        return zero_solution(0, self.kept.Y.shape[1])

    def fit(
        self, alpha: float, folds: Sequence[int], start: LinearSolution, tolerance: float = _TOLERANCE
    ) -> LinearSolution:
        """The minimum over the rows of the folds, all or all but 0; tolerance is LIBLINEAR's ``tol``."""
        Z, Y = self.kept.of(self.kept.everything if 0 in folds else self.kept.learning)
        svm = LinearSVC(
            loss="hinge", C=1 / alpha, tol=tolerance, intercept_scaling=_BIAS_SCALE,
            max_iter=_MOST_ITERATIONS, random_state=self.seed,
        )  # fmt: skip
        coef, intercept = np.zeros((Z.shape[1], Y.shape[1])), np.empty(Y.shape[1])
        for t, y in enumerate(Y.T):
            if np.all(y == y[0]):  # rows of one side alone: its sign is the minimum
                intercept[t] = y[0]
            else:
                svm.fit(Z, y)
                coef[:, t], intercept[t] = svm.coef_[0], svm.intercept_[0]
            self._on_target()
        return LinearSolution(coef, intercept, alpha)

    def held_out(self, found: LinearSolution) -> float:
        """Mean of max(0, 1 - y s) over the rows of fold 0, summed over targets."""
        held, total = self.kept.held_out, 0.0
        for first in range(held.start, held.stop, _ROWS):
            Z, Y = self.kept.of(slice(first, min(first + _ROWS, held.stop)))
            total += float(np.maximum(1 - Y * (Z @ found.coef + found.intercept), 0).sum())
        return total / (held.stop - held.start)
