"""Exact kernel machines, one class against the rest: what the maps are measured against, and for data that fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from chimap import _arrays
from chimap._memory import parse_memory
from chimap._threads import suited, threads
from chimap._types import ArrayLike, ClassWeight, MatrixLike, RandomState, Rows
from chimap._validation import MemoryBudgetError, check_choice, check_histograms, format_bytes, rows_as_fitted
from chimap.data.formats.frames import frame_rows
from chimap.estimators.class_targets import ClassTargets
from chimap.estimators.cost_choice import Solve, chosen_cost, folds_of, given_costs
from chimap.estimators.explaining import Explaining
from chimap.explain import contributions_of, mean_and_deviation
from chimap.features.additive.base import AdditiveMap
from chimap.features.mapped import MappedModel, mapped_model
from chimap.fit.result import HeldOutRows
from chimap.fit.weights import checked_sample_weight
from chimap.kernels import AdditiveKernel, Kernel, Linear, as_kernel
from chimap.moments import rows_by_weight
from chimap.solvers.gram import CACHE_MIB, SOLVERS
from chimap.solvers.held_out import kernel_left_out

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator
    from sklearn.utils import Tags


_BLOCK_ROWS = 1024  # of the rows to predict, whose kernel values are held together


class KernelClassifier(Explaining, ClassTargets, BaseEstimator):
    """One machine a class against the rest, f(x) = sum_i alpha_i K(x_i, x) + b, over all training rows x_i.

    The kernel matrix is computed once for all classes in float64, centred (less the means of its rows and columns: the
    intercept takes them up) and divided by its mean diagonal, so that C means the same for every kernel and for rows
    far from 0. Time and memory grow with the square of the rows: for up to ten thousand or so, and as the exact
    machine that explicit features are compared with; ``HistogramClassifier`` takes any number.

    Parameters
    ----------
    kernel, gamma : as in ``HistogramClassifier``; or "precomputed", and X is the kernel matrix: of training rows (n, n)
        in ``fit``, of new with training rows (m, n) in ``predict``.
    map : a transformer in place of the kernel: K is the dot product of its features. The machine is then the linear one
        on these features, found in the span of the training rows, which is quicker where they are fewer than the
        features; ``coef_`` are its weights.
    C : cost of an error; 1/C is the strength of the ridge. "auto" takes the most accurate of 0.1, 1, 10, 100 and 1000
        by folds, the smallest of those that tie; several numbers are chosen from likewise.
    loss : "hinge", support vector machines by LIBSVM; or "square", ridge with all classes solved at once.
    class_weight, threshold : as in ``HistogramClassifier``; C is the cost of an error in a row of weight 1.
    selection : folds that choose C, their number or a splitter of scikit-learn.
    memory : budget for the matrices.
    n_jobs : threads, which share out the classes; None and -1 are all cores.
    random_state : int, RandomState or None, of the folds.

    Learned: ``classes_``, ``dual_coef_`` (t, n) with t one for two classes, ``intercept_`` (t,), ``scale_`` (the mean
    diagonal of the centred kernel), ``C_`` (the one that was used) and ``C_scores_``, held-out accuracies by C (None
    where nothing was chosen); ``kernel_`` and ``rows_`` (training rows), or ``map_`` and ``coef_`` (t, features).

    Source: Chang and Lin, LIBSVM: a library for support vector machines (the hinge, through scikit-learn).

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> exact = KernelClassifier("chi2").fit(X[:500], y[:500])
    >>> bool(exact.score(X[500:], y[500:]) > 0.85)
    True
    """

    def __init__(
        self,
        kernel: str | Kernel = "chi2",
        *,
        gamma: float | str = "mean",
        map: AdditiveMap | None = None,
        C: str | float | Sequence[float] = "auto",
        loss: str = "hinge",
        class_weight: ClassWeight = None,
        threshold: str | float | None = None,
        selection: str | int | BaseCrossValidator = 3,
        memory: str | int = "2GiB",
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.map = map
        self.C = C
        self.loss = loss
        self.class_weight = class_weight
        self.threshold = threshold
        self.selection = selection
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit on rows X (n, bins), dense or sparse, labels y (n,) and weights (n,) of the rows; returns self.

        A row of weight 2 is two rows, one of weight 0 none.

        Raises MemoryBudgetError where the kernel matrix does not fit.
        """
        costs = given_costs(self.C)
        check_choice(self.loss, "loss", tuple(SOLVERS))
        X, y = frame_rows(X, y)
        given, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False
        )
        n_given, rows = given.shape[0], self._checked(given)
        weights = checked_sample_weight(sample_weight, n_given)
        places = np.arange(n_given) if weights is None else np.flatnonzero(weights)
        rows, labels, weights = self._counted(rows, labels, weights)
        if self._is_precomputed:
            rows = rows[:, places]
        self._learn_targets(labels)
        self._check_memory(rows.shape[0])
        for name, row in mean_and_deviation(rows).items():
            setattr(self, name, row)
        with threads(suited(self.n_jobs, rows.shape[0])):
            w = np.ones(len(labels)) if weights is None else weights
            gram, means = self._training_gram(rows, w / w.sum())
            self.scale_ = float(w @ gram.diagonal() / w.sum()) or 1.0
            gram /= self.scale_
            targets = np.asarray(self._encode(labels))
            folds = folds_of(self.selection, labels, self.random_state)
            self.C_, self.C_scores_ = chosen_cost(
                costs, self._solve, folds, gram, targets, labels, w, self.classes_
            )
            alpha, intercept = self._solve(gram, targets, w, self.C_)
            self._take_held_out(self._held_out(folds, gram, targets, labels, w, alpha))
        self.dual_coef_ = alpha.T / self.scale_
        if self._is_precomputed and len(labels) < n_given:  # rows of weight 0 have columns at prediction, too
            every = np.zeros((alpha.shape[1], n_given))
            every[:, places], column_means = self.dual_coef_, np.zeros(n_given)
            column_means[places] = means
            self.dual_coef_, means = every, column_means
        # weights of a class sum to 0, so that of the centring a constant is left
        weights = self.dual_coef_
        if self.map is not None:
            weights = self.coef_ = self.dual_coef_ @ self._features
            del self._features
        self.intercept_ = intercept - weights @ means
        return self

    def _held_out(
        self,
        folds: Any,
        gram: np.ndarray,
        targets: np.ndarray,
        y: np.ndarray,
        w: np.ndarray,
        alpha: np.ndarray,
    ) -> HeldOutRows | None:
        """Outputs of rows that are left out: of ridge each alone, of the hinge a fold."""
        if self.loss == "square":
            strength = 1 / self.C_
            inverse = np.linalg.inv(gram + np.diag(strength / w))
            return HeldOutRows(kernel_left_out(inverse.diagonal(), alpha, targets, strength, w), y, w)
        if folds is None:
            return None
        train, test = next(iter(folds.split(np.zeros(len(y)), y)))
        weights, intercept = self._solve(gram[np.ix_(train, train)], targets[train], w[train], self.C_)
        return HeldOutRows(gram[np.ix_(test, train)] @ weights + intercept, y[test], w[test])

    def _training_gram(self, rows: Rows, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The kernel matrix centred by the shares (n,) of the rows in the sum of weights, and the means that were taken
        off: of its rows, or of the features of a map. Map and kernel are fitted on rows drawn by these shares."""
        sample = rows
        if np.ptp(shares) > 0 and not self._is_precomputed:
            sample = _arrays.take_rows(rows, rows_by_weight(shares, rows.shape[0], 0))
        if self.map is not None:
            self.map_ = clone(self.map).fit(sample)
            self._features = np.array(_arrays.to_dense(self.map_.transform(rows)), dtype=np.float64)
            means = shares @ self._features
            self._features -= means
            return self._features @ self._features.T, means
        if self._is_precomputed:
            gram = np.array(rows, dtype=np.float64)
        else:
            self.kernel_: Kernel = as_kernel(self.kernel, self.gamma).fitted(sample)
            self.rows_ = rows
            gram = np.asarray(self.kernel_(rows))
        means = shares @ gram
        gram -= means
        gram -= (gram @ shares)[:, None]
        return gram, means

    @property
    def _solve(self) -> Solve:
        """What gives weights (n, t) that sum to 0, and intercepts (t,), for rows with weights w (n,)."""
        return SOLVERS[self.loss]

    def _outputs(self, X: MatrixLike) -> np.ndarray:
        """f(x) of rows X, (n, t) float64."""
        check_is_fitted(self)
        return self._outputs_of_prepared(self._checked(rows_as_fitted(self, X)))

    def _outputs_of_prepared(self, rows: Rows) -> np.ndarray:
        out = np.empty((rows.shape[0], len(self.intercept_)))
        with threads(self.n_jobs):
            for first in range(0, rows.shape[0], _BLOCK_ROWS):
                part = slice(first, first + _BLOCK_ROWS)
                out[part] = self._block_outputs(_arrays.take_rows(rows, part))
        return out + self.intercept_

    def _block_outputs(self, rows: Rows) -> np.ndarray:
        if self.map is not None:
            return self.map_.transform(rows) @ self.coef_.T
        return (rows if self._is_precomputed else self.kernel_(rows, self.rows_)) @ self.dual_coef_.T

    # --- what explanations ask

    def _refresh(self) -> None:
        check_is_fitted(self)
        if self._is_precomputed:
            raise ValueError(
                "a model of kernel='precomputed' knows no bins, so that there is none to explain by."
            )

    def _mapped_model(self) -> MappedModel | None:
        return None if self.map is None else mapped_model(self.map_, self.coef_.T, self.intercept_)

    def _prepare(self, X: Rows, first_row: int | np.ndarray, name: str) -> Rows:
        return self._checked(X)

    def _contributions(self, rows: Rows, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of an additive kernel bin by bin, by the kernel of each; of others as usual."""
        if self.map is not None or not isinstance(self.kernel_, AdditiveKernel | Linear):
            return contributions_of(self._mapped_model(), self._outputs_of_prepared, rows, reference)
        base = self._outputs_of_prepared(reference[None])[0]
        out = np.zeros((rows.shape[0], rows.shape[1], base.size))
        for i in range(rows.shape[1]):
            mine = _arrays.to_dense(_arrays.take_columns(rows, np.array([i])))
            theirs = _arrays.to_dense(_arrays.take_columns(self.rows_, np.array([i])))
            values = self.kernel_(np.vstack([mine, reference[None, i : i + 1]]), theirs) @ self.dual_coef_.T
            out[:, i] = values[:-1] - values[-1]
        return out, base

    def _kernel_values(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self.map is not None:
            return super()._kernel_values(rows)
        values = np.asarray(self.kernel_(rows, self.rows_))
        return values, self.dual_coef_.T, self._outputs_of_prepared(self.rows_)

    @property
    def _takes_signs(self) -> bool:
        return self._is_signed

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed" and self.map is None

    @property
    def _is_signed(self) -> bool:
        """Whether entries may be negative; a map checks for itself."""
        return self._is_precomputed or self.map is not None or as_kernel(self.kernel, self.gamma).is_signed

    def _checked(self, X: MatrixLike) -> Rows:
        rows = _arrays.as_rows(X, np.float64)
        check_histograms(rows, signed=self._is_signed)
        return _arrays.to_dense(rows) if self._is_precomputed else rows

    def _check_memory(self, n_rows: int) -> None:
        needed = 8.0 * n_rows**2 * 3 + CACHE_MIB * 2**20
        if needed > parse_memory(self.memory):
            raise MemoryBudgetError(
                f"memory={self.memory!r} is too small for the kernel matrix of {n_rows:,} rows: it takes "
                f"{format_bytes(needed)}. Give that much, take fewer rows, or use HistogramClassifier, whose memory "
                "does not grow with the rows."
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.positive_only = not self._is_signed
        return tags
