"""LASSO and elastic net from moments, through a problem of D rows that has the same objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.linalg.lapack import dpotrf

from chimap._validation import DataError, check_positive
from chimap.moments import Moments
from chimap.solvers.ridge import LinearSolution, solution

_SMALLEST = 1e-3  # of the strength at which all weights are zero: the end of a path, as in scikit-learn
_GAP = 1e-8  # of the objective at zero: the duality gap at which a solver stops


def equivalent_rows(moments: Moments) -> tuple[np.ndarray, np.ndarray]:
    """(R, Q) with R'R = Hc / n and R'Q = Vc / n: at most D rows of features (r, D) and of targets (r, t).

    |R w - q|^2 = sum (z'w + b - y)^2 / n + const for the best b, whatever w: any solver of a quadratic loss takes these
    rows in place of the data's and gives the same weights. Raises DataError for moments of no rows.

    Source: Li, Lebanon and Sminchisescu, sec. 6 (LASSO from the moments).
    """
    if moments.count == 0:
        raise DataError("no rows: fit needs moments that have seen some.")
    square = np.empty((moments.n_features, moments.n_features))
    moments.scatter_into(square)
    square /= moments.count
    cross = moments.cross_scatter() / moments.count
    # our upper triangle in C order is the lower one in Fortran's
    factor, info = dpotrf(square.T, lower=1, clean=1)
    diagonal = np.diagonal(factor)
    if info == 0 and diagonal.min() > np.sqrt(np.finfo(float).eps) * diagonal.max():
        return np.ascontiguousarray(factor.T), solve_triangular(factor, cross, lower=True)
    values, vectors = eigh(square.T, lower=True, overwrite_a=True, check_finite=False)
    kept = values > values.size * np.finfo(float).eps * max(values[-1], np.finfo(float).tiny)
    if not kept.any():  # all rows are equal: nothing to learn but the mean
        return np.zeros((1, cross.shape[0])), np.zeros((1, cross.shape[1]))
    roots = np.sqrt(values[kept])
    return roots[:, None] * vectors[:, kept].T, (vectors[:, kept].T @ cross) / roots[:, None]


@dataclass(frozen=True)
class SparsePath:
    """Solutions at strengths (descending), with how nearly they are solutions.

    solutions: one a strength. residuals: (s,), the largest violation of the optimality conditions over the strength.
    """

    alphas: np.ndarray
    solutions: list[LinearSolution]
    residuals: np.ndarray

    @property
    def n_used(self) -> np.ndarray:
        """Features with a weight that is not zero for some target, (s,)."""
        return np.array([int(np.any(solution.coef != 0, axis=1).sum()) for solution in self.solutions])


def alphas_below(largest: float, n_alphas: int, share: float = _SMALLEST) -> np.ndarray:
    """Strengths (n_alphas,) from the one at which all weights are zero, geometrically, to a share of it."""
    return np.geomspace(largest or 1.0, share * (largest or 1.0), n_alphas)


def elastic_net(moments: Moments, alphas: np.ndarray, l1_ratio: float = 1.0) -> SparsePath:
    """Minimise sum (z'w + b - y)^2 / (2n) + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2), target by target.

    strengths are scikit-learn's ``alpha``; l1_ratio = 1 is the LASSO. By coordinate descent (scikit-learn) with warm
    starts along the path.
    """
    alphas = np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
    R, Q = equivalent_rows(moments)
    rows = R.shape[0]
    # scikit-learn divides by the rows it sees: rows times the mean square is the sum that it takes for the data's
    R, Q = np.asfortranarray(np.sqrt(rows) * R), np.sqrt(rows) * Q
    from sklearn.linear_model import enet_path  # of all that an estimator imports, what few fits need

    coefs = np.stack(
        [
            enet_path(
                R, Q[:, t], l1_ratio=l1_ratio, alphas=alphas, precompute=True, tol=_GAP, max_iter=100_000
            )[1]
            for t in range(Q.shape[1])
        ],
        axis=1,
    )  # (D, t, s)
    gradients = _gradients(moments, coefs)
    shrunk = alphas * (1 - l1_ratio) * coefs
    residuals = np.abs(_outside(gradients + shrunk, coefs, alphas * l1_ratio)).max(axis=(0, 1)) / alphas
    return _path(moments, alphas, coefs, residuals)


def largest_alpha(moments: Moments, l1_ratio: float = 1.0) -> float:
    """The least strength of ``elastic_net`` at which all weights are zero."""
    return float(np.abs(moments.cross_scatter()).max() / (moments.count * l1_ratio))


def held_out_error(fold: Moments, solution: LinearSolution) -> float:
    """Mean over the rows of moments of |f(z) - y|^2, summed over targets."""
    W = solution.coef
    within = (W * (fold.scatter_product(W) - 2 * fold.cross_scatter())).sum(axis=0)
    within += fold.target_scatter()
    bias = fold.mean @ W + solution.intercept - fold.target_mean
    return float((within / fold.count + bias**2).sum())


def _gradients(moments: Moments, coefs: np.ndarray) -> np.ndarray:
    """(Hc w - Vc) / n for weights (D, t, s)."""
    flat = coefs.reshape(coefs.shape[0], -1)
    pulled = moments.scatter_product(flat).reshape(coefs.shape) - moments.cross_scatter()[:, :, None]
    return pulled / moments.count


def _outside(gradient: np.ndarray, coefs: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """How far minus the gradient is from the subdifferential of bound |w|_1."""
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - bound, 0)
    return np.where(coefs == 0, at_zero, gradient + bound * np.sign(coefs))


def _path(moments: Moments, alphas: np.ndarray, coefs: np.ndarray, residuals: np.ndarray) -> SparsePath:
    solutions = [
        solution(moments, np.ascontiguousarray(coefs[:, :, s]), float(alphas[s])) for s in range(alphas.size)
    ]
    return SparsePath(alphas, solutions, residuals)


def check_alphas(alphas: float | Sequence[float]) -> np.ndarray:
    """Positive strengths, (s,) float64."""
    for alpha in np.atleast_1d(alphas):
        check_positive(float(alpha), "each of alpha")
    return np.atleast_1d(np.asarray(alphas, dtype=np.float64))
