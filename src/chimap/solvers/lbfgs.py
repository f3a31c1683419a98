"""Linear models of any smooth loss, by L-BFGS over rows that are read again at each evaluation.

The problem is

    min_{w, b}  sum_i w_i loss(y_i, z_i'w + b) + alpha/2 |w|^2

for all targets at once. An evaluation of the objective and its gradient is one pass over the rows, in O(n D t)
operations. Memory holds about ``2 PAIRS + 15`` arrays of the size of the weights (D, t), and no matrix unless the
search is whitened by a (D, D) factor, which saves most of the passes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from chimap._validation import DataError, check_positive
from chimap.losses import Loss, LossAt, LossSums
from chimap.penalties import L2
from chimap.solvers.ridge import Factor, LinearSolution

Rows = Callable[[LossAt], LossSums]
"""A function that sums a loss and its gradient over all rows, wherever they are stored; each call is one pass."""

Chunks = Callable[[], Iterable[tuple[np.ndarray, ...]]]
"""A function that yields all rows at each call, in chunks: (features (rows, D), targets (rows, t)) or, with weights
(rows,), a tuple of three."""

_LEAST_SHARE = (
    1e-4  # of the gradient at zero weights, that by the weights at least: those of constant features have none
)
PAIRS = 10  # pairs of steps and gradient changes that L-BFGS keeps


@dataclass(frozen=True)
class SmoothSolution(LinearSolution):
    """A linear model, and how near it is to the minimum.

    Parameters
    ----------
    coef : ndarray of shape (D, t)
        Weights of the features.
    intercept : ndarray of shape (t,)
        Intercepts of the targets.
    alpha : float
        Strength of the penalty.
    objective : float
        Objective at the weights, summed over targets.
    passes : int
        Passes over the rows.
    gradient_norm : float
        Norm of the gradient, relative to the norm of that by the weights at zero weights.
    converged : bool
        Whether ``gradient_norm`` is within the tolerance.

    Examples
    --------
    >>> from chimap.losses import Square
    >>> rows = over(lambda: [(np.eye(2), np.array([[1.0], [2.0]]))])
    >>> solution = lbfgs(Square(), rows, 0.1, zero_solution(2, 1))
    >>> solution.converged, solution.passes < 20
    (True, True)
    """

    objective: float
    passes: int
    gradient_norm: float
    converged: bool


def zero_solution(n_features: int, n_targets: int) -> LinearSolution:
    """Return zero weights and intercepts, a start for lack of a better one.

    Parameters
    ----------
    n_features : int
        D.
    n_targets : int
        t.

    Examples
    --------
    >>> zero_solution(3, 2).coef.shape
    (3, 2)
    """
    return LinearSolution(np.zeros((n_features, n_targets)), np.zeros(n_targets), 0.0)


def over(chunks: Chunks) -> Rows:
    """Return the function that sums a loss over chunks of rows, as ``lbfgs`` takes it.

    Parameters
    ----------
    chunks : callable
        Yields all rows at each call, in chunks: features (rows, D), targets (rows, t) and, optionally, weights
        (rows,).

    Returns
    -------
    callable
        Takes a ``LossAt`` and returns the ``LossSums`` of one pass.

    Examples
    --------
    >>> from chimap.losses import Square
    >>> rows = over(lambda: [(np.eye(2), np.array([[1.0], [2.0]]))])  # one chunk
    >>> rows(LossAt(Square(), np.zeros((2, 1)), np.zeros(1))).values.tolist()
    [2.5]
    """

    def sums(at: LossAt) -> LossSums:
        total = at.empty()
        for chunk in chunks():
            at.add(total, *chunk)
        return total

    return sums


def lbfgs(
    loss: Loss,
    rows: Rows,
    alpha: float,
    start: LinearSolution,
    *,
    whitening: Factor | None = None,
    tolerance: float = 1e-4,
    max_passes: int = 200,
) -> SmoothSolution:
    """Minimise sum loss(y, z'w + b) + alpha/2 |w|^2 over rows and targets, all targets at once; b is not penalised.

    With ``Square`` the minimum is that of ``ridge`` at the same strength; with the losses of classification, alpha is
    1/C of scikit-learn. One evaluation is one pass over the rows.

    Parameters
    ----------
    loss : Loss
        The loss. Its targets are checked in each pass.
    rows : callable
        Returns the sums over all rows at each pass. ``over(chunks)`` makes it from a function that yields chunks.
    alpha : float
        Strength of the penalty.
    start : LinearSolution
        Weights to start from, such as those of ridge.
    whitening : Factor, default=None
        A factor L L' of about the Hessian over the curvature of the loss, such as Hc + alpha/curvature I. The search
        is then for L'w, whose level sets are nearly round, and takes a tenth of the passes. The features should be
        centred.
    tolerance : float, default=0.0001
        Stop when the Euclidean norm of the gradient, in the coordinates of the search, is this share of the norm of
        that by the weights at zero weights, which of a rare class is that of its rows where features are centred.
    max_passes : int, default=200
        Largest number of passes. A ConvergenceWarning is issued if they do not suffice.

    Returns
    -------
    SmoothSolution
        Weights (D, t) and intercepts (t,), and how near they are to the minimum.

    Raises
    ------
    DataError
        If a target is outside the domain of the loss, or if there are no rows.

    Examples
    --------
    >>> from chimap.losses import Logistic
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(200, 3))
    >>> y = np.where(Z[:, :1] > 0, 1.0, -1.0)
    >>> solution = lbfgs(Logistic(), over(lambda: [(Z, y)]), 1.0, zero_solution(3, 1))
    >>> solution.converged, bool(solution.coef[0, 0] > 3)
    (True, True)
    """
    check_positive(tolerance, "tolerance")
    check_positive(max_passes, "max_passes", integer=True)
    objective = _WhitenedObjective(loss, rows, L2(alpha), whitening)
    x = objective.begin(start)
    goal = tolerance * objective.norm_at_zero
    reason = ""

    def stop_at_goal(intermediate_result: OptimizeResult) -> None:
        if objective.norm <= goal:
            raise StopIteration

    if objective.norm > goal:
        with objective.pools.limit(limits=1, user_api="blas"):
            end = minimize(
                objective,
                x,
                jac=True,
                method="L-BFGS-B",
                callback=stop_at_goal,
                options={"maxfun": max_passes, "maxiter": max_passes, "maxcor": PAIRS, "ftol": 0.0, "gtol": 0.0},
            )
        x, reason = end.x, stop_reason(end)
    converged = bool(objective.norm <= goal)
    norm = objective.norm / (objective.norm_at_zero or 1.0)
    if not converged:
        warnings.warn(
            f"L-BFGS stopped after {objective.passes} passes at a gradient of {norm:.2g} of that at zero weights, "
            f"short of tolerance={tolerance:g} ({reason}). Allow more passes, a larger tolerance or "
            "strength, or float64 features.",
            ConvergenceWarning,
            stacklevel=2,
        )
    W, b = objective.weights(x)
    return SmoothSolution(W, b, alpha, objective.value, objective.passes, norm, converged)


class _WhitenedObjective:
    """The objective and its gradient in the coordinates of the search.

    The weights are W = scale L^-T V and b = scale v / sqrt(n), with the coordinates V and v flat in one array.
    """

    def __init__(self, loss: Loss, rows: Rows, penalty: L2, factor: Factor | None):
        self.loss, self.rows, self.penalty, self.factor = loss, rows, penalty, factor
        self.scale, self.intercept_scale = 1.0, 1.0
        self.passes = 0
        # SciPy's BLAS has its own threads, and they wait for NumPy's, which spin after the products of a pass. A step
        # of L-BFGS-B works on short vectors and would then take longer than the pass. So only passes use the threads.
        self.pools = ThreadpoolController().select(user_api="blas")
        self.n_threads = max((pool.num_threads for pool in self.pools.lib_controllers), default=1)
        self.value, self.norm, self.norm_at_zero = np.inf, np.inf, np.inf

    def begin(self, start: LinearSolution) -> np.ndarray:
        """Evaluate at the start and at zero weights in one pass, and return the coordinates of the start."""
        W, b = start.coef, start.intercept
        self.shape = W.shape
        sums = self._sums(np.hstack([W, np.zeros_like(W)]), np.hstack([b, np.zeros_like(b)]))
        t, G, g = b.size, sums.coef, sums.intercept
        # Not by the intercept, whose gradient there is that of all rows, where a rare class matters to few.
        at_zero = self._in_coordinates(G[:, t:], g[t:])
        self.norm_at_zero = float(max(np.linalg.norm(at_zero[:-t]), _LEAST_SHARE * np.linalg.norm(at_zero)))
        gradient = self._finish(W, sums.values[:t].sum(), G[:, :t], g[:t])
        if self.factor is not None and self.norm > 0:
            # The first step of L-BFGS-B has length one: scale it to Newton's step at the usual curvature.
            self.scale = self.norm / self.loss.usual_curvature
        self._remembered = (self.value, gradient * self.scale)
        self._start = self._coordinates(W, b)
        return self._start

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        if np.array_equal(x, self._start):
            return self._remembered
        W, b = self.weights(x)
        sums = self._sums(W, b)
        gradient = self._finish(W, sums.values.sum(), sums.coef, sums.intercept) * self.scale
        return self.value, gradient

    def weights(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights and intercepts (W, b) of coordinates."""
        V, v = x[: -self.shape[1]].reshape(self.shape), x[-self.shape[1] :]
        W = V if self.factor is None else self.factor.cholesky.unwhiten(V)
        return self.scale * W, self.scale * self.intercept_scale * v

    def _coordinates(self, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        V = W if self.factor is None else self.factor.cholesky.coordinates(W)
        return np.concatenate([V.reshape(-1), b / self.intercept_scale]) / self.scale

    def _in_coordinates(self, G: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return a gradient in (W, b) as a gradient in the coordinates, except for the scale."""
        V = G if self.factor is None else self.factor.cholesky.whiten(G)
        return np.concatenate([V.reshape(-1), self.intercept_scale * g])

    def _finish(self, W: np.ndarray, value: float, G: np.ndarray, g: np.ndarray) -> np.ndarray:
        self.value = float(value) + self.penalty.value(W)
        gradient = self._in_coordinates(G + self.penalty.gradient(W), g)
        self.norm = float(np.linalg.norm(gradient))
        return gradient

    def _sums(self, W: np.ndarray, b: np.ndarray) -> LossSums:
        """Make one pass. W may hold several solutions side by side, each of which is evaluated on all targets."""
        with self.pools.limit(limits=self.n_threads, user_api="blas"):
            sums = self.rows(LossAt(self.loss, W, b))
        if sums.count == 0:
            raise DataError("no rows: the chunks of a pass are empty.")
        if self.passes == 0 and self.factor is not None:
            self.intercept_scale = 1 / np.sqrt(sums.count)
        self.passes += 1
        return sums


def stop_reason(end: OptimizeResult) -> str:
    """Return why SciPy's L-BFGS-B stopped, as a clause that can follow "because"."""
    message = str(end.message).upper()
    reasons = {
        "ITERATIONS": "the limit of iterations was reached",
        "EVALUATIONS": "the limit of evaluations was reached",
        "GRADIENT": "the gradient is almost zero",
        "REDUCTION": "the objective no longer falls",
    }
    return next((reason for key, reason in reasons.items() if key in message), "no step lowers the objective any more")
