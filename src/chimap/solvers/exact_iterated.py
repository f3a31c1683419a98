"""Losses of counts and of quantiles on a kernel matrix in memory, by ridge whose weights and targets are iterated.

The problem of each target is

    min_{a, b}  sum_i w_i loss(y_i, f(x_i)) + alpha/2 |f|^2,   f = sum_j K(., x_j) a_j + b.

About the outputs of the last step, the loss of a row is replaced by a parabola of second derivative v_i (``Loss.bend``)
and least value at z_i = f(x_i) - loss'(y_i, f(x_i)) / v_i, and

    (K + alpha diag(1/(w v))) a + 1 b = z,  1'a = 0

is ridge (``exact.DualRidge``): n^3/3 operations per step and target. For counts this is Newton's method, which takes
half a dozen steps; for quantiles the parabola lies above the loss, so that every step lowers the objective, and longer
steps along the same line, which cost no factor, are tried as well. Memory holds the kernel matrix (n, n) alone.

Leaving out a row, or a group, is exact for the parabolas of the last step: one Newton step from the solution.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap._messages import Message
from chimap.losses import Loss
from chimap.moments import of_entries, of_rows
from chimap.solvers.exact import STEPS, DualPoint, DualRidge, DualSolution, ExactSolver, check_latest

_MOST_STEPS = 100
_LEAST_GAIN = 1e-6  # least relative gain of a step: less is the rounding of kernel values in float32
_LEAST_SHARE = 1e-4  # least second derivative of a row, as a share of the mean: a smaller one makes a step too long
_LONGER = (1.0, 2.0, 4.0, 8.0)  # lengths that are tried along a step
_MOST_HALVINGS = 20
_MOST_COST = 1e3  # objective of a first step, relative to that without weights, beyond which it is rounding alone


class DualIterated(ExactSolver):
    """Minimise sum_i w_i loss(y_i, f(x_i)) + alpha/2 |f|^2 with f = sum_j K(., x_j) a_j + b, b not penalised.

    Parameters
    ----------
    square, diagonal : ndarray
        As in ``DualRidge``.
    Y : ndarray of shape (n, t), float64
        Targets, NaN where an entry is missing.
    row_weights : ndarray of shape (n,) or (n, t), default=None
        Positive weights. None is 1 for all.
    loss : Loss
        The loss; what is open in it is set for these targets.
    steps : int, default=3
        Refinement steps of each ridge solution, as in ``DualRidge``.

    References
    ----------
    Green, Iteratively reweighted least squares for maximum likelihood estimation (1984); Hunter and Lange, Quantile
    regression via an MM algorithm (2000); Rad and Maleki, A scalable estimate of the out-of-sample prediction error via
    approximate leave-one-out (2020), for the rows left out.
    """

    begins_at: ClassVar[int] = 0  # a smaller strength takes more steps

    def __init__(
        self,
        square: np.ndarray,
        diagonal: np.ndarray,
        Y: np.ndarray,
        row_weights: np.ndarray | None = None,
        *,
        loss: Loss,
        steps: int = STEPS,
    ):
        self.square, self.diagonal, self.Y, self._steps = square, diagonal, Y, steps
        self._seen = ~np.isnan(Y)
        weights = np.ones(Y.shape[0]) if row_weights is None else row_weights
        self._weights = np.where(self._seen, of_entries(weights), 0.0)
        self._mean_weight = float(of_rows(weights).mean())
        filled = np.where(self._seen, Y, 0.0)
        counts = np.maximum(self._weights.sum(axis=0), np.finfo(float).tiny)
        self._means = (self._weights * filled).sum(axis=0) / counts
        spread = float(np.nanstd(Y)) or 1.0
        self.loss = loss.fitted(spread, float(self._means.mean()))
        self._targets = np.where(self._seen, Y, self._means)
        _, self._constants = self.loss.begin(np.zeros((1, Y.shape[1])), self._means)
        self._outputs = np.tile(
            self._constants, (Y.shape[0], 1)
        )  # of the last solutions, from which the next ones begin
        self._last: tuple[float, list[DualPoint]] | None = None

    def scale(self) -> float:
        """See ``ExactSolver``; times the usual second derivative of the loss."""
        scatter = DualRidge(self.square, self.diagonal, self.Y).scale() * self._mean_weight
        return scatter * self.loss.usual_curvature

    def solve(self, alpha: float) -> DualSolution | None:
        self._last = None
        points = list[DualPoint]()
        for t in range(self.Y.shape[1]):
            point = self._target(t, alpha)
            if point is None:
                return None
            points.append(point)
        self._outputs = np.column_stack([point.outputs for point in points])
        self._last = alpha, points
        return DualSolution(
            np.column_stack([point.weights for point in points]), np.array([point.intercept for point in points]), alpha
        )

    def leave_one_out(self, solution: DualSolution, first: int = 0) -> np.ndarray:

        residuals = np.full((self.Y.shape[0] - first, self.Y.shape[1]), np.nan)
        for t in range(self.Y.shape[1]):
            if (step := self._last_step(t, solution)) is not None:
                ridge, solved, z = step
                residuals[:, t] = self.Y[first:, t] - (z[first:] - ridge.leave_one_out(solved, first)[:, 0])
        return residuals

    def leave_out(self, solution: DualSolution, groups: Sequence[np.ndarray]) -> list[np.ndarray]:
        left_out = [np.full((group.size, self.Y.shape[1]), np.nan) for group in groups]
        for t in range(self.Y.shape[1]):
            if (step := self._last_step(t, solution)) is not None:
                ridge, solved, z = step
                for k, residuals in enumerate(ridge.leave_out(solved, groups)):
                    left_out[k][:, t] = self.Y[groups[k], t] - (z[groups[k]] - residuals[:, 0])
        return left_out

    def _target(self, t: int, alpha: float) -> DualPoint | None:
        """Return the model of a target, None where the matrix is singular to rounding.

        Such a matrix gives weights without meaning, whose objective is above that of no weights at all.
        """
        constant = np.full(self.Y.shape[0], self._constants[t])
        most = _MOST_COST * self._cost(t, alpha, DualPoint(np.zeros_like(constant), self._constants[t], constant))
        best = self._step(t, alpha, self._outputs[:, t])
        if best is None or not self._cost(t, alpha, best) <= most:
            best = self._step(t, alpha, constant)
        if best is None or not self._cost(t, alpha, best) <= most:
            return None
        cost = self._cost(t, alpha, best)
        for _ in range(_MOST_STEPS):
            new = self._step(t, alpha, best.outputs)
            if new is None:
                return None
            lengths = [best.towards(new, length) for length in _LONGER]
            costs = [self._cost(t, alpha, point) for point in lengths]
            place = int(np.argmin(costs))
            if costs[place] > cost:
                lengths = [best.towards(new, 0.5**k) for k in range(1, _MOST_HALVINGS)]
                costs = [self._cost(t, alpha, point) for point in lengths]
                place = int(np.argmin(costs))
            gain, before = cost - costs[place], cost
            if gain > 0:
                best, cost = lengths[place], costs[place]
            if gain <= _LEAST_GAIN * abs(before):
                return best
        warnings.warn(
            Message(
                "iterated weights stopped after {} steps at {alpha=:g}. Give a larger {alpha}.", _MOST_STEPS, alpha
            ),
            ConvergenceWarning,
            stacklevel=2,
        )
        return best

    def _step(self, t: int, alpha: float, outputs: np.ndarray) -> DualPoint | None:
        """Return the minimum of the parabolas about these outputs."""
        solved = self._solved(t, alpha, outputs, self.loss_of(t).bend)
        if solved is None:
            return None
        ridge, solution, z = solved
        weights = solution.weights[:, 0]
        return DualPoint(weights, float(solution.intercept[0]), z - ridge.inverse_weights * alpha * weights)

    def _solved(
        self, t: int, alpha: float, outputs: np.ndarray, bend: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> tuple[DualRidge, DualSolution, np.ndarray] | None:
        """Return ridge on parabolas about these outputs, its solution, and where they are least, (n,).

        ``bend(targets, outputs)`` returns their second derivatives.
        """
        y, seen = self._targets[:, t], self._seen[:, t]
        bends = np.where(seen, bend(y, outputs), 0.0)
        # A missing entry has a flat parabola whose least value is where the output is: it pulls nowhere.
        bends = np.maximum(bends, _LEAST_SHARE * bends.sum() / max(1, seen.sum()))
        slopes = np.where(seen, self.loss_of(t).gradient(y, outputs), 0.0)
        z = outputs - slopes / bends
        weights = bends * np.where(seen, self._weights[:, t], self._mean_weight)
        ridge = DualRidge(self.square, self.diagonal, z[:, None], weights, self._steps)
        solution = ridge.solve(alpha)
        self._operations += ridge.operations
        return None if solution is None else (ridge, solution, z)

    def _last_step(self, t: int, solution: DualSolution) -> tuple[DualRidge, DualSolution, np.ndarray] | None:
        """Return Newton's step from the latest solution of a target, with its factor in memory; None if singular."""
        check_latest(None if self._last is None else self._last[0], solution)
        assert self._last is not None
        outputs = self._last[1][t].outputs
        return self._solved(t, solution.alpha, outputs, self.loss_of(t).second_derivative)

    def _cost(self, t: int, alpha: float, point: DualPoint) -> float:
        """Return the objective of a target."""
        losses = self.loss_of(t).value(self._targets[:, t], point.outputs)
        return float(self._weights[:, t] @ losses + alpha / 2 * point.norm)

    def loss_of(self, t: int) -> Loss:
        """Return the loss of a target: that of its quantile, if there are several."""
        return self.loss.of_score(t % self.loss.n_scores)
