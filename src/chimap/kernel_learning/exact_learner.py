"""Kernel ridge with learned widths on the exact kernel matrix: what classifier and regressor share."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.linalg import cho_solve
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays
from chimap._errors import InputError
from chimap._threads import suited, threads
from chimap._types import JSON, ArrayLike, Blocks, ClassWeight, MatrixLike, RandomState, Rows, Sometimes
from chimap._validation import (
    DataError,
    check_choice,
    check_histograms,
    check_positive,
    finite_outputs,
    rows_as_fitted,
    validated,
)
from chimap.data.formats.frames import frame_rows
from chimap.estimators.targets import CountedRows, Encoding
from chimap.features.fourier.widths import partition, width_groups
from chimap.fit.result import HeldOutRows
from chimap.kernels import Anisotropic, Exponential, Kernel, as_kernel
from chimap.model_files.model_file import SavedEstimator
from chimap.moments import fold_of_rows, unit_of
from chimap.selection import fold_count
from chimap.solvers.exact_widths import DualWeights, dual_ridge, exact_held_out, exact_kernel, exact_training
from chimap.solvers.held_out import kernel_left_out

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult
    from sklearn.model_selection import BaseCrossValidator
    from sklearn.utils import Tags


_REACH = np.log(1e4)  # log of the largest factor by which a width, or the strength, may leave its start


class ExactKernelModel(Encoding, SavedEstimator, BaseEstimator):
    """What classifier and regressor share; see ``ExactKernelLearner``. A model file holds the training rows."""

    n_features_in_: int
    feature_names_in_: Sometimes[np.ndarray]
    width_names_: list[str]
    width_columns_: np.ndarray
    start_widths_: np.ndarray
    widths_: np.ndarray
    alpha_: float
    objective_: float
    n_iter_: int
    n_evaluations_: int
    kernel_: Anisotropic
    history_: list[JSON]
    _kernel: Exponential
    _weights: DualWeights
    _rows: Rows

    def __init__(
        self,
        kernel: str | Kernel = "exp-chi2",
        *,
        blocks: Blocks | None = None,
        widths: str | ArrayLike = "block",
        objective: str = "held-out",
        alpha: float = 0.1,
        max_iter: int = 30,
        tol: float = 1e-4,
        selection: str | int | BaseCrossValidator = "auto",
        class_weight: ClassWeight = None,
        weights: str = "importance",
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.blocks = blocks
        self.widths = widths
        self.objective = objective
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.selection = selection
        self.class_weight = class_weight
        self.weights = weights
        self.random_state = random_state

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the widths and the weights.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, bins)
            Rows.
        y : array of shape (n,)
            Labels or targets.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        DataError
            If rows or labels are invalid.
        ValueError
            If the kernel has no widths, or blocks overlap or miss columns.
        """
        X, y = frame_rows(X, y, sample_weight=sample_weight)
        all_rows, labels = validated(self, X, y, **self._y_checks)
        self._kernel = self._checked_kernel()
        counted = self._counted(all_rows, labels, sample_weight)
        y, weights = counted.y, counted.weights
        rows = _arrays.as_rows(counted.X, np.float64)
        check_histograms(rows, signed=self._kernel.is_signed)
        self._learn_targets(y)
        Y = np.asarray(self._encode(y)) + self._target_shift()
        w = np.ones(len(Y)) if weights is None else weights
        names, blocks = partition(self.blocks, rows.shape[1])
        self.width_names_, self.width_columns_ = width_groups(self.widths, names, blocks, rows.shape[1])
        with threads(suited(None, rows.shape[0])):
            outputs = self._learn(rows, Y, w, counted)
            self._take_held_out(HeldOutRows(outputs, y, weights, counts=counted.counts))
        self._rows = rows
        self.kernel_ = Anisotropic(self._kernel, self.width_columns_, self.widths_)
        return self

    def _learn(self, rows: Rows, Y: np.ndarray, w: np.ndarray, counted: CountedRows) -> np.ndarray:
        """Learn widths and weights; return the outputs for left-out rows."""
        distances = self._distances(rows)
        # A given strength is used as it is; a search begins where it would for rows of weight 1.
        alpha = self.alpha * (1.0 if self.objective == "training" else counted.mean_weight)
        n_rows = float(w.sum()) / unit_of(w, counted.counts)
        self._search(distances, Y, w, self._start(distances, w, n_rows), alpha)
        self._weights, factor = dual_ridge(exact_kernel(distances, np.log(self.widths_)), Y, self.alpha_, w)
        inverse = cho_solve(factor, np.eye(len(Y)), check_finite=False)
        return kernel_left_out(inverse.diagonal(), self._weights.duals, Y, self.alpha_, w)

    def _refresh(self) -> None:
        check_is_fitted(self, "kernel_")

    def _outputs(self, X: MatrixLike) -> np.ndarray:
        self._refresh()
        X = rows_as_fitted(self, X)
        rows = _arrays.as_rows(X, np.float64)
        check_histograms(rows, signed=self._kernel.is_signed)
        kernel = exact_kernel(self._distances(rows, self._rows), np.log(self.widths_))
        return finite_outputs(self._weights.outputs(kernel))

    def _checked_kernel(self) -> Exponential:
        kernel = as_kernel(self.kernel)
        if not isinstance(kernel, Exponential):
            raise InputError(
                f"exact widths are learned for exponential and Gaussian kernels; got {kernel.name!r}."
            )
        check_choice(self.objective, "objective", ("held-out", "training"))
        check_positive(self.alpha, "alpha")
        check_positive(self.tol, "tol")
        check_positive(self.max_iter, "max_iter", integer=True)
        fold_count(self.selection)
        return kernel

    def _distances(self, rows: Rows, others: Rows | None = None) -> np.ndarray:
        """Return squared distances (r, n, m) in the columns of each width."""
        kernel, distances = self._kernel.kernel, []
        for j in range(len(self.width_names_)):
            columns = np.flatnonzero(self.width_columns_ == j)
            other_columns = None if others is None else _arrays.take_columns(others, columns)
            distances.append(
                np.maximum(kernel.distance(_arrays.take_columns(rows, columns), other_columns), 0)
            )
        return np.array(distances)

    def _start(self, distances: np.ndarray, w: np.ndarray, n: float) -> np.ndarray:
        """Return log widths at which the mean share of each group in the exponent is 1 / groups.

        n: number that the rows of weights w count as.
        """
        shares = w / w.sum()
        means = np.einsum("i,kij,j->k", shares, distances, shares) * n / max(1.0, n - 1)
        if n > 1 and not np.all(means > 0):
            j = int(np.flatnonzero(means <= 0)[0])
            raise DataError(
                f"block {self.width_names_[j]!r} is constant, so it has no width. Leave its columns out."
            )
        return 0.5 * np.log(2 / (np.where(means > 0, means, 1.0) * means.size))

    def _search(
        self, distances: np.ndarray, Y: np.ndarray, w: np.ndarray, start: np.ndarray, alpha: float
    ) -> None:
        n = Y.shape[0]
        total = float((w @ np.square(Y - w @ Y / w.sum())).sum()) or 1.0
        seed = int(check_random_state(self.random_state).randint(2**31))
        n_folds = min(fold_count(self.selection), n // 2)
        if self.objective == "held-out" and n_folds < 2:
            raise DataError(f"n_samples = {n} are too few to hold some out, which learning widths needs.")
        folds = fold_of_rows(0, n, max(n_folds, 1), seed)
        began = time.perf_counter()
        self.history_ = []

        def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
            if self.objective == "training":
                value, gradient = exact_training(distances, Y, x, total, w)
                # The strength is fixed: minimising the training error would drive it to zero.
                gradient[-1] = 0.0
                return value, gradient
            return exact_held_out(distances, Y, folds, x, total, w)

        def note(intermediate_result: OptimizeResult) -> None:
            x = intermediate_result.x
            step = {"iteration": len(self.history_) + 1, "objective": float(intermediate_result.fun)}
            settings = {"alpha": float(np.exp(x[-1])), "seconds": time.perf_counter() - began}
            self.history_.append(step | {"widths": np.exp(x[:-1])} | settings)

        x = np.append(start, np.log(alpha))
        end = minimize(
            objective, x, jac=True, method="L-BFGS-B", bounds=[(v - _REACH, v + _REACH) for v in x], callback=note,
            options={"maxiter": self.max_iter, "ftol": self.tol, "gtol": 1e-9},
        )  # fmt: skip
        self.start_widths_, self.widths_ = np.exp(start), np.exp(end.x[:-1])
        self.alpha_, self.objective_ = float(np.exp(end.x[-1])), float(end.fun)
        self.n_iter_, self.n_evaluations_ = max(1, int(end.nit)), int(end.nfev)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.kernel != "gaussian" and not getattr(
            self.kernel, "is_signed", False
        )
        tags.target_tags.required = True
        return tags
