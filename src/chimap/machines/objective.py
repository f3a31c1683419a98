"""What the weights minimise: a loss, the solver that minimises it, and what is left open.

``objective_of`` reads it from a recipe. The solver turns the evidence of the passes into a problem, and
``selection.choose`` chooses what is open and solves it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._validation import check_choice, check_positive
from chimap.engines import Job, Progress, Stopwatch
from chimap.losses import OF_CLASSES, OF_TARGETS, Loss, Observed, Quantile, named
from chimap.penalties import L2, L21
from chimap.recipe import Recipe
from chimap.recipe.parts import FeatureBlock
from chimap.selection.base import OpenSettings, checked_alpha
from chimap.selection.choose import ChosenSolution, choose
from chimap.solvers.base import Components, Evidence, Solver
from chimap.solvers.catalogue import SOLVERS, solver_of
from chimap.solvers.kernel_matrix import KernelSolver


@dataclass(frozen=True)
class GroupNorm:
    """alpha sum_j weight_j |w_j|_2 over blocks j of features; see ``MultipleKernelLearner``.

    Parameters
    ----------
    weights : sequence of float or None
        Weights of the blocks; None is 1 for all.
    shared : bool
        Whether all targets use the same blocks.
    """

    weights: Sequence[float] | None
    shared: bool

    def penalty(self, features: Any) -> L21:
        """Return the norm over the blocks of the features."""
        borders = features.borders_.tolist()
        groups = [slice(a, b) for a, b in pairwise(borders)]
        return L21(1.0, groups, borders[-1], self.weights, self.shared)


@dataclass(frozen=True)
class PenalisedLoss:
    """Minimise sum loss + alpha/2 |w|^2, or plus the norm of groups.

    Parameters
    ----------
    loss : str or Loss
        The loss.
    open : OpenSettings
        What is left open.
    n_principal : int, sequence of int or None, default=None
        Number of components; several numbers are compared together with the strengths.
    solver_name : str or None, default=None
        A key of ``SOLVERS``; None takes the first solver that minimises the loss.
    groups : GroupNorm or None, default=None
        The norm of groups of features that takes the place of alpha/2 |w|^2.
    """

    loss: str | Loss
    open: OpenSettings
    n_principal: Any = None
    solver_name: str | None = None
    groups: GroupNorm | None = None

    @property
    def solver(self) -> Solver:
        """The solver, from the catalogue."""
        if self.solver_name is not None:
            return SOLVERS[self.solver_name]
        return solver_of(self.loss, L2 if self.groups is None else L21)

    @property
    def has_gcv(self) -> bool:
        """Whether generalised cross-validation and a held-out score can choose what is open."""
        return self.solver.needs == "moments" and self.groups is None and not np.ndim(self.n_principal)

    def footprint(self, job: Job, parts: list[FeatureBlock]) -> Job:
        """Return the job with the memory that finding the weights takes."""
        sizes = [part.footprint.features for part in parts]
        working_bytes = self.solver.working_bytes(sizes, job.n_folds)
        return replace(job, solver_bytes=job.solver_bytes + working_bytes)

    def learn(self, evidence: Evidence, features: Any, clock: Stopwatch, progress: Progress) -> ChosenSolution:
        """Choose what is open, and return the weights of the features."""
        evidence = replace(evidence, progress=progress)
        if np.ndim(self.n_principal):
            numbers: Sequence[int] = self.n_principal
            evidence = replace(evidence, components=Components(features.borders, numbers))
        if self.groups is not None:
            evidence = replace(evidence, penalty=self.groups.penalty(features))
        problem = self.solver.problem(self.loss, evidence)
        return choose(problem, self.open, evidence.validation, clock, progress)


def objective_of(recipe: Recipe, has_gaps: bool = False, from_race: Collection[str] = ()) -> PenalisedLoss:
    """Return what the weights minimise; see ``OpenSettings`` for what a race has found."""
    loss, alpha = checked_loss(recipe), checked_alpha(recipe.alpha)
    if recipe.learner is not None:
        objective: PenalisedLoss = recipe.learner.objective_for(recipe, loss)
        return objective
    if recipe.is_exact:
        left_open = OpenSettings(alpha, recipe.leaves_open("gamma"), from_race)
        return PenalisedLoss(loss, left_open, solver_name=recipe.solver or KernelSolver.name)
    if has_gaps and loss != "hinge":  # the deviation of each target is its unit, see ``Codec``
        loss = Observed(named(loss, 1.0) if isinstance(loss, str) else loss)
    return PenalisedLoss(loss, OpenSettings(alpha), recipe.n_principal, recipe.solver)


def loss_names(recipe: Recipe) -> tuple[str, ...]:
    """Return the names of the losses that an estimator takes."""
    names = OF_CLASSES if recipe.is_classifier else OF_TARGETS
    not_taken = () if recipe.learner is None else recipe.learner.losses_not_taken
    return tuple(name for name in names if name not in not_taken)


def checked_loss(recipe: Recipe) -> str | Loss:
    """Return the loss. Raise ValueError for one that the estimator does not take."""
    loss, names = recipe.loss, loss_names(recipe)
    if not isinstance(loss, Loss):
        check_choice(loss, "loss", names)
    elif loss.name not in names and (loss.domain == "sign") != recipe.is_classifier:
        domain = "sign" if recipe.is_classifier else "real"
        raise InputError(
            f"{recipe.estimator} takes the losses {', '.join(names)}, and loss objects of domain {domain!r}; got "
            f"{loss!r}."
        )
    if loss != Quantile.name and (np.ndim(recipe.quantile) or recipe.quantile != Quantile.quantile):
        raise InputError(Message("{quantile=} is for {loss='quantile'}; got {loss=}.", recipe.quantile, loss))
    return recipe.requested_loss


def checked_components(n_principal: Any, objective: PenalisedLoss) -> int | tuple[int, ...] | None:
    """Return one number of components, several to choose from, or None. Raise ValueError for anything else."""
    if n_principal is None or np.ndim(n_principal) == 0:
        if n_principal is not None:
            check_positive(n_principal, "n_principal", integer=True)
        return None if n_principal is None else int(n_principal)
    numbers: Sequence[int] = n_principal
    for number in numbers:
        check_positive(number, Message("each of {n_principal}"), integer=True)
    if not len(numbers) or objective.solver.needs != "moments":
        raise InputError(
            Message(
                "several {n_principal} are compared by the folds of {loss='square'}, and there must be at least "
                "one; got {n_principal=} and {loss=}.",
                n_principal,
                objective.loss,
            )
        )
    return tuple(int(number) for number in numbers)
