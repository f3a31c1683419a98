"""Training and held-out error of ridge as functions of the kernel widths, with derivatives, from moments.

The objective is a function of the features z and of log alpha alone, because ridge has its weights in closed form:

    min_{w, b}  (sum |w'z + b - y|^2 + alpha |w|^2) / sum |y - mean|^2        (training)
    sum_k sum_{z in fold k} |f_k(z) - y|^2 / sum |y - mean|^2                 (held out, f_k ridge on the other folds)

Its derivative in the features of a row combines a few columns: the weights and, for weights that were not fitted to the
error that is measured, the solution of another system with the same matrix (the adjoint). So the effect of the features
through the weights costs one solve per fold; nothing is differentiated entry by entry. Training costs one
factorisation, D^3/3 operations, and held-out error one for each fold; memory is one (D, D) float64 buffer and 2 K
arrays (D, t). The derivative of n rows then takes O(n D K t) operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from chimap import _blas
from chimap.moments import FoldMoments, Moments
from chimap.solvers.fold import Fold, check_fold
from chimap.solvers.ridge import Factor


class FeatureSlopes(Protocol):
    """The derivative dL/dz of an objective L in the features of rows z."""

    def of(self, Z: np.ndarray, Y: np.ndarray, folds: np.ndarray) -> np.ndarray:
        """Return dL/dz (n, D), in the dtype of Z, of C-contiguous rows with targets (n, t) and folds (n,)."""
        ...


@dataclass(frozen=True)
class RowSlopes:
    """dL/dz of rows z (n, D), for L the sum over folds k of the error of f_k(z) = w_k'(z - mean_k) + target mean_k.

    Let e_k = y - f_k(z) for a row z with target y. It adds -2 w_f e_f through the error of its own fold f, to which f_f
    was not fitted, and a_k e_k - w_k (a_k'(z - mean_k) + pull_k) through that of every other fold, where a_k is the
    adjoint.

    Parameters
    ----------
    columns : ndarray of shape (D, 2 K t)
        [w_1 .. w_K, a_1 .. a_K].
    offsets : ndarray of shape (2 K t,)
        Products of the columns with mean_k.
    target_means, pulls : ndarray of shape (K, t)
        Mean targets and pulls of each fold.
    scale : float
        Factor of the derivative.
    """

    columns: np.ndarray
    offsets: np.ndarray
    target_means: np.ndarray
    pulls: np.ndarray
    scale: float

    def of(self, Z: np.ndarray, Y: np.ndarray, folds: np.ndarray) -> np.ndarray:
        """Return dL/dz (n, D), in the dtype of Z, of C-contiguous rows with targets (n, t) and folds (n,)."""
        K, t = self.target_means.shape
        C = np.ascontiguousarray(self.columns, dtype=Z.dtype)
        S = np.empty((Z.shape[0], C.shape[1]), dtype=Z.dtype)
        _blas.multiply(np.ascontiguousarray(Z), C, S)
        S -= self.offsets.astype(Z.dtype)
        scores, adjoint = S.reshape(-1, 2, K, t).transpose(1, 0, 2, 3)
        errors = Y[:, None, :] - self.target_means - scores
        in_fold = np.arange(Z.shape[0]), folds
        weights = -adjoint - self.pulls
        weights[in_fold] = -2 * errors[in_fold]
        errors[in_fold] = 0
        shares = np.stack([weights, errors], axis=1).reshape(S.shape) * self.scale
        out = np.empty(Z.shape, dtype=Z.dtype)
        _blas.multiply(np.ascontiguousarray(shares, dtype=Z.dtype), C, out, transpose=True)
        return out


@dataclass(frozen=True)
class TrainingSlopes:
    """dL/dz = -2 w e of rows z, for L the training error of ridge.

    The weights are optimal, so that their change with the features adds nothing (the envelope theorem).

    Parameters
    ----------
    weights : ndarray of shape (D, t)
        Weights w.
    offset : ndarray of shape (t,)
        w'mean - target mean.
    scale : float
        Factor of the derivative.
    """

    weights: np.ndarray
    offset: np.ndarray
    scale: float

    def of(self, Z: np.ndarray, Y: np.ndarray, folds: np.ndarray) -> np.ndarray:
        """Return dL/dz as ``RowSlopes.of``; the folds are not used."""
        W = np.ascontiguousarray(self.weights, dtype=Z.dtype)
        S = np.empty((Z.shape[0], W.shape[1]), dtype=Z.dtype)
        _blas.multiply(np.ascontiguousarray(Z), W, S)
        errors = (Y - (S - self.offset)) * (-2 * self.scale)
        out = np.empty(Z.shape, dtype=Z.dtype)
        _blas.multiply(np.ascontiguousarray(errors, dtype=Z.dtype), W, out, transpose=True)
        return out


@dataclass(frozen=True)
class ObjectiveSlopes:
    """An objective and its derivatives.

    Parameters
    ----------
    value : float
        Objective, relative to the error of predicting the mean.
    alpha_slope : float
        Derivative in log alpha.
    slopes : FeatureSlopes
        Derivative in the features of rows.
    """

    value: float
    alpha_slope: float
    slopes: FeatureSlopes


def held_out(folds: FoldMoments, whole: Moments, alpha: float) -> ObjectiveSlopes:
    """Return 1 - R^2 on held-out folds: sum_k sum over fold k of |f_k(z) - y|^2, over sum |y - mean|^2.

    f_k is ridge on the other folds. One factorisation per fold serves its weights and its adjoint.

    Raises
    ------
    DataError
        If a fold holds no rows, or all of them.
    """
    D, t = whole.n_features, whole.n_targets
    factor, total = Factor(D), total_scatter(whole)
    value, slope = 0.0, 0.0
    weights, adjoints, offsets, means, pulls = [], [], [], [], []
    for k, moments in enumerate(folds.folds):
        n_others = whole.count - moments.count
        check_fold(k, len(folds.folds), moments.n_rows, whole.n_rows)
        fold = Fold(moments, whole)
        factor.of(whole, alpha, less=fold.take_from)
        W = factor.solve(fold.train_cross)
        FW = fold.product(W)
        value += fold.count * fold.error(W, FW)
        A = factor.solve(fold.error_slope(W, FW))
        slope -= alpha * float((A * W).sum())
        mean = whole.shifts[0] + (whole.feature_sum - fold.sums) / n_others
        target_mean = whole.shifts[1] + (whole.target_sum - moments.target_sum) / n_others
        weights.append(W)
        adjoints.append(A)
        offsets.append((W.T @ mean, A.T @ mean))
        means.append(target_mean)
        # Every f_k(z) contains the training means; this is the derivative of the fold's error through them.
        pulls.append(-2 * fold.count / n_others * fold.bias(W))
    slopes = RowSlopes(
        np.hstack([*weights, *adjoints]),
        np.concatenate([at_mean for at_mean, _ in offsets] + [at_mean for _, at_mean in offsets]),
        np.array(means).reshape(-1, t),
        np.array(pulls).reshape(-1, t),
        1 / total,
    )
    return ObjectiveSlopes(value / total, slope / total, slopes)


def training(whole: Moments, alpha: float) -> ObjectiveSlopes:
    """Return min_w,b (sum |w'z + b - y|^2 + alpha |w|^2) over sum |y - mean|^2, the objective of the paper's sec. 3.3.

    References
    ----------
    Bazavan, Li and Sminchisescu, Fourier kernel learning, eq. 9.
    """
    factor, total = Factor(whole.n_features), total_scatter(whole)
    factor.of(whole, alpha)
    V = whole.cross_scatter()
    W = factor.solve(V)
    value = float(whole.target_scatter().sum() - (W * V).sum())
    slope = alpha * float(np.square(W).sum())
    return ObjectiveSlopes(
        value / total, slope / total, TrainingSlopes(W, whole.mean @ W - whole.target_mean, 1 / total)
    )


def total_scatter(moments: Moments) -> float:
    """Return sum |y - mean|^2, or 1 if all targets are equal."""
    return float(moments.target_scatter().sum()) or 1.0
