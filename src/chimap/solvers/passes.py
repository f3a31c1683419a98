"""Smooth losses by passes over the rows: L-BFGS that starts from the ridge solution.

The problem is

    min_{w, b}  sum_i w_i loss(y_i, z_i'w + b) + alpha/2 |w|^2,

whitened by a Cholesky factor of Hc + alpha/curvature I from the moments, D^3/3 operations per strength. Each step of
``lbfgs`` is one pass over the rows in O(n D t) operations; memory holds the factor and some ``2 PAIRS + 15`` arrays of
the size of the weights (D, t).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np

from chimap.losses import CATALOGUE, Loss, LossAt, LossSums, named
from chimap.moments import FoldMoments, Moments, of_entries, of_rows
from chimap.penalties import L2
from chimap.solvers.base import Evidence, Needs, Solver, TrialProblem, required
from chimap.solvers.fold import Fold
from chimap.solvers.held_out import HeldOut, ValidationRows, by_folds, curvatures, left_out, leverages
from chimap.solvers.lbfgs import PAIRS, lbfgs
from chimap.solvers.ridge import Factor, LinearSolution

_LEAST_RIDGE = 1e-7  # least share of the trace on the whitening matrix's diagonal: exceeds float32 rounding
# Tolerance of the whitened gradient. On MNIST with 1024 features, 3e-3 leaves 1 to 2 % of the objective and tells
# strengths apart, 1e-3 leaves half a percent; the accuracy is the same from 1e-3 on.
TOLERANCE = 3e-4
_SEARCH_TOLERANCE = 3e-3


class PassesProblem(TrialProblem):
    """A smooth loss, whitened by the moments of all rows. Every step of L-BFGS is a pass over the rows."""

    needs: ClassVar[Needs] = "rows"
    counts: ClassVar[str] = "passes"
    stage: ClassVar[str] = "passes"
    moments: FoldMoments
    loss: Loss

    def __init__(self, loss: str | Loss, evidence: Evidence):
        self.moments, self.rows = required(evidence.moments, "moments"), required(evidence.rows, "rows")
        moments = self.moments
        self.whole = moments.whole()
        self.loss = loss_of(loss, self.whole)
        self._held_folds = evidence.held_folds
        # Losses of real targets in their own units, which widths are given in, are as large as their deviations.
        deviations = np.sqrt(np.maximum(self.whole.target_scatter(), 0) / self.whole.count)
        has_own_units = self.loss.domain == "real" and deviations.size > 1
        self._spreads = np.where(deviations > 0, deviations, 1.0) if has_own_units else 1.0
        self.n_folds, self.passes = len(moments.folds), 0
        self._on_pass = evidence.progress.advance
        self._factor = Factor(self.whole.n_features)
        self._whitened: tuple[float, int | None] | None = None  # the ridge in the factor, and the fold that is not
        self._best: tuple[float, LinearSolution] | None = None  # loss and solution of the best trial

    @property
    def n_rows(self) -> int:
        return self.whole.n_rows

    def usual_alpha(self) -> float:
        """Return the mean scatter of a feature, times the largest curvature of the loss."""
        return float(self.whole.scatter_diagonal().mean() or 1.0) * self.loss.usual_curvature

    def solve(self, alpha: float) -> LinearSolution:
        """See ``Problem``. The search starts from the best trial, if that had this strength."""
        best = self._best and self._best[1]
        start = best if best is not None and best.alpha == alpha else self._ridge(alpha)
        return unshifted(self._fit(alpha, None, start, TOLERANCE), self.whole)

    def trial(self, alpha: float) -> float:
        """See ``TrialProblem``.

        The search does not start from the solution of the previous strength: on rows that are easily separated, that
        solution is within the tolerance at once, and the strengths could not be compared.
        """
        solution = self._fit(alpha, 0, self._ridge(alpha, 0), _SEARCH_TOLERANCE)
        sums = self.rows.sums(LossAt(self.loss, solution.coef, solution.intercept), [0])
        loss = float((sums.values / self._spreads).sum()) / sums.count
        if self._best is None or (loss, -alpha) < (self._best[0], -self._best[1].alpha):
            self._best = loss, solution
        return loss

    def held_out(self, solution: LinearSolution, validation: ValidationRows | None) -> HeldOut | None:
        """See ``Problem``.

        Rows of groups are left out with their folds, and so are those of quantiles where there are folds: of a row
        that such a model meets, a Newton step knows no slope. Of other rows, those of fold 0 are answered by the best
        model of the trials, if they are enough to calibrate by and no class is rare among them; otherwise all
        validation rows, each left out by a Newton step.
        """
        if validation is None:
            return None
        if validation.leaves_folds or (self.loss.has_plateau and self.n_folds > 1):
            without = partial(self._without, solution)
            return by_folds(validation, without, self.whole.shifts[1], self._held_folds)
        best = self._best and self._best[1]
        if best is not None and best.alpha == solution.alpha and self._held_folds == (0,):
            return by_folds(validation, lambda fold: best, self.whole.shifts[1], [0])
        return step_outputs(self.loss, shifted(solution, self.whole), solution.alpha, self.whole, validation)

    def _without(self, solution: LinearSolution, fold: int) -> LinearSolution:
        """Return the model of all folds but one, for features and targets less their shifts.

        It is as close to its minimum as the model of all folds: at a weak strength, outputs grow to the end.
        """
        best = self._best and self._best[1]
        is_tried = fold == 0 and best is not None and best.alpha == solution.alpha
        start = best if is_tried and best is not None else self._ridge(solution.alpha, fold)
        return self._fit(solution.alpha, fold, start, TOLERANCE)

    def _ridge(self, alpha: float, without: int | None = None) -> LinearSolution:
        """Return an estimate of the minimum: ridge on all folds but one, at the strength that shrinks as much.

        It must not know the fold: a search may end before it has forgotten its start.
        """
        self._whiten(alpha, without)
        whole = self.whole
        if without is None:
            coef = self._factor.solve(whole.cross_scatter())
            sums, target_sums, count = whole.feature_sum, whole.target_sum, whole.count
        else:
            fold = self.moments.folds[without]
            coef = self._factor.solve(Fold(fold, whole).train_cross)
            sums, target_sums = whole.feature_sum - fold.feature_sum, whole.target_sum - fold.target_sum
            count = whole.count - fold.count
        coef, at_mean = self.loss.begin(coef, target_sums / count)
        return LinearSolution(coef, at_mean - (sums / count) @ coef, alpha)

    def _others(self, without: int | None) -> list[int]:
        """Return all folds but one; None for all."""
        return [k for k in range(self.n_folds) if k != without]

    def _fit(self, alpha: float, without: int | None, start: LinearSolution, tolerance: float) -> LinearSolution:
        """Fit features less the shift, of all folds but one; None for all.

        The search is about their mean, as is the whitening matrix, so that it does not depend on the shift.
        """
        self._whiten(alpha, without)
        folds = self._others(without)
        parts = [self.moments.folds[k] for k in folds]
        mean = np.sum([part.feature_sum for part in parts], axis=0) / sum(part.count for part in parts)

        def sums(at: LossAt) -> LossSums:
            self._on_pass()
            sums = self.rows.sums(replace(at, intercept=at.intercept - mean @ at.coef), folds)
            sums.coef -= np.outer(mean, sums.intercept)
            return sums

        begin = replace(start, intercept=start.intercept + mean @ start.coef)
        end = lbfgs(self.loss, sums, alpha, begin, whitening=self._factor, tolerance=tolerance)
        self.passes += end.passes
        return replace(end, intercept=end.intercept - mean @ end.coef)

    def _whiten(self, alpha: float, without: int | None) -> None:
        """Factorise the scatter of all folds but one with the ridge that goes with a strength."""
        least = _LEAST_RIDGE * float(self.whole.scatter_diagonal().sum())
        ridge = max(alpha / self.loss.usual_curvature, least)
        if (ridge, without) != self._whitened:
            self._whitened = None  # stays None if the factorisation fails
            less = None if without is None else Fold(self.moments.folds[without], self.whole).take_from
            self._factor.of(self.whole, ridge, less)
            self._whitened = ridge, without


class PassesSolver(Solver):
    """L-BFGS, one pass over the rows per step, over features in memory where they fit."""

    name: ClassVar[str] = "lbfgs"
    needs: ClassVar[Needs] = "rows"
    n_vectors: ClassVar[int] = 2 * PAIRS + 15  # those of L-BFGS-B, and temporary weights and gradients

    def supports(self, loss: str | Loss, penalty: type = L2) -> bool:
        return penalty is L2 and (isinstance(loss, Loss) or loss in CATALOGUE)

    def problem(self, loss: str | Loss, evidence: Evidence) -> PassesProblem:
        return PassesProblem(loss, evidence)


def loss_of(loss: str | Loss, whole: Moments) -> Loss:
    """Return the loss, given itself or its name; its widths are in units of the targets' standard deviation.

    Several targets have one in their units (``Codec``), so that the mean over them is that of each.
    """
    spread = float(np.sqrt(whole.target_scatter().mean() / whole.count)) or 1.0
    return (named(loss, spread) if isinstance(loss, str) else loss).fitted(spread, float(whole.target_mean.mean()))


def shifted(solution: LinearSolution, moments: Moments, sign: int = -1) -> LinearSolution:
    """Return the same function of features and targets less the shifts of the moments (sign -1), or unshifted (1)."""
    intercept = solution.intercept - sign * (moments.shift @ solution.coef - moments.target_shift)
    return LinearSolution(solution.coef, intercept, solution.alpha)


def unshifted(solution: LinearSolution, moments: Moments) -> LinearSolution:
    """Return the same function of unshifted features and targets."""
    return shifted(solution, moments, 1)


def step_outputs(
    loss: Loss, solution: LinearSolution, strengths: float | np.ndarray, moments: Moments, validation: ValidationRows
) -> HeldOut:
    """Return outputs of the validation rows by a model of all rows, each row left out by a Newton step.

    ``solution`` is for features less the shift; ``strengths`` of the ridge are a number or (D,). The matrix of the step
    uses the mean curvature of the loss for all rows.
    """
    outputs = validation.Z @ solution.coef + solution.intercept
    weights = np.ones(outputs.shape[0]) if validation.weights is None else validation.weights
    entry_weights, mean = of_entries(weights), of_rows(weights)[:, None]
    counted = np.ones(outputs.shape) if validation.counted is None else of_entries(validation.counted)
    bends = counted * curvatures(loss, validation.Y, outputs)
    curvature = max(float(bends.sum() / np.broadcast_to(counted, bends.shape).sum()), 1e-3 * loss.usual_curvature)
    least = _LEAST_RIDGE * float(moments.scatter_diagonal().sum())
    h = leverages(moments, np.maximum(np.divide(strengths, curvature), least), validation.Z)
    # The matrix weighs rows by their mean weights, a target by its own weights, scaled here to the same sum.
    scaled = entry_weights * (mean.mean() / entry_weights.mean(axis=0))
    h = h[:, None] * scaled / (1 + h[:, None] * (scaled - mean))
    return HeldOut(validation.rows, left_out(loss, validation.Y, outputs, h, curvature) + moments.shifts[1])
