"""Generalised multiple kernel learning (GMKL): a learned sum of kernels on Gram matrices.

It is the exact counterpart of weighted channels. The problem is

    min_{d >= 0, w, b}  sum_i loss(y_i, f(x_i)) + alpha/2 |w|^2 + alpha sum_j d_j

with the kernel sum_j d_j K_j: the problem of the papers times alpha = 1/C. L-BFGS-B moves d; for given d, L-BFGS solves
for f. An evaluation costs an eigendecomposition of an n x n matrix, O(n^3), and memory is r + 3 such matrices for r
kernels: the solver serves comparisons on some thousand rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from chimap._validation import DataError, check_positive
from chimap.losses import Loss

_NOISE = 1e-12  # eigenvalues below this share of the largest are rounding
_INNER = 1e-9  # tolerance of the inner problem: norm of the gradient relative to that at zero


@dataclass(frozen=True)
class GramSolution:
    """The solution of ``gmkl``.

    Parameters
    ----------
    weights : ndarray of shape (r,)
        Weights d of the kernels.
    duals : ndarray of shape (n, t)
        Dual weights a: f(x) = sum_i K(x, x_i) a_i + intercept with K = sum_j d_j K_j.
    intercept : ndarray of shape (t,)
        Intercepts.
    objective : float
        Objective at the solution.
    norms : ndarray of shape (r,)
        |w_j| = d_j sqrt(a'K_j a), the norms of the channels' weights in the equivalent l21 problem.
    gradient : ndarray of shape (r,)
        Gradient of the objective in d. At the minimum it is at least 0 where d_j is 0, and 0 elsewhere.
    """

    weights: np.ndarray
    duals: np.ndarray
    intercept: np.ndarray
    objective: float
    norms: np.ndarray
    gradient: np.ndarray


def gmkl(
    grams: Sequence[np.ndarray], Y: np.ndarray, loss: Loss, alpha: float, *, max_iterations: int = 500
) -> GramSolution:
    """Minimise sum loss(y, f(x)) + alpha/2 |w|^2 + alpha sum_j d_j over d >= 0, w and b, with the kernel sum d_j K_j.

    This is l1-regularised generalised multiple kernel learning. With the optimal d_j for given channels, the objective
    is sum loss + sqrt(2) alpha sum_j |w_j|: the l21 problem of ``LossProblem`` and ``SquareProblem`` at the strength
    sqrt(2) alpha, with d_j = |w_j| / sqrt(2). It costs a factorisation of an n x n matrix per iteration, and memory for
    r + 3 of them: use it for comparisons on some thousand rows.

    For given d, L-BFGS finds beta with f = R beta + b, R R' = K; around it, L-BFGS-B moves d along the gradient
    alpha (1 - a'K_j a / 2), a = -loss'(y, f) / alpha, which is exact because beta is optimal.

    Parameters
    ----------
    grams : sequence of ndarray of shape (n, n)
        Kernel matrices K_j, such as ``Exponential(chi2, gamma)(X)`` of each channel.
    Y : ndarray of shape (n, t)
        Targets, which share their kernels.
    loss : Loss
        The loss.
    alpha : float
        Strength of the penalty, positive: 1/C of the papers.
    max_iterations : int, default=500
        Limit of the iterations that move d.

    Returns
    -------
    GramSolution
        The weights of the kernels and the model.

    Raises
    ------
    DataError
        If a matrix is not square, symmetric and of n rows, or a target is outside the domain of the loss.

    References
    ----------
    Varma and Babu, More generality in efficient multiple kernel learning (2009); Bazavan, Li and Sminchisescu, Fourier
    kernel learning, eqs 14 to 19.

    Examples
    --------
    >>> import numpy as np
    >>> from chimap.losses import Square
    >>> rng = np.random.default_rng(0)
    >>> Z, noise = rng.standard_normal((2, 60, 3))
    >>> solution = gmkl([Z @ Z.T, noise @ noise.T], Z[:, :1], Square(), alpha=20.0)
    >>> solution.weights.round(2).tolist()
    [0.43, 0.0]
    """
    grams = [np.asarray(K, dtype=np.float64) for K in grams]
    Y = np.asarray(Y, dtype=np.float64)
    _check(grams, Y)
    check_positive(alpha, "alpha")
    loss.check_targets(Y)
    problem = _GramObjective(grams, Y, loss, alpha)
    scales = np.array([np.trace(K) / Y.shape[0] for K in grams])
    start = 1 / np.where(scales > 0, scales, 1) / len(grams)
    end = minimize(
        problem,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * len(grams),
        options={"maxiter": max_iterations, "maxfun": 3 * max_iterations, "ftol": 1e-15, "gtol": 1e-9},
    )
    objective, gradient = problem(end.x)
    squares = np.array([float((problem.duals * (K @ problem.duals)).sum()) for K in grams])
    norms = end.x * np.sqrt(np.maximum(squares, 0))
    return GramSolution(end.x, problem.duals, problem.intercept, objective, norms, gradient)


class _GramObjective:
    """The objective and its gradient in d. It stores the inner solution, from which the next one starts."""

    def __init__(self, grams: list[np.ndarray], Y: np.ndarray, loss: Loss, alpha: float):
        self.grams, self.Y, self.loss, self.alpha = grams, Y, loss, alpha
        self.intercept = np.zeros(Y.shape[1])
        self.duals = np.zeros(Y.shape)

    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        K = sum(d * gram for d, gram in zip(weights, self.grams, strict=True))
        values, vectors = np.linalg.eigh(K)
        kept = values > _NOISE * max(float(values[-1]), np.finfo(float).tiny)
        values, vectors = values[kept], vectors[:, kept]
        # The inner Hessian is about alpha + curvature times the eigenvalue: scaled by it, nearly the identity.
        bends = self.alpha + self.loss.curvature * values
        roots = np.sqrt(values / bends)
        R, shares = vectors * roots, self.alpha / bends
        n, t = self.Y.shape
        scale = 1 / np.sqrt(self.loss.curvature * n)

        def inner(x: np.ndarray) -> tuple[float, np.ndarray]:
            beta, b = x[:-t].reshape(-1, t), scale * x[-t:]
            scores = R @ beta + b
            slopes = self.loss.gradient(self.Y, scores)
            value = self.loss.value(self.Y, scores).sum() + (shares[:, None] * beta**2).sum() / 2
            gradient = R.T @ slopes + shares[:, None] * beta
            return float(value), np.concatenate([gradient.reshape(-1), scale * slopes.sum(axis=0)])

        beta = (vectors.T @ (K @ self.duals)) / np.where(roots > 0, roots, 1)[:, None]
        start = np.concatenate([beta.reshape(-1), self.intercept / scale])
        at_zero = float(np.linalg.norm(inner(np.zeros_like(start))[1])) or 1.0
        dual = minimize(
            inner,
            start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 5000, "maxfun": 10_000, "maxcor": 20, "ftol": 0.0, "gtol": _INNER * at_zero},
        )
        beta, self.intercept = dual.x[:-t].reshape(-1, t), scale * dual.x[-t:]
        self.duals = -self.loss.gradient(self.Y, R @ beta + self.intercept) / self.alpha
        pulls = np.array([float((self.duals * (gram @ self.duals)).sum()) for gram in self.grams])
        return float(dual.fun) + self.alpha * float(weights.sum()), self.alpha * (1 - pulls / 2)


def _check(grams: list[np.ndarray], Y: np.ndarray) -> None:
    """Refuse matrices that cannot be Gram matrices of the rows of Y (n, t)."""
    if not grams or Y.ndim != 2:
        raise DataError(
            f"gmkl needs at least one Gram matrix, and targets of shape (n, t); got {len(grams)} matrices and "
            f"targets of shape {Y.shape}."
        )
    for j, K in enumerate(grams):
        if K.shape != (Y.shape[0], Y.shape[0]):
            raise DataError(
                f"Gram matrix {j} must be {Y.shape[0]} x {Y.shape[0]}, a row for each row of Y; got {K.shape}."
            )
        if not np.isfinite(K).all() or np.abs(K - K.T).max() > 1e-8 * np.abs(K).max():
            raise DataError(
                f"Gram matrix {j} must be finite and symmetric. Pass the kernel of the rows with themselves."
            )
