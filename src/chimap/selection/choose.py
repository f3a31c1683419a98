"""Choose every setting that is open, and solve at the choice: one way for all solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from chimap._progress import Progress, Stopwatch
from chimap.losses import Loss
from chimap.selection.base import Compared, OpenSettings, Selection, SelectionResult
from chimap.selection.components import ComponentFolds
from chimap.selection.folds import Folds, PathFolds
from chimap.selection.gcv import GeneralisedCrossValidation
from chimap.selection.holdout import HeldOutMoments, HoldOut, PathHoldOut
from chimap.selection.learning_curve import LearningCurve, curve_of
from chimap.selection.leave_one_out import LeavingOut
from chimap.solvers.base import Problem
from chimap.solvers.findings import Findings
from chimap.solvers.held_out import HeldOut, ValidationRows
from chimap.solvers.posterior import DualPosterior, Posterior
from chimap.solvers.ridge import LinearSolution

RULES: dict[str, type[Selection]] = {
    "leave out": LeavingOut,
    "path folds": PathFolds,
    "path holdout": PathHoldOut,
    "component folds": ComponentFolds,
    "held-out moments": HeldOutMoments,
    "folds": Folds,
    "gcv": GeneralisedCrossValidation,
    "holdout": HoldOut,
}
"""The rules by the names that problems call them by (``Problem.rule``)."""


@dataclass(frozen=True)
class ChosenSolution:
    """The solution at the chosen settings, for features and targets without shifts, and how they were chosen.

    Parameters
    ----------
    solution : LinearSolution
        Weights, intercept and strength.
    loss : Loss or None
        The loss that was minimised; None for the hinge.
    selection : SelectionResult or None
        The candidates that were compared, if any.
    n_passes : int
        Passes over the rows; the passes within LIBLINEAR are not counted.
    n_rows : int
        Rows that the weights were learned from.
    findings : Findings, default=Findings()
        What else the solver has found.
    held_out : HeldOut or None, default=None
        Outputs of rows by machines that have not seen them.
    posterior : callable, default=lambda: None
        Computes, when called, how certain the solution is; returns None where that is not defined.
    curve : LearningCurve or None, default=None
        How the score grows with the rows, where the choice has shown it.
    """

    solution: LinearSolution
    loss: Loss | None
    selection: SelectionResult | None
    n_passes: int
    n_rows: int
    findings: Findings = field(default_factory=Findings)
    held_out: HeldOut | None = None
    posterior: Callable[[], Posterior | DualPosterior | None] = lambda: None
    curve: LearningCurve | None = None

    def moved(self, offsets: np.ndarray) -> ChosenSolution:
        """Return the same with outputs, and outputs of left-out rows, moved by offsets (t,)."""
        found, held_out = self.findings, self.held_out
        return replace(
            self,
            solution=replace(self.solution, intercept=self.solution.intercept + offsets),
            held_out=None if held_out is None else replace(held_out, outputs=held_out.outputs + offsets),
            findings=replace(found, held_out=None if found.held_out is None else found.held_out + offsets),
        )

    def in_units(self, units: np.ndarray | None) -> ChosenSolution:
        """Return the same for targets, and outputs of left-out rows, in other units, (t,); None for 1."""
        if units is None:
            return self
        solution, found, held_out = self.solution, self.findings, self.held_out
        if held_out is not None:
            noise = None if held_out.noise is None else held_out.noise * np.square(units)
            held_out = replace(held_out, outputs=held_out.outputs * units, noise=noise)
        return replace(
            self,
            solution=replace(solution, coef=solution.coef * units, intercept=solution.intercept * units),
            held_out=held_out,
            findings=replace(found, held_out=None if found.held_out is None else found.held_out * units),
        )


def compare(
    problem: Problem, open: OpenSettings, clock: Stopwatch | None = None, progress: Progress | None = None
) -> tuple[Compared, float]:
    """Compare what is open by the rule of the problem; return what was found, and the strength to take.

    If there are too few rows for it, the strength is the one given, the largest of several, or
    ``problem.usual_alpha()``.

    Parameters
    ----------
    problem, open, clock, progress
        See ``choose``.

    Returns
    -------
    compared : Compared
        What the rule found; no result where nothing was compared.
    alpha : float
        The strength.
    """
    clock, progress = clock or Stopwatch(), progress or Progress()
    name, compared = problem.rule, Compared(None, problem)
    if name is not None and (RULES[name].compares_more or not open.is_fixed):
        rule = RULES[name](progress.advance)
        with clock("choose alpha"):
            progress.stage("alpha", rule.usual_scores, problem.counts)
            compared = rule.choose(problem, open)
    if compared.result is not None:
        return compared, compared.result.best["alpha"]
    if compared.alpha is not None:
        return compared, compared.alpha
    given = open.alpha
    return compared, compared.problem.usual_alpha() if given is None else float(np.max(given))


def choose(
    problem: Problem,
    open: OpenSettings,
    validation: ValidationRows | None = None,
    clock: Stopwatch | None = None,
    progress: Progress | None = None,
) -> ChosenSolution:
    """Choose what is open by the rule of the problem, and solve it there.

    ``compare`` says which strength is taken if there are too few rows for a rule.

    Parameters
    ----------
    problem : Problem
        The problem of a solver.
    open : OpenSettings
        What is open.
    validation rows : Validation rows or None, default=None
        Rows whose held-out outputs are wanted.
    clock : Stopwatch or None, default=None
        Collects the seconds of each stage.
    progress : Progress or None, default=None
        Informed of the stages and of each step within them.

    Returns
    -------
    ChosenSolution
        The solution, and how it was chosen.
    """
    clock, progress = clock or Stopwatch(), progress or Progress()
    compared, alpha = compare(problem, open, clock, progress)
    problem, solution = compared.problem, compared.solution
    if solution is None:
        with clock(problem.stage):
            if problem.needs in ("rows", "features"):
                progress.stage("solving", None, problem.counts)
            solution = problem.solve(alpha)
    with clock("held out"):
        held_out = problem.held_out(solution, validation)
    growth = problem.growth
    return ChosenSolution(
        solution,
        problem.loss,
        compared.result,
        problem.passes,
        problem.n_rows,
        problem.findings,
        held_out,
        partial(problem.posterior, solution),
        None if growth is None else curve_of(*growth),
    )
