"""What widths of a kernel are worth, from moments of its features: training and held-out error, and their slopes.

The weights are in closed form (ridge), so that the objective is a function of the features alone. Its derivative in the
features of a row is a combination of a few columns: the weights and, where they were not fitted to the error that is
measured, the solution of one more system with the same matrix (the adjoint). What follows from a change of the features
through the weights costs one solve a fold; nothing is differentiated entry by entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from chimap import _blas
from chimap._validation import DataError
from chimap.moments import FoldMoments, Moments
from chimap.solvers.fold import Fold
from chimap.solvers.ridge import Factor


class FeatureSlopes(Protocol):
    """dL/dz of rows z, for an objective L."""

    def of(self, Z: np.ndarray, Y: np.ndarray, folds: np.ndarray) -> np.ndarray:
        """(n, D), in the dtype of Z, of C-contiguous rows with targets (n, t) and folds (n,)."""
        ...


@dataclass(frozen=True)
class RowSlopes:
    """dL/dz of rows z (n, D), for L the sum over folds k of an error of f_k(z) = w_k'(z - mean_k) + target mean_k.

    Row z with target y has e_k = y - f_k(z). It counts -2 w_f e_f in the error of its own fold f, which f_k was not
    fitted to, and a_k e_k - w_k (a_k'(z - mean_k) + pull_k) in that of every other fold, a_k the adjoint.

    columns: [w_1 .. w_K, a_1 .. a_K] (D, 2 K t). offsets: columns' mean_k (2 K t,). target_means, pulls: (K, t).
    """

    columns: np.ndarray
    offsets: np.ndarray
    target_means: np.ndarray
    pulls: np.ndarray
    scale: float

    def of(self, Z: np.ndarray, Y: np.ndarray, folds: np.ndarray) -> np.ndarray:
        """dL/dz (n, D), in the dtype of Z, of C-contiguous rows with targets (n, t) and folds (n,)."""
        K, t = self.target_means.shape
        C = np.ascontiguousarray(self.columns, dtype=Z.dtype)
        S = np.empty((Z.shape[0], C.shape[1]), dtype=Z.dtype)
        _blas.multiply(np.ascontiguousarray(Z), C, S)
        S -= self.offsets.astype(Z.dtype)
        scores, adjoint = S.reshape(-1, 2, K, t).transpose(1, 0, 2, 3)
        errors = Y[:, None, :] - self.target_means - scores
        own = np.arange(Z.shape[0]), folds
        weights = -adjoint - self.pulls
        weights[own] = -2 * errors[own]
        errors[own] = 0
        shares = np.stack([weights, errors], axis=1).reshape(S.shape) * self.scale
        out = np.empty(Z.shape, dtype=Z.dtype)
        _blas.multiply(np.ascontiguousarray(shares, dtype=Z.dtype), C, out, transpose=True)
        return out


@dataclass(frozen=True)
class TrainingSlopes:
    """dL/dz = -2 w e of rows z, for L the training error of ridge: its weights are optimal, so that a change of the
    features through them counts nothing (the envelope theorem).

    weights: (D, t). offset: w'mean - target mean, (t,).
    """

    weights: np.ndarray
    offset: np.ndarray
    scale: float

    def of(self, Z: np.ndarray, Y: np.ndarray, folds: np.ndarray) -> np.ndarray:
        """As ``RowSlopes.of``; the folds do not matter."""
        W = np.ascontiguousarray(self.weights, dtype=Z.dtype)
        S = np.empty((Z.shape[0], W.shape[1]), dtype=Z.dtype)
        _blas.multiply(np.ascontiguousarray(Z), W, S)
        errors = (Y - (S - self.offset)) * (-2 * self.scale)
        out = np.empty(Z.shape, dtype=Z.dtype)
        _blas.multiply(np.ascontiguousarray(errors, dtype=Z.dtype), W, out, transpose=True)
        return out


@dataclass(frozen=True)
class Outcome:
    """value: of the objective, as a share of what predicting the mean leaves. alpha_slope: its derivative in
    log strength. slopes: its derivative in the features of rows."""

    value: float
    alpha_slope: float
    slopes: FeatureSlopes


def held_out(folds: FoldMoments, whole: Moments, alpha: float) -> Outcome:
    """sum_k sum over fold k of |f_k(z) - y|^2 over sum |y - mean|^2, f_k ridge on the other folds: 1 - R^2.

    One factorisation a fold serves its weights and its adjoint. Raises DataError for a fold without rows or one that
    leaves none to fit on.
    """
    D, t = whole.n_features, whole.n_targets
    factor, total = Factor(D), total_scatter(whole)
    value, slope = 0.0, 0.0
    weights, adjoints, offsets, means, pulls = [], [], [], [], []
    for k, moments in enumerate(folds.folds):
        rest = whole.count - moments.count
        if moments.n_rows in (0, whole.n_rows):
            raise DataError(
                f"fold {k} of {len(folds.folds)} holds {moments.n_rows} of {whole.n_rows} rows: too few to hold out. "
                "Use fewer folds (n_folds) or more rows."
            )
        fold = Fold(moments, whole)
        factor.of(whole, alpha, less=fold)
        W = factor.solve(fold.train_cross)
        FW = fold.product(W)
        value += fold.count * fold.error(W, FW)
        A = factor.solve(fold.error_slope(W, FW))
        slope -= alpha * float((A * W).sum())
        mean = whole.shifts[0] + (whole.feature_sum - fold.sums) / rest
        target_mean = whole.shifts[1] + (whole.target_sum - moments.target_sum) / rest
        weights.append(W)
        adjoints.append(A)
        offsets.append((W.T @ mean, A.T @ mean))
        means.append(target_mean)
        # the mean over the training rows stands in every f_k(z): what errors of one sign in the fold say to it
        pulls.append(-2 * fold.count / rest * fold.bias(W))
    slopes = RowSlopes(
        np.hstack([*weights, *adjoints]),
        np.concatenate([own for own, _ in offsets] + [own for _, own in offsets]),
        np.array(means).reshape(-1, t),
        np.array(pulls).reshape(-1, t),
        1 / total,
    )
    return Outcome(value / total, slope / total, slopes)


def training(whole: Moments, alpha: float) -> Outcome:
    """min_w,b (sum |w'z + b - y|^2 + alpha |w|^2) over sum |y - mean|^2: the objective of the paper's sec. 3.3.

    Source: Bazavan, Li and Sminchisescu, Fourier kernel learning, eq. 9.
    """
    factor, total = Factor(whole.n_features), total_scatter(whole)
    factor.of(whole, alpha)
    V = whole.cross_scatter()
    W = factor.solve(V)
    value = float(whole.target_scatter().sum() - (W * V).sum())
    slope = alpha * float(np.square(W).sum())
    return Outcome(
        value / total, slope / total, TrainingSlopes(W, whole.mean @ W - whole.target_mean, 1 / total)
    )


def total_scatter(moments: Moments) -> float:
    """sum |y - mean|^2; 1 where the targets are all equal."""
    return float(moments.target_scatter().sum()) or 1.0
