"""KRR-GD: kernel ridge on the exact kernel matrix, with gradients in its widths. Memory n^2 a width, time n^3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from chimap._validation import DataError


def exact_kernel(distances: np.ndarray, log_widths: np.ndarray) -> np.ndarray:
    """exp(-sum_j s_j^2/2 D_j^2) of squared distances (r, n, m) in each group of bins, (n, m)."""
    return np.exp(-np.tensordot(np.exp(2 * np.asarray(log_widths)) / 2, distances, axes=1))


@dataclass(frozen=True)
class DualWeights:
    """f(x) = sum_i a_i k(x_i, x) + b; duals a (n, t) with columns that sum to 0, b (t,)."""

    duals: np.ndarray
    intercept: np.ndarray

    def outputs(self, K: np.ndarray) -> np.ndarray:
        """f (m, t) of rows whose kernel with the training rows is K (m, n)."""
        return K @ self.duals + self.intercept


def dual_ridge(K: np.ndarray, Y: np.ndarray, alpha: float) -> tuple[DualWeights, tuple[np.ndarray, bool]]:
    """Ridge with a free intercept on the kernel matrix K (n, n), and the factor of its centred matrix.

    With features of this kernel it is ``ridge`` at the same strength.
    """
    means = K.mean(axis=0)
    C = K - means - means[:, None] + means.mean()
    C[np.diag_indices_from(C)] += alpha
    factor = cho_factor(C, lower=True, overwrite_a=True, check_finite=False)
    duals = cho_solve(factor, Y - Y.mean(axis=0), check_finite=False)
    return DualWeights(duals, Y.mean(axis=0) - means @ duals), factor


def exact_training(
    distances: np.ndarray, Y: np.ndarray, x: np.ndarray, total: float
) -> tuple[float, np.ndarray]:
    """``solvers.widths.training`` on the exact kernel, and its gradient in x = [log widths, log strength].

    At the optimal weights their change counts nothing: d/dK = -alpha a a'.
    Source: Chapelle, Vapnik, Bousquet and Mukherjee, Choosing multiple parameters for support vector machines; Fourier
    kernel learning, sec. 4 (KRR-GD).
    """
    alpha, K = float(np.exp(x[-1])), exact_kernel(distances, x[:-1])
    weights, _ = dual_ridge(K, Y, alpha)
    value = alpha * float((weights.duals * (Y - Y.mean(axis=0))).sum())
    gradient = _in_widths(distances, K, -alpha * weights.duals @ weights.duals.T, x)
    # |w|^2 = a'K a = (value - alpha^2 |a|^2) / alpha
    gradient[-1] = value - alpha**2 * float(np.square(weights.duals).sum())
    return value / total, gradient / total


def exact_held_out(
    distances: np.ndarray, Y: np.ndarray, folds: np.ndarray, x: np.ndarray, total: float
) -> tuple[float, np.ndarray]:
    """``solvers.widths.held_out`` on the exact kernel, and its gradient in x = [log widths, log strength].

    folds: (n,). Raises DataError for a fold without rows or one that leaves none.
    """
    alpha, K = float(np.exp(x[-1])), exact_kernel(distances, x[:-1])
    value, slope, M = 0.0, 0.0, np.zeros_like(K)
    for k in range(int(folds.max()) + 1):
        own, rest = np.flatnonzero(folds == k), np.flatnonzero(folds != k)
        if not (own.size and rest.size):
            raise DataError(
                f"fold {k} holds {own.size} of {folds.size} rows: too few to hold out. Use fewer folds."
            )
        inner, cross = K[np.ix_(rest, rest)], K[np.ix_(own, rest)]
        weights, factor = dual_ridge(inner, Y[rest], alpha)
        R = weights.outputs(cross) - Y[own]
        value += float(np.square(R).sum())
        g = 2 * (cross - inner.mean(axis=0)).T @ R
        b = cho_solve(factor, g - g.mean(axis=0), check_finite=False)
        slope -= alpha * float((b * weights.duals).sum())
        M[np.ix_(own, rest)] += 2 * R @ weights.duals.T
        M[np.ix_(rest, rest)] -= (b + 2 * R.sum(axis=0) / rest.size) @ weights.duals.T
    gradient = _in_widths(distances, K, M, x)
    gradient[-1] = slope
    return value / total, gradient / total


def _in_widths(distances: np.ndarray, K: np.ndarray, M: np.ndarray, x: np.ndarray) -> np.ndarray:
    """[dL/d log s, 0] from M = dL/dK: dK/d log s_j = -s_j^2 D_j^2 K, entry by entry."""
    weighted = M * K
    slopes = [-float(np.vdot(weighted, D)) for D in distances]
    return np.append(np.exp(2 * x[:-1]) * slopes, 0.0)
