"""Smooth losses by passes over the rows: L-BFGS from the ridge solution on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from chimap.losses import CATALOGUE, FeatureRows, Loss, LossAt, LossSums, named
from chimap.moments import FoldMoments, Moments, of_entries, of_rows
from chimap.solvers.base import Evidence, Needs
from chimap.solvers.held_out import HeldOut, Witnesses, curvatures, left_out, leverages
from chimap.solvers.lbfgs import PAIRS, lbfgs
from chimap.solvers.posterior import Posterior
from chimap.solvers.ridge import Factor, LinearSolution, solution

_LEAST_RIDGE = 1e-7  # of the trace, in the matrix that whitens: beyond the rounding of float32 products
# Of the whitened gradient. MNIST, 1024 features: 3e-3 leaves 1 to 2 % of the objective and tells strengths apart, 1e-3
# half a percent; the accuracy is the same from 1e-3 on.
_TOLERANCE = 3e-4
_FEWEST_OF_FOLD = 100  # rows; on 28 of a fold probabilities were off by .07, on 140 by the step by .02
_SEARCH_TOLERANCE = 3e-3


class PassesProblem:
    """A smooth loss, whitened by the moments of all rows; every step of L-BFGS is a pass over them."""

    def __init__(
        self, loss: str | Loss, moments: FoldMoments, rows: FeatureRows, on_pass: Callable[[], None]
    ):
        self.moments, self.rows, self.whole = moments, rows, moments.whole()
        self.loss = loss_of(loss, self.whole)
        self.n_folds, self.passes = len(moments.folds), 0
        self._on_pass = on_pass
        self._factor = Factor(self.whole.n_features)
        self._ridged: float | None = None  # what the factor has on its diagonal
        self._best: tuple[float, LinearSolution] | None = None  # of the trials

    @property
    def n_rows(self) -> int:
        """See ``Problem``."""
        return self.whole.n_rows

    def usual_alpha(self) -> float:
        """The mean scatter of a feature, at the largest curvature of the loss."""
        return float(self.whole.scatter_diagonal().mean() or 1.0) * self.loss.curvature

    def solve(self, alpha: float) -> LinearSolution:
        """See ``Problem``; from the best of the trials on, if it was at this strength."""
        best = self._best and self._best[1]
        start = best if best is not None and best.alpha == alpha else self._ridge(alpha)
        return unshifted(self._fit(alpha, range(self.n_folds), start, _TOLERANCE), self.whole)

    def trial(self, alpha: float) -> float:
        """See ``Trials``.

        Not from the solution of the strength before: where rows are told apart with room to spare it is within the
        tolerance at once, and strengths could not be compared.
        """
        solution = self._fit(alpha, range(1, self.n_folds), self._ridge(alpha), _SEARCH_TOLERANCE)
        sums = self.rows.sums(LossAt(self.loss, solution.coef, solution.intercept), [0])
        loss = float(sums.values.sum()) / sums.count
        if self._best is None or (loss, -alpha) < (self._best[0], -self._best[1].alpha):
            self._best = loss, solution
        return loss

    def held_out(self, solution: LinearSolution, witnesses: Witnesses | None) -> HeldOut | None:
        """See ``Problem``: fold 0 by the best machine of the trials, where it has rows enough to calibrate by; or each
        row left out by a step of Newton."""
        if witnesses is None:
            return None
        best = self._best and self._best[1]
        is_enough = np.count_nonzero(witnesses.folds == 0) >= _FEWEST_OF_FOLD
        if best is not None and best.alpha == solution.alpha and is_enough:
            return fold_outputs(best, self.whole, witnesses)
        return step_outputs(self.loss, shifted(solution, self.whole), solution.alpha, self.whole, witnesses)

    def posterior(self, solution: LinearSolution) -> Posterior | None:
        """See ``Problem``: there is none."""
        return None

    def _ridge(self, alpha: float) -> LinearSolution:
        """Ridge at the strength that shrinks as much at the largest curvature of the loss."""
        self._whiten(alpha)
        ridge = solution(self.whole, self._factor.solve(self.whole.cross_scatter()), alpha)
        return shifted(ridge, self.whole)

    def _fit(
        self, alpha: float, folds: Sequence[int], start: LinearSolution, tolerance: float
    ) -> LinearSolution:
        """Of features less the shift; the search is about their mean, which the matrix that whitens is of, so that it
        does not depend on the shift."""
        self._whiten(alpha)
        mean = self.whole.feature_sum / self.whole.count

        def sums(at: LossAt) -> LossSums:
            self._on_pass()
            sums = self.rows.sums(replace(at, intercept=at.intercept - mean @ at.coef), folds)
            sums.coef -= np.outer(mean, sums.intercept)
            return sums

        begin = replace(start, intercept=start.intercept + mean @ start.coef)
        end = lbfgs(self.loss, sums, alpha, begin, whitening=self._factor, tolerance=tolerance)
        self.passes += end.passes
        return replace(end, intercept=end.intercept - mean @ end.coef)

    def _whiten(self, alpha: float) -> None:
        least = _LEAST_RIDGE * float(self.whole.scatter_diagonal().sum())
        ridge = max(alpha / self.loss.curvature, least)
        if ridge != self._ridged:
            self._ridged = None  # while there is no factor
            self._factor.of(self.whole, ridge)
            self._ridged = ridge


class PassesSolver:
    """L-BFGS, one pass over the rows a step, over features in memory where they fit."""

    name: ClassVar[str] = "lbfgs"
    needs: ClassVar[Needs] = "rows"
    n_vectors: ClassVar[int] = 2 * PAIRS + 15  # L-BFGS-B's own, and weights and gradients on their way

    def supports(self, loss: str | Loss) -> bool:
        """See ``Solver``."""
        return isinstance(loss, Loss) or loss in CATALOGUE

    def problem(self, loss: str | Loss, evidence: Evidence) -> PassesProblem:
        """See ``Solver``."""
        if evidence.moments is None or evidence.rows is None:
            raise TypeError("L-BFGS needs moments, and rows to pass over")
        return PassesProblem(loss, evidence.moments, evidence.rows, evidence.on_step)


def loss_of(loss: str | Loss, whole: Moments) -> Loss:
    """A loss, by its name or itself; its widths are in units of the targets' standard deviation."""
    spread = float(np.sqrt(whole.target_scatter().sum() / whole.count)) or 1.0
    return named(loss, spread) if isinstance(loss, str) else loss


def shifted(solution: LinearSolution, moments: Moments, sign: int = -1) -> LinearSolution:
    """The same function of features and targets less the shifts of the moments (sign -1), or with them again (1)."""
    intercept = solution.intercept - sign * (moments.shift @ solution.coef - moments.target_shift)
    return LinearSolution(solution.coef, intercept, solution.alpha)


def unshifted(solution: LinearSolution, moments: Moments) -> LinearSolution:
    """The same function of the features and targets as they are."""
    return shifted(solution, moments, 1)


def fold_outputs(solution: LinearSolution, moments: Moments, witnesses: Witnesses) -> HeldOut:
    """Outputs of the witnesses of fold 0 by a machine of the other folds; solution: for features less the shift."""
    held = witnesses.of(np.flatnonzero(witnesses.folds == 0))
    return HeldOut(held.rows, held.Z @ solution.coef + solution.intercept + moments.shifts[1])


def step_outputs(
    loss: Loss,
    solution: LinearSolution,
    strengths: float | np.ndarray,
    moments: Moments,
    witnesses: Witnesses,
) -> HeldOut:
    """Outputs of the witnesses by a machine of all rows, each row left out; solution: for features less the shift.

    strengths: of the ridge, one or (D,). The matrix of the step takes the mean curvature of the loss for all rows.
    """
    outputs = witnesses.Z @ solution.coef + solution.intercept
    weights = np.ones(outputs.shape[0]) if witnesses.weights is None else witnesses.weights
    each, mean = of_entries(weights), of_rows(weights)[:, None]
    bends = each * curvatures(loss, witnesses.Y, outputs)
    curvature = max(float(bends.mean() / each.mean()), 1e-3 * loss.curvature)
    least = _LEAST_RIDGE * float(moments.scatter_diagonal().sum())
    h = leverages(moments, np.maximum(np.divide(strengths, curvature), least), witnesses.Z)
    # the matrix has rows by their mean weights, and a target by its own, which are brought to the same sum
    own = each * (mean.mean() / each.mean(axis=0))
    h = h[:, None] * own / (1 + h[:, None] * (own - mean))
    return HeldOut(witnesses.rows, left_out(loss, witnesses.Y, outputs, h, curvature) + moments.shifts[1])
