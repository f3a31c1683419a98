"""From the sums of the passes to the weights.

``PenalisedLoss`` is the ``Objective`` of most estimators. Its solver turns the evidence of the passes into a problem, a
selection rule (``selection.catalogue``) chooses the strength where it is open, and the problem is solved at the chosen
strength. The result is a ``Learned``: the solution and how it was found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import Parameters
from chimap.engines import Job, Progress, Stopwatch
from chimap.fit.design import FeatureBlock
from chimap.losses import Loss
from chimap.selection import SelectionResult
from chimap.selection.catalogue import rule_of
from chimap.selection.components import ComponentFolds
from chimap.selection.learning_curve import LearningCurve
from chimap.solvers import LinearSolution
from chimap.solvers.base import Evidence, Needs, Solver, collected
from chimap.solvers.catalogue import SOLVERS, solver_of
from chimap.solvers.from_moments import RidgeProblem
from chimap.solvers.held_out import HeldOut, Witnesses
from chimap.solvers.posterior import DualPosterior, Posterior
from chimap.solvers.principal import leading

_STEPS = {"moments": "values", "rows": "passes", "features": "classes"}  # what progress counts


@dataclass(frozen=True)
class Learned:
    """Weights for features and targets without shifts, and how they were found.

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
    attributes : dict, default={}
        What else was learned, by the name of the attribute.
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
    attributes: Parameters = field(default_factory=dict)
    held_out: HeldOut | None = None
    posterior: Callable[[], Posterior | DualPosterior | None] = lambda: None
    curve: LearningCurve | None = None


def check_choosing(given: Parameters, loss: str | Loss, *, has_gcv: bool) -> None:
    """Raise ValueError for parameters of an estimator that ask for a choice which sums of features do not allow."""
    if given.get("scoring") is not None and not has_gcv:
        raise InputError(
            Message(
                "{scoring} needs rows held out by {loss='square'}; got {loss=}. Leave {scoring} out.", loss
            )
        )
    if isinstance(gamma := given.get("gamma"), str) and gamma == "auto":
        raise InputError(Message("{gamma='auto'} needs {features='exact'}; use {gamma='mean'}."))


@dataclass(frozen=True)
class PenalisedLoss:
    """Minimise sum loss + alpha/2 |w|^2 with the first solver that supports the loss.

    Parameters
    ----------
    loss : str or Loss
        The loss.
    alpha : float, sequence of float or None
        A strength, several to choose from, or None for a search.
    n_principal : int, sequence of int or None, default=None
        Number of components; several numbers are compared together with the strengths.
    solver_name : str or None, default=None
        A key of ``SOLVERS``; None takes the first solver that minimises the loss.
    """

    leaves_out: ClassVar[bool] = False
    loss: str | Loss
    alpha: float | Sequence[float] | None
    n_principal: Any = None
    solver_name: str | None = None

    @property
    def solver(self) -> Solver:
        """The solver, from the catalogue."""
        return solver_of(self.loss) if self.solver_name is None else SOLVERS[self.solver_name]

    @property
    def needs(self) -> Needs:
        """See ``Objective``."""
        return self.solver.needs

    @property
    def n_vectors(self) -> int:
        """See ``Objective``."""
        return self.solver.n_vectors

    @property
    def has_gcv(self) -> bool:
        """See ``Objective``."""
        return self.solver.needs == "moments" and not np.ndim(self.n_principal)

    def check(self, given: Parameters) -> None:
        """See ``Objective``."""
        check_choosing(given, self.loss, has_gcv=self.has_gcv)

    def footprint(self, job: Job, parts: list[FeatureBlock]) -> Job:
        """See ``Objective``."""
        return job

    def learn(self, evidence: Evidence, features: Any, clock: Stopwatch, progress: Progress) -> Learned:
        """See ``Objective``."""
        if np.ndim(self.n_principal):
            problem = RidgeProblem(collected(evidence.moments, "moments"), evidence.device, spans=False)
            return learn_components(
                problem, features.borders, self.n_principal, self.alpha, clock, progress, evidence.witnesses
            )
        return learn(self.solver, self.loss, self.alpha, evidence, clock, progress)


def learn(
    solver: Solver,
    loss: str | Loss,
    alpha: float | Sequence[float] | None,
    evidence: Evidence,
    clock: Stopwatch,
    progress: Progress,
) -> Learned:
    """Find the minimum at one strength, at the best of several, or (None) at the best strength of a search.

    If ``alpha`` is not one strength and there are too few rows to choose by, take ``problem.usual_alpha()``.
    """
    problem = solver.problem(loss, evidence)
    rule = (
        None
        if isinstance(alpha, float)
        else rule_of(solver.needs, problem.n_folds, problem.n_rows, evidence.asked, progress.advance)
    )
    result, solution = None, None
    if isinstance(alpha, float):
        chosen = alpha
    elif rule is None:
        chosen = problem.usual_alpha()
    else:
        with clock("choose alpha"):
            progress.stage("alpha", rule.usual_scores, _STEPS[solver.needs])
            result, solution = rule.choose(problem, alpha)
        chosen = result.best["alpha"]
    if solution is None:
        with clock("passes" if solver.needs == "rows" else "solve"):
            if solver.needs != "moments":
                progress.stage("solving", None, _STEPS[solver.needs])
            solution = problem.solve(chosen)
    with clock("held out"):
        held_out = problem.held_out(solution, evidence.witnesses)
    return Learned(
        solution, problem.loss, result, problem.passes, problem.n_rows, held_out=held_out,
        posterior=partial(problem.posterior, solution),
    )  # fmt: skip


def learn_components(
    problem: RidgeProblem,
    borders: np.ndarray,
    numbers: Sequence[int],
    alpha: float | Sequence[float] | None,
    clock: Stopwatch,
    progress: Progress,
    witnesses: Witnesses | None = None,
) -> Learned:
    """Fit ridge on the leading components of each block; exact folds choose their number and the strength."""
    alphas = [alpha] if isinstance(alpha, float) else alpha
    with clock("choose alpha"):
        progress.stage("alpha", None, "pairs")
        result, _ = ComponentFolds(borders, numbers, progress.advance).choose(problem, alphas)
    with clock("solve"):
        solution = problem.solve_leading(borders, result.best["n_components"], result.best["alpha"])
    chosen = {"n_principal_": result.best["n_components"]}
    with clock("held out"):
        held_out = problem.held_out(solution, witnesses, leading(borders, result.best["n_components"]))
    return Learned(solution, problem.loss, result, problem.passes, problem.n_rows, chosen, held_out)
