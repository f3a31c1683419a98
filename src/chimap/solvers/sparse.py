"""LASSO and elastic net from moments.

The problem is

    min_{w, b}  sum_i (z_i'w + b - y_i)^2 / (2n) + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2),

target by target, solved by coordinate descent (scikit-learn) on at most D rows that have the same objective. The rows
come from one factorisation of Hc, D^3/3 operations (an eigendecomposition if Hc is singular); a sweep over all weights
of a target costs O(D^2). Memory holds a few (D, D) float64 matrices, and the (D, t, s) weights of the path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.linalg.lapack import dpotrf

from chimap.model_files import register
from chimap.moments import Moments
from chimap.solvers.ridge import LinearSolution, solution

PATH_END = 1e-3  # end of a path, relative to the strength at which all weights are zero, as in scikit-learn
_DUALITY_GAP = 1e-8  # duality gap at which a search stops, relative to the objective at zero weights


def equivalent_rows(moments: Moments) -> tuple[np.ndarray, np.ndarray]:
    """Return (R, Q) with R'R = Hc / n and R'Q = Vc / n: at most D rows of features (r, D) and of targets (r, t).

    For the best b, |R w - q|^2 = sum (z'w + b - y)^2 / n + const whatever w is. So any solver of a quadratic loss may
    take these rows in place of the data's and finds the same weights.

    Raises
    ------
    DataError
        If the moments have no rows.

    References
    ----------
    Li, Lebanon and Sminchisescu, sec. 6 (LASSO from the moments).
    """
    moments.check_rows()
    square = np.empty((moments.n_features, moments.n_features))
    moments.scatter_into(square)
    square /= moments.count
    cross = moments.cross_scatter() / moments.count
    # The upper triangle in C order is the lower one in Fortran order.
    factor, info = dpotrf(square.T, lower=1, clean=1)
    diagonal = np.diagonal(factor)
    if info == 0 and diagonal.min() > np.sqrt(np.finfo(float).eps) * diagonal.max():
        return np.ascontiguousarray(factor.T), solve_triangular(factor, cross, lower=True)
    values, vectors = eigh(square.T, lower=True, overwrite_a=True, check_finite=False)
    kept = values > values.size * np.finfo(float).eps * max(values[-1], np.finfo(float).tiny)
    if not kept.any():  # all rows are equal, so the mean is all there is to learn
        return np.zeros((1, cross.shape[0])), np.zeros((1, cross.shape[1]))
    roots = np.sqrt(values[kept])
    return roots[:, None] * vectors[:, kept].T, (vectors[:, kept].T @ cross) / roots[:, None]


@dataclass(frozen=True)
class SparsePath:
    """Solutions of a path of strengths, and how near they are to the minimum.

    Parameters
    ----------
    alphas : ndarray of shape (s,)
        Strengths, descending.
    solutions : list of LinearSolution
        The solution of each strength.
    residuals : ndarray of shape (s,)
        Largest violation of an optimality condition, relative to the strength.
    """

    alphas: np.ndarray
    solutions: list[LinearSolution]
    residuals: np.ndarray

    @property
    def n_used(self) -> np.ndarray:
        """Number of features with a nonzero weight for at least one target, shape (s,)."""
        return np.array([int(np.any(solution.coef != 0, axis=1).sum()) for solution in self.solutions])


def elastic_net(moments: Moments, alphas: np.ndarray, l1_ratio: float = 1.0) -> SparsePath:
    """Minimise sum (z'w + b - y)^2 / (2n) + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2), target by target.

    Coordinate descent (scikit-learn) with warm starts along the path.

    Parameters
    ----------
    moments : Moments
        Moments of all n rows.
    alphas : ndarray of shape (s,)
        Strengths, scikit-learn's ``alpha``.
    l1_ratio : float, default=1.0
        Share of the l1 norm in the penalty. 1 is the LASSO.
    """
    alphas = np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
    R, Q = equivalent_rows(moments)
    rows = R.shape[0]
    # scikit-learn divides the sum of squares by the number of its rows: scaled by that number, R and Q have the mean of
    # the data.
    R, Q = np.asfortranarray(np.sqrt(rows) * R), np.sqrt(rows) * Q
    from sklearn.linear_model import enet_path  # imported here because few fits need it

    coefs = np.stack(
        [
            enet_path(
                R, Q[:, t], l1_ratio=l1_ratio, alphas=alphas, precompute=True, tol=_DUALITY_GAP, max_iter=100_000
            )[1]
            for t in range(Q.shape[1])
        ],
        axis=1,
    )  # (D, t, s)
    flat = coefs.reshape(coefs.shape[0], -1)
    pulled = moments.scatter_product(flat).reshape(coefs.shape) - moments.cross_scatter()[:, :, None]
    gradients = pulled / moments.count  # (Hc w - Vc) / n
    shrunk = alphas * (1 - l1_ratio) * coefs
    gradient = gradients + shrunk
    bound = alphas * l1_ratio
    # minus the gradient, less the nearest of the subdifferential of bound |w|_1, entry by entry
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - bound, 0)
    residuals = np.abs(np.where(coefs == 0, at_zero, gradient + bound * np.sign(coefs))).max(axis=(0, 1)) / alphas
    solutions = [solution(moments, np.ascontiguousarray(coefs[:, :, s]), float(alphas[s])) for s in range(alphas.size)]
    return SparsePath(alphas, solutions, residuals)


def largest_alpha(moments: Moments, l1_ratio: float = 1.0) -> float:
    """Return the smallest strength of ``elastic_net`` at which all weights are zero."""
    return float(np.abs(moments.cross_scatter()).max() / (moments.count * l1_ratio))


def held_out_error(fold: Moments, solution: LinearSolution) -> float:
    """Return the mean of |f(z) - y|^2 over the rows of the moments, summed over targets."""
    W = solution.coef
    within = (W * (fold.scatter_product(W) - 2 * fold.cross_scatter())).sum(axis=0)
    within += fold.target_scatter()
    bias = fold.mean @ W + solution.intercept - fold.target_mean
    return float((within / fold.count + bias**2).sum())


register(LinearSolution, SparsePath)
