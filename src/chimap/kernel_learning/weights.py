"""Weights of several kernels: an objective with the l21 norm, its path, and the choice of one of its strengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from chimap._types import Parameters
from chimap._validation import DataError
from chimap.engines import Job, Progress, Stopwatch
from chimap.fit.design import FeatureBlock
from chimap.fit.solving import check_choosing
from chimap.losses import FeatureRows, Loss, LossAt, LossSums, Square
from chimap.moments import FoldMoments, Symmetric
from chimap.penalties import L21
from chimap.selection import SelectionResult, of_path
from chimap.selection.choose import ChosenSolution
from chimap.solvers import GroupSolution, LinearSolution, LossProblem, SquareProblem, follow
from chimap.solvers.base import Evidence, Needs, collected
from chimap.solvers.catalogue import solver_of
from chimap.solvers.groups import KernelPath, held_out_errors, largest_alpha, metric_of
from chimap.solvers.held_out import by_folds
from chimap.solvers.passes import loss_of, shifted, step_outputs, unshifted
from chimap.solvers.sparse import alphas_below

SEARCH_TOLERANCE = 1e-3  # tolerance of residuals while strengths are compared
# A path by passes ends at this share of the largest strength: the number of passes grows as the strength falls.
SMALLEST = 1e-2
_SEARCH_PASSES = 60  # most passes per strength while strengths are compared
_PATIENCE = 4  # a search by passes ends after this number of strengths without a lower held-out loss


@dataclass(frozen=True)
class KernelWeights:
    """sum loss + alpha sum_j weight_j |w_j|_2 over channels j; see ``MultipleKernelLearner``.

    alpha: one strength, several, or None for a path of ``n_alphas``. counts_iterations: whether ``n_iter_`` is the
    number of passes.
    """

    leaves_out: ClassVar[bool] = False
    loss: str | Loss
    alpha: float | tuple[float, ...] | None
    n_alphas: int
    group_weights: Sequence[float] | None
    shared: bool
    counts_iterations: bool

    @property
    def needs(self) -> Needs:
        """See ``Objective``."""
        return solver_of(self.loss).needs

    @property
    def n_vectors(self) -> int:
        """See ``Objective``."""
        return solver_of(self.loss).n_vectors

    @property
    def has_gcv(self) -> bool:
        """See ``Objective``: groups of features are in or out, which has no closed form."""
        return False

    def check(self, given: Parameters) -> None:
        """See ``Objective``."""
        check_choosing(given, self.loss, has_gcv=False)

    def footprint(self, job: Job, parts: list[FeatureBlock]) -> Job:
        """Add memory for moments outside a fold, the eigenvectors of the blocks, and their workspace."""
        sizes = [part.footprint.features for part in parts]
        rest_bytes = Symmetric.nbytes(job.n_features) if job.n_folds > 1 else 0
        return replace(job, solver_bytes=rest_bytes + 8 * (sum(m * m for m in sizes) + 3 * max(sizes) ** 2))

    def penalty(self, features: Any) -> L21:
        """Return the norm over the channels of the features."""
        borders = features.borders_.tolist()
        groups = [slice(a, b) for a, b in pairwise(borders)]
        return L21(1.0, groups, borders[-1], self.group_weights, self.shared)

    def path_of(self, largest: float, share: float) -> np.ndarray:
        """Return descending strengths: those given, or a path from the largest to a share of it."""
        if self.alpha is None:
            return alphas_below(largest, self.n_alphas, share)
        return np.sort(np.atleast_1d(np.asarray(self.alpha, dtype=np.float64)))[::-1]

    def learn(
        self, evidence: Evidence, features: Any, clock: Stopwatch, progress: Progress
    ) -> ChosenSolution:
        """See ``Objective``."""
        penalty, moments = self.penalty(features), collected(evidence.moments, "moments")
        if evidence.rows is None:
            return self._from_moments(moments, penalty, clock, progress, evidence)
        return self._by_passes(moments, evidence.rows, penalty, clock, progress, evidence)

    def _from_moments(
        self,
        moments: FoldMoments,
        penalty: L21,
        clock: Stopwatch,
        progress: Progress,
        evidence: Evidence,
    ) -> ChosenSolution:
        whole, witnesses = moments.whole(), evidence.witnesses
        alphas = self.path_of(largest_alpha(whole, penalty), 1e-3)
        result = None
        if len(moments.folds) > 1 and evidence.asked != "nothing":
            with clock("choose alpha"):
                progress.stage("alpha", len(moments.folds) * alphas.size, "values")
                errors = held_out_errors(
                    moments, whole, penalty, alphas, SEARCH_TOLERANCE, lambda solution: progress.advance()
                )
                result = of_path(moments, whole, alphas, errors)
        with clock("solve"):
            progress.stage("path", alphas.size, "values")
            path = follow(SquareProblem(whole, penalty), alphas, lambda solution: progress.advance())
        # With too few rows for folds, take the middle of the path.
        chosen = alphas.size // 2 if result is None else result.chosen
        shown = self._attributes(path[chosen], path, penalty, chosen, 1)
        held_out = None
        if witnesses is not None and witnesses.leaves_folds:

            def without(fold: int) -> LinearSolution:
                part = SquareProblem(whole - moments.folds[fold], penalty, SEARCH_TOLERANCE)
                return shifted(part.solve(path[chosen].alpha, part.zero()), whole)

            with clock("held out"):
                folds = np.unique(witnesses.folds).tolist()
                held_out = by_folds(witnesses, without, whole.shifts[1], folds)
        elif witnesses is not None:
            less_shift = shifted(path[chosen], whole)
            held_out = step_outputs(Square(), less_shift, _strengths(penalty, path[chosen]), whole, witnesses)
        return ChosenSolution(path[chosen], Square(), result, 1, whole.n_rows, shown, held_out)

    def _by_passes(
        self,
        moments: FoldMoments,
        rows: FeatureRows,
        penalty: L21,
        clock: Stopwatch,
        progress: Progress,
        evidence: Evidence,
    ) -> ChosenSolution:
        whole, n_folds, passes = moments.whole(), len(moments.folds), [0]
        witnesses, is_open = evidence.witnesses, evidence.asked != "nothing" and len(moments.folds) > 1
        loss = loss_of(self.loss, whole)
        with clock("solve"):
            metric = metric_of(whole, penalty)

        def problem_of(folds: Sequence[int], is_search: bool) -> LossProblem:
            def sums(at: LossAt) -> LossSums:
                passes[0] += 1
                progress.advance()
                return rows.sums(at, folds)

            if not is_search:
                return LossProblem(loss, sums, whole, penalty, metric=metric)
            return LossProblem(
                loss, sums, whole, penalty, SEARCH_TOLERANCE, _SEARCH_PASSES, metric, warns=False
            )

        everything = problem_of(range(n_folds), False)
        result = None
        if not is_open:
            with clock("passes"):
                progress.stage("passes", None, "passes")
                alphas = self.path_of(everything.largest, SMALLEST)
                path = follow(everything, alphas if alphas.size == 1 else alphas[: alphas.size // 2 + 1])
                chosen, solution = len(path) - 1, path[-1]
        else:
            with clock("choose alpha"):
                progress.stage("alpha", None, "passes")
                path, result = self._search(problem_of(range(1, n_folds), True), loss, rows)
                chosen = result.chosen
            with clock("passes"):
                progress.stage("passes", None, "passes")
                solution = everything.solve(path[chosen].alpha, path[chosen])
        shown = self._attributes(solution, path, penalty, chosen, passes[0])

        def without(fold: int) -> LinearSolution:
            """Return the model of all folds but one; the search has that without fold 0."""
            if fold == 0 and is_open:
                return path[chosen]
            others = [k for k in range(n_folds) if k != fold]
            problem = problem_of(others, True)
            return problem.solve(solution.alpha, problem.zero())

        held_out = None
        if witnesses is not None and (witnesses.leaves_folds or (is_open and evidence.held_folds == (0,))):
            with clock("held out"):
                held_out = by_folds(witnesses, without, whole.shifts[1], evidence.held_folds)
        elif witnesses is not None:
            held_out = step_outputs(loss, solution, _strengths(penalty, solution), whole, witnesses)
        return ChosenSolution(
            unshifted(solution, whole), loss, result, passes[0], whole.n_rows, shown, held_out
        )

    def _search(
        self, part: LossProblem, loss: Loss, rows: FeatureRows
    ) -> tuple[list[GroupSolution], SelectionResult]:
        """Follow the path down until the loss on fold 0 has not fallen for ``_PATIENCE`` strengths."""
        errors: list[float] = []

        def is_enough(solution: GroupSolution) -> bool:
            errors.append(held_out_loss(loss, rows, solution))
            return len(errors) - 1 - int(np.argmin(errors)) >= _PATIENCE

        path = follow(part, self.path_of(part.largest, SMALLEST), is_enough)
        tried = {"alpha": np.array([point.alpha for point in path])}
        scores, chosen = np.array(errors)[:, None], int(np.argmin(errors))
        return path, SelectionResult("holdout", tried, scores, np.ones(1), chosen, measure="loss")

    def _attributes(
        self, groups: GroupSolution, path: list[GroupSolution], penalty: L21, chosen: int, passes: int
    ) -> Parameters:
        def weights(solution: LinearSolution) -> np.ndarray:
            return np.ascontiguousarray(penalty.norms(solution.coef).T) / np.sqrt(2)

        shown = {
            "kernel_weights_": weights(groups),
            "kkt_residual_": groups.residual,
            "objective_": groups.objective,
            "path_": KernelPath(
                np.array([point.alpha for point in path]), np.array([weights(point) for point in path]),
                np.array([point.objective for point in path]), np.array([point.residual for point in path]), chosen,
            ),
        }  # fmt: skip
        return shown | ({"n_iter_": passes} if self.counts_iterations else {})


def held_out_loss(loss: Loss, rows: FeatureRows, solution: LinearSolution) -> float:
    """Return the mean loss over the rows of fold 0, summed over targets. Raise DataError if it has no rows."""
    sums = rows.sums(LossAt(loss, solution.coef, solution.intercept), [0])
    if sums.count == 0:
        raise DataError(
            "fold 0 holds no rows: there are too few to choose a strength. Use fewer folds, or give one strength."
        )
    return float(sums.values.sum()) / sums.count


def _strengths(penalty: L21, solution: LinearSolution) -> np.ndarray:
    """Return the strengths (D,) of the ridge penalty with the same gradient as the norm at the solution.

    They are weight_g alpha / |w_g|, the norms being means over targets. Features without weights get a strength beyond
    all others.
    """
    norms = penalty.norms(solution.coef).mean(axis=1)
    levels = solution.alpha * penalty.levels()
    group_strengths = np.divide(levels, norms, out=np.full(norms.shape, np.inf), where=norms > 0)
    largest = 1e9 * max(float(group_strengths[np.isfinite(group_strengths)].max(initial=0.0)), solution.alpha)
    strengths = np.empty(penalty.n_features)
    for members, strength in zip(penalty.members, group_strengths, strict=True):
        strengths[members] = min(strength, largest)
    return strengths
