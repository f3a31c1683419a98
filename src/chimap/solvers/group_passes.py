"""Groups of features under any smooth loss, one pass over the rows per step.

The problem is

    min_{w, b}  sum_i w_i loss(y_i, z_i'w + b) + alpha sum_g weight_g |w_g|_2,

solved by a proximal quasi-Newton method whose metric is the scatter Hc of the moments. A step is one pass over the rows
in O(n D t) operations, and some sweeps over the groups in O(D^2 t) each. Memory holds the matrices of ``group_path``
and the last points and steps that Anderson mixing combines.
"""

from __future__ import annotations

import numpy as np

from chimap._validation import DataError
from chimap.losses import Loss, LossAt
from chimap.moments import Moments
from chimap.penalties import L21
from chimap.solvers.descent import ObjectiveValue, descend
from chimap.solvers.group_descent import GroupQuadratic
from chimap.solvers.group_path import GroupSolution, full_scatter, warn_if_short
from chimap.solvers.lbfgs import Rows
from chimap.solvers.ridge import LinearSolution

TOLERANCE = 1e-6
# share of the trace added to the metric's diagonal: exceeds the rounding of float32 products
_LEAST_RIDGE = 1e-7
_INTERCEPT_STEPS = 100


class LossProblem:
    """Minimise sum loss(y, z'w + b) + alpha sum_g weight_g |w_g|_2 over rows that are read again; b is not penalised.

    A loss lies below a parabola: sum loss <= value + G'dW + curvature/2 |dW|^2 in the metric Hc of the moments of all
    rows, and separately for the intercept. A step lowers this bound plus the penalty by a few sweeps over the groups,
    which read no row; steps are Anderson-mixed. Together this is a proximal quasi-Newton method with one pass per step.
    Scores, slopes and sums are in float64 whatever the dtype of the features, so that the optimality conditions can be
    met to 1e-6. The solutions are for features and targets less the shifts.

    Parameters
    ----------
    loss : Loss
        The loss. Each pass checks the domain of its targets.
    rows : callable
        Returns sums over the rows, as for ``lbfgs``. Features and targets are less the shifts of the moments.
    whole : Moments
        Moments of all these rows, or of more.
    penalty : L21
        The groups, their weights, and whether targets share them. Its strength is not used.
    tolerance : float, default=1e-06
        Largest violation of a group's optimality condition, relative to its strength, at which the descent stops.
    max_passes : int, default=1000
        Largest number of passes of a solution.
    metric : GroupQuadratic, default=None
        ``metric_of`` the moments, if it is at hand. None computes it.
    warns : bool, default=True
        Whether a solution that misses the tolerance issues a ConvergenceWarning.

    Examples
    --------
    >>> from chimap.losses import Logistic
    >>> from chimap.solvers import over
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(200, 4))
    >>> y = np.where(Z[:, :1] > 0, 1.0, -1.0)
    >>> penalty = L21(1.0, [slice(0, 2), slice(2, 4)], 4)
    >>> problem = LossProblem(Logistic(), over(lambda: [(Z, y)]), Moments(4, 1).update(Z, y), penalty)
    >>> solution = problem.solve(problem.largest / 2, problem.zero())
    >>> bool(solution.coef[0, 0] > 0), solution.coef[2:].tolist()
    (True, [[0.0], [0.0]])
    """

    def __init__(
        self,
        loss: Loss,
        rows: Rows,
        whole: Moments,
        penalty: L21,
        tolerance: float = TOLERANCE,
        max_passes: int = 1000,
        metric: GroupQuadratic | None = None,
        warns: bool = True,
    ):
        self.loss, self.rows, self.penalty = loss, rows, penalty
        self.tolerance, self.max_passes, self.warns = tolerance, max_passes, warns
        self._mean = whole.mean - whole.shifts[0]
        self._count = whole.count
        self.metric = metric or metric_of(whole, penalty)
        self._shape = (whole.n_features, whole.n_targets)
        self._zero: np.ndarray | None = None

    @property
    def largest(self) -> float:
        """Smallest strength at which all weights are zero."""
        x = self._at_zero()
        _, gradient = self._pass(x)
        return self.penalty.with_alpha(1.0).largest(gradient[:-1])

    @property
    def at_zero(self) -> float:
        """Objective at zero weights."""
        return float(self._pass(self._at_zero())[0].sum())

    def zero(self) -> LinearSolution:
        """Return zero weights with the best intercepts."""
        x = self._at_zero()
        return LinearSolution(x[:-1], x[-1].copy(), 0.0)

    def solve(self, alpha: float, start: LinearSolution) -> GroupSolution:
        """Return the minimum at a strength.

        Parameters
        ----------
        alpha : float
            Strength of the penalty.
        start : LinearSolution
            Weights to start from.

        Returns
        -------
        GroupSolution
            Weights (D, t) and intercepts (t,).
        """
        penalty, curvature = self.penalty.with_alpha(alpha), self.loss.curvature
        # Divide the bound by the curvature, so that the metric itself is the matrix of its quadratic part.
        bound = penalty.with_alpha(penalty.alpha / curvature)

        def evaluate(x: np.ndarray) -> ObjectiveValue:
            values, gradient = self._pass(x)
            residuals = penalty.residuals(x[:-1], gradient[:-1])
            used = np.flatnonzero(((residuals > self.tolerance) | (penalty.norms(x[:-1]) > 0)).any(axis=1))
            intercepts = np.abs(gradient[-1]) / alpha
            if penalty.shared:
                values, intercepts = values.sum(keepdims=True), intercepts.max(keepdims=True)
            return ObjectiveValue(
                values + penalty.values(x[:-1]),
                np.maximum(residuals.max(axis=0), intercepts),
                (gradient, used),
            )

        def step(x: np.ndarray, at: ObjectiveValue) -> np.ndarray:
            gradient, used = at.more
            V = self.metric.H @ x[:-1] - gradient[:-1] / curvature
            W = self.metric.sweep(x[:-1], V, bound, used)
            return np.vstack([W, x[-1] - gradient[-1] / (curvature * self._count)])

        x = np.vstack([start.coef, start.intercept + self._mean @ start.coef])
        end = descend(evaluate, step, x, self.tolerance, self.max_passes)
        residual = float(end.at.residuals.max())
        if self.warns:
            warn_if_short(residual, self.tolerance, alpha, end.evaluations)
        W = end.x[:-1]
        return GroupSolution(
            W, end.x[-1] - self._mean @ W, float(alpha), float(end.at.values.sum()), residual,
            end.evaluations,
        )  # fmt: skip

    def _at_zero(self) -> np.ndarray:
        """Return zero weights and the intercepts that are best with them, (D + 1, t)."""
        if self._zero is not None:
            return self._zero

        def evaluate(x: np.ndarray) -> ObjectiveValue:
            values, gradient = self._pass(x)
            return ObjectiveValue(values, np.abs(gradient[-1]) / self._count, gradient[-1])

        def step(x: np.ndarray, at: ObjectiveValue) -> np.ndarray:
            moved = x.copy()
            moved[-1] -= at.more / (self.loss.curvature * self._count)
            return moved

        x = np.zeros((self._shape[0] + 1, self._shape[1]))
        self._zero = descend(evaluate, step, x, self.tolerance, _INTERCEPT_STEPS).x
        return self._zero

    def _pass(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the summed losses (t,) and their gradients (D + 1, t) in the weights of centred features."""
        W = x[:-1]
        sums = self.rows(LossAt(self.loss, W, x[-1] - self._mean @ W, np.float64))
        if sums.count == 0:
            raise DataError("no rows: the chunks of a pass are empty.")
        values, gradient = sums.values, np.vstack([sums.coef, sums.intercept])
        if not (np.isfinite(values).all() and np.isfinite(gradient).all()):
            raise DataError(
                f"the objective of the {self.loss.name} loss is not finite: the targets y are too large, or the "
                "features of a channel are. Divide the targets by their scale."
            )
        gradient[:-1] -= np.outer(self._mean, gradient[-1])
        return values, gradient


def metric_of(whole: Moments, penalty: L21) -> GroupQuadratic:
    """Return Hc with a small ridge, which bounds the Hessian of a loss of curvature 1 over these rows."""
    square = full_scatter(whole)
    square[np.diag_indices_from(square)] += _LEAST_RIDGE * float(np.trace(square)) or 1.0
    return GroupQuadratic(square, penalty)
