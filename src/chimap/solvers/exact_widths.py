"""KRR-GD: kernel ridge on the exact kernel matrix of learned widths, with the gradient in the widths.

The problem is, over the log widths and log alpha, either of

    min_{a, b}  sum_i w_i |y_i - f(x_i)|^2 + alpha |f|^2          (training)
    sum_k sum_{i in fold k} w_i |y_i - f_k(x_i)|^2                (held out, f_k ridge on the other folds)

with f = sum_j K(., x_j) a_j + b and K = exp(-sum_j s_j^2/2 D_j^2). An evaluation with its gradient costs O(n^3)
operations, for each fold when held out; memory is n^2 for each width, and a few matrices of that size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from chimap._messages import Message
from chimap._types import Shape
from chimap._validation import DataError
from chimap.model_files import register
from chimap.solvers.fold import check_fold


def exact_kernel(distances: np.ndarray, log_widths: np.ndarray) -> np.ndarray:
    """Return exp(-sum_j s_j^2/2 D_j^2) (n, m) of squared distances (r, n, m), one matrix for each group of bins."""
    return np.exp(-np.tensordot(np.exp(2 * np.asarray(log_widths)) / 2, distances, axes=1))


@dataclass(frozen=True)
class DualWeights:
    """A kernel model f(x) = sum_i a_i k(x_i, x) + b, with duals a (n, t) whose columns sum to 0, and b (t,)."""

    duals: Annotated[np.ndarray, Shape("n", "t")]
    intercept: Annotated[np.ndarray, Shape("t")]

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
            Message(
                "{alpha=:g} is too small: the kernel matrix is singular to rounding. Use a larger one.", alpha
            )
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


register(DualWeights)
