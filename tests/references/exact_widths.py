"""KRR-GD: kernel ridge on the exact kernel matrix of learned widths, with the gradient in the widths.

It is the limit of ``FourierKernelLearner`` for many random features, with the same objectives and the same strength.

The problem is, over the log widths and log alpha, either of

    min_{a, b}  sum_i w_i |y_i - f(x_i)|^2 + alpha |f|^2          (training)
    sum_k sum_{i in fold k} w_i |y_i - f_k(x_i)|^2                (held out, f_k ridge on the other folds)

with f = sum_j K(., x_j) a_j + b and K = exp(-sum_j s_j^2/2 D_j^2). An evaluation with its gradient costs O(n^3)
operations, for each fold when held out; memory is n^2 for each width, and a few matrices of that size.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, RegressorMixin

from chimap import _arrays
from chimap._messages import Message
from chimap._validation import DataError, InputError, check_histograms
from chimap.features.fourier.widths import partition, width_groups
from chimap.kernels import Anisotropic, Exponential, as_kernel
from chimap.moments import fold_of_rows
from chimap.solvers.fold import check_fold


def exact_kernel(distances: np.ndarray, log_widths: np.ndarray) -> np.ndarray:
    """Return exp(-sum_j s_j^2/2 D_j^2) (n, m) of squared distances (r, n, m), one matrix for each group of bins."""
    return np.exp(-np.tensordot(np.exp(2 * np.asarray(log_widths)) / 2, distances, axes=1))


@dataclass(frozen=True)
class DualWeights:
    """A kernel model f(x) = sum_i a_i k(x_i, x) + b, with duals a (n, t) whose columns sum to 0, and b (t,)."""

    duals: np.ndarray
    intercept: np.ndarray

    def outputs(self, K: np.ndarray) -> np.ndarray:
        """Return f (m, t) of rows whose kernel with the training rows is K (m, n)."""
        return K @ self.duals + self.intercept


def dual_ridge(
    K: np.ndarray, Y: np.ndarray, alpha: float, weights: np.ndarray | None = None
) -> tuple[DualWeights, tuple[np.ndarray, bool]]:
    """Solve ridge with a free intercept on the kernel matrix K (n, n) of rows with weights w (n,) (None: 1).

    Returns the solution, and the factor of K + alpha diag(1/w) with K centred by the weights. On features of this
    kernel the solution is that of ``ridge`` at the same strength.
    """
    w = _all_of(weights, Y)
    shares = w / w.sum()
    means, mean = shares @ K, shares @ Y
    C = K - means - means[:, None] + means @ shares
    C[np.diag_indices_from(C)] += alpha / w
    try:
        factor = cho_factor(C, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        raise DataError(
            Message("{alpha=:g} is too small: the kernel matrix is singular to rounding. Use a larger one.", alpha)
        ) from None
    duals = cho_solve(factor, Y - mean, check_finite=False)
    return DualWeights(duals, mean - means @ duals), factor


def exact_training(
    distances: np.ndarray, Y: np.ndarray, x: np.ndarray, total: float, weights: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """Return ``solvers.widths.training`` on the exact kernel, and its gradient in x = [log widths, log alpha].

    At the optimal weights, their change adds nothing to the gradient: d/dK = -alpha a a'. ``weights`` (n,) are those of
    the rows, or None.

    References
    ----------
    Chapelle, Vapnik, Bousquet and Mukherjee, Choosing multiple parameters for support vector machines; Fourier kernel
    learning, sec. 4 (KRR-GD).
    """
    alpha, K = float(np.exp(x[-1])), exact_kernel(distances, x[:-1])
    w = _all_of(weights, Y)
    duals = dual_ridge(K, Y, alpha, w)[0].duals
    value = alpha * float((duals * (Y - w @ Y / w.sum())).sum())
    gradient = _in_widths(distances, K, -alpha * duals @ duals.T, x)
    # |f|^2 = a'K a = (value - alpha^2 a'diag(1/w) a) / alpha
    gradient[-1] = value - alpha**2 * float((np.square(duals) / w[:, None]).sum())
    return value / total, gradient / total


def exact_held_out(
    distances: np.ndarray,
    Y: np.ndarray,
    folds: np.ndarray,
    x: np.ndarray,
    total: float,
    weights: np.ndarray | None = None,
) -> tuple[float, np.ndarray]:
    """Return ``solvers.widths.held_out`` on the exact kernel, and its gradient in x = [log widths, log alpha].

    ``folds`` (n,) are those of the rows, ``weights`` (n,) their weights, or None. Raises DataError for a fold that
    holds no rows, or all of them.
    """
    alpha, K = float(np.exp(x[-1])), exact_kernel(distances, x[:-1])
    value, slope, M, w = 0.0, 0.0, np.zeros_like(K), _all_of(weights, Y)
    n_folds = int(folds.max()) + 1
    for k in range(n_folds):
        held, others = np.flatnonzero(folds == k), np.flatnonzero(folds != k)
        check_fold(k, n_folds, held.size, folds.size)
        inner, cross = K[np.ix_(others, others)], K[np.ix_(held, others)]
        solution, factor = dual_ridge(inner, Y[others], alpha, w[others])
        errors, shares = solution.outputs(cross) - Y[held], w[others] / w[others].sum()
        R = w[held, None] * errors
        value += float((R * errors).sum())
        g = 2 * (cross - shares @ inner).T @ R
        b = cho_solve(factor, g - shares @ g, check_finite=False)
        slope -= alpha * float((b * solution.duals / w[others, None]).sum())
        M[np.ix_(held, others)] += 2 * R @ solution.duals.T
        M[np.ix_(others, others)] -= (b + 2 * np.outer(shares, R.sum(axis=0))) @ solution.duals.T
    gradient = _in_widths(distances, K, M, x)
    gradient[-1] = slope
    return value / total, gradient / total


def _all_of(weights: np.ndarray | None, Y: np.ndarray) -> np.ndarray:
    return np.ones(Y.shape[0]) if weights is None else weights


def _in_widths(distances: np.ndarray, K: np.ndarray, M: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return [dL/d log s, 0] from M = dL/dK: dK/d log s_j = -s_j^2 D_j^2 K, entry by entry."""
    weighted = M * K
    slopes = [-float(np.vdot(weighted, D)) for D in distances]
    return np.append(np.exp(2 * x[:-1]) * slopes, 0.0)


_REACH = np.log(1e4)  # log of the largest factor by which a width, or the strength, may leave its start
_FOLDS = 5


class ExactWidths(RegressorMixin, BaseEstimator):
    """Kernel ridge with widths that L-BFGS finds, on n^2 memory per width and in n^3 time.

    The parameters are those of ``FourierKernelRegressor``. alpha: the strength from which the search starts
    ("held-out"), or that is used throughout ("training").

    References
    ----------
    Bazavan, Li and Sminchisescu, Fourier kernel learning, sec. 4, after Chapelle et al. (2002).
    """

    def __init__(
        self,
        kernel: Any = "exp-chi2",
        *,
        blocks: Any = None,
        widths: Any = "block",
        objective: str = "held-out",
        alpha: float = 0.1,
        max_iter: int = 30,
        tol: float = 1e-4,
        seed: int = 0,
    ):
        self.kernel = kernel
        self.blocks = blocks
        self.widths = widths
        self.objective = objective
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Learn the widths and the weights from rows and targets (n,) or (n, t)."""
        exponential = as_kernel(self.kernel)
        if not isinstance(exponential, Exponential):
            raise InputError(
                f"exact widths are learned for exponential and Gaussian kernels; got {exponential.name!r}."
            )
        self.rows_ = _arrays.as_rows(X, np.float64)
        check_histograms(self.rows_, signed=exponential.is_signed)
        names, blocks = partition(self.blocks, self.rows_.shape[1])
        self.width_names_, self.width_columns_ = width_groups(self.widths, names, blocks, self.rows_.shape[1])
        self._metric = exponential.kernel
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        distances = self._distances(self.rows_)
        self._search(distances, Y)
        K = exact_kernel(distances, np.log(self.widths_))
        self.weights_ = dual_ridge(K, Y, self.alpha_)[0]
        self.kernel_ = Anisotropic(exponential, self.width_columns_, self.widths_)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return outputs (n,), or (n, t) for several targets."""
        distances = self._distances(_arrays.as_rows(X, np.float64), self.rows_)
        outputs = self.weights_.outputs(exact_kernel(distances, np.log(self.widths_)))
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def _distances(self, rows: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
        """Return squared distances (r, n, m) in the columns of each width."""
        distances = []
        for j in range(len(self.width_names_)):
            columns = np.flatnonzero(self.width_columns_ == j)
            theirs = None if others is None else others[:, columns]
            distances.append(np.maximum(self._metric.distance(rows[:, columns], theirs), 0))
        return np.array(distances)

    def _start(self, distances: np.ndarray) -> np.ndarray:
        """Return log widths at which the mean share of each group in the exponent is 1 / groups."""
        n = distances.shape[1]
        means = distances.sum(axis=(1, 2)) / max(1, n * (n - 1))
        if n > 1 and not np.all(means > 0):
            j = int(np.flatnonzero(means <= 0)[0])
            raise DataError(f"block {self.width_names_[j]!r} is constant, so it has no width. Leave its columns out.")
        return 0.5 * np.log(2 / (np.where(means > 0, means, 1.0) * means.size))

    def _search(self, distances: np.ndarray, Y: np.ndarray) -> None:
        n, total = Y.shape[0], float(np.square(Y - Y.mean(axis=0)).sum()) or 1.0
        if self.objective == "held-out" and n < 4:
            raise DataError(f"n_samples = {n} are too few to hold some out, which learning widths needs.")
        folds = fold_of_rows(0, n, min(_FOLDS, n // 2), self.seed)
        start, began = self._start(distances), time.perf_counter()
        self.history_: list[dict[str, Any]] = []

        def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
            if self.objective == "held-out":
                return exact_held_out(distances, Y, folds, x, total)
            value, gradient = exact_training(distances, Y, x, total)
            gradient[-1] = 0.0  # the strength is fixed: minimising the training error would drive it to zero
            return value, gradient

        def note(intermediate_result: Any) -> None:
            step = {"objective": float(intermediate_result.fun), "seconds": time.perf_counter() - began}
            self.history_.append(step | {"widths": np.exp(intermediate_result.x[:-1])})

        x = np.append(start, np.log(self.alpha))
        bounds = [(v - _REACH, v + _REACH) for v in x]
        options = {"maxiter": self.max_iter, "ftol": self.tol, "gtol": 1e-9}
        end = minimize(objective, x, jac=True, method="L-BFGS-B", bounds=bounds, callback=note, options=options)
        self.start_widths_, self.widths_ = np.exp(start), np.exp(end.x[:-1])
        self.alpha_, self.n_evaluations_ = float(np.exp(end.x[-1])), int(end.nfev)
