"""Exact kernel machines, one class against the rest: what the maps are measured against, and for data that fit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted, validate_data

from chimap import _arrays, _threads
from chimap._threads import threads
from chimap._validation import (
    MemoryBudgetError,
    check_choice,
    check_histograms,
    check_positive,
    format_bytes,
    parse_memory,
)
from chimap.estimators.targets import ClassTargets
from chimap.kernels import Kernel, as_kernel

LOSSES = ("hinge", "square")
_BLOCK_ROWS = 1024  # of the rows to predict, whose kernel values are held together
_CACHE_MIB = 100  # of LIBSVM, a thread


class KernelClassifier(ClassTargets, BaseEstimator):
    """One machine a class against the rest, f(x) = sum_i alpha_i K(x_i, x) + b, over all training rows x_i.

    The kernel matrix is computed once for all classes and divided by its mean diagonal, so that C means the same for
    every kernel. Time and memory grow with the square of the rows: for up to ten thousand or so, and as the exact
    machine that explicit features are compared with; ``HistogramClassifier`` takes any number.

    Parameters
    ----------
    kernel, gamma : as in ``HistogramClassifier``; or "precomputed", and X is the kernel matrix: of training rows (n, n)
        in ``fit``, of new with training rows (m, n) in ``predict``.
    map : a transformer in place of the kernel: K is the dot product of its features. The machine is then the linear one
        on these features, found in the span of the training rows, which is quicker where they are fewer than the
        features; ``coef_`` are its weights.
    C : cost of an error; 1/C is the strength of the ridge.
    loss : "hinge", support vector machines by LIBSVM; or "square", ridge with all classes solved at once.
    memory : budget for the matrices.
    n_jobs : threads, which share out the classes; None and -1 are all cores.

    Learned: ``classes_``, ``dual_coef_`` (t, n) with t one for two classes, ``intercept_`` (t,), ``scale_`` (the mean
    diagonal); ``kernel_`` and ``rows_`` (training rows), or ``map_`` and ``coef_`` (t, features).

    Source: Chang and Lin, LIBSVM: a library for support vector machines (the hinge, through scikit-learn).

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> exact = KernelClassifier("chi2").fit(X[:500], y[:500])
    >>> bool(exact.score(X[500:], y[500:]) > 0.85)
    True
    """

    def __init__(
        self,
        kernel: Any = "chi2",
        *,
        gamma: Any = "mean",
        map: Any = None,
        C: float = 10.0,
        loss: str = "hinge",
        memory: str | int = "2GiB",
        n_jobs: int | None = None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.map = map
        self.C = C
        self.loss = loss
        self.memory = memory
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on rows X (n, bins), dense or sparse, and labels y (n,); returns self.

        Raises MemoryBudgetError where the kernel matrix does not fit.
        """
        check_positive(self.C, "C")
        check_choice(self.loss, "loss", LOSSES)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
        self._learn_targets(y)
        rows = self._checked(X)
        self._check_memory(rows.shape[0])
        with threads(self.n_jobs):
            gram = self._training_gram(rows)
            self.scale_ = float(np.trace(gram)) / len(gram) or 1.0
            gram /= self.scale_
            solve = self._support_vectors if self.loss == "hinge" else self._ridge
            alpha, self.intercept_ = solve(gram, np.asarray(self._encode(y)))
        self.dual_coef_ = alpha.T / self.scale_
        if self.map is not None:
            self.coef_ = self.dual_coef_ @ self._features
            del self._features
        return self

    def _training_gram(self, rows: Any) -> np.ndarray:
        if self.map is not None:
            self.map_ = clone(self.map)
            self._features = _arrays.to_dense(self.map_.fit_transform(rows))
            return np.asarray(self._features @ self._features.T, dtype=np.float64)
        if self._is_precomputed:
            return np.array(rows, dtype=np.float64)
        self.kernel_: Kernel = as_kernel(self.kernel, self.gamma).fitted(rows)
        self.rows_ = rows
        return np.asarray(self.kernel_(rows), dtype=np.float64)

    def _support_vectors(self, gram: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        alpha, intercept = np.zeros(targets.shape), np.zeros(targets.shape[1])

        def solve(t: int) -> None:
            machine = SVC(kernel="precomputed", C=self.C, cache_size=_CACHE_MIB).fit(gram, targets[:, t])
            alpha[machine.support_, t], intercept[t] = machine.dual_coef_[0], machine.intercept_[0]

        with ThreadPoolExecutor(_threads.count()) as pool:
            list(pool.map(solve, range(targets.shape[1])))
        return alpha, intercept

    def _ridge(self, gram: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The minimum of 1/(2C) alpha' K alpha + 1/2 |K alpha + b - y|^2, with b free: (K + I/C) alpha = y - b and
        sum alpha = 0."""
        from scipy.linalg import solve

        ridged = gram + np.eye(len(gram)) / self.C
        found = solve(ridged, np.column_stack([targets, np.ones(len(gram))]), assume_a="pos")
        ones = found[:, -1]
        intercept = found[:, :-1].sum(axis=0) / ones.sum()
        return found[:, :-1] - np.outer(ones, intercept), intercept

    def _outputs(self, X: Any) -> np.ndarray:
        """f(x) of rows X, (n, t) float64."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
        rows = self._checked(X)
        out = np.empty((rows.shape[0], len(self.intercept_)))
        with threads(self.n_jobs):
            for first in range(0, rows.shape[0], _BLOCK_ROWS):
                part = slice(first, first + _BLOCK_ROWS)
                out[part] = self._block_outputs(_arrays.take_rows(rows, part))
        return out + self.intercept_

    def _block_outputs(self, rows: Any) -> Any:
        if self.map is not None:
            return self.map_.transform(rows) @ self.coef_.T
        return (rows if self._is_precomputed else self.kernel_(rows, self.rows_)) @ self.dual_coef_.T

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed" and self.map is None

    @property
    def _is_signed(self) -> bool:
        """Whether entries may be negative; a map checks for itself."""
        return self._is_precomputed or self.map is not None or as_kernel(self.kernel, self.gamma).is_signed

    def _checked(self, X: Any) -> Any:
        rows = _arrays.as_rows(X)
        check_histograms(rows, signed=self._is_signed)
        return _arrays.to_dense(rows) if self._is_precomputed else rows

    def _check_memory(self, n_rows: int) -> None:
        needed = 8.0 * n_rows**2 * 3 + _CACHE_MIB * 2**20
        if needed > parse_memory(self.memory):
            raise MemoryBudgetError(
                f"memory={self.memory!r} is too small for the kernel matrix of {n_rows:,} rows: it takes "
                f"{format_bytes(needed)}. Give that much, take fewer rows, or use HistogramClassifier, whose memory "
                "does not grow with the rows."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.positive_only = not self._is_signed
        return tags
