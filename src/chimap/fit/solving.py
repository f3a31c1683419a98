"""What the weights minimise: a loss, the solver that minimises it, and what is left open.

The solver turns the evidence of the passes into a problem, and ``selection.choose`` chooses what is open and solves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap.engines import Job, Progress, Stopwatch
from chimap.fit.exact import check_exact
from chimap.losses import Loss
from chimap.penalties import L2, L21
from chimap.recipe import Recipe, is_auto
from chimap.recipe.parts import FeatureBlock
from chimap.selection.base import OpenSettings
from chimap.selection.choose import ChosenSolution, choose
from chimap.solvers.base import Components, Evidence, Solver
from chimap.solvers.catalogue import SOLVERS, solver_of


def check_choosing(recipe: Recipe, loss: str | Loss, *, has_gcv: bool) -> None:
    """Raise ValueError for settings that ask for a choice which sums of features do not allow."""
    if recipe.scoring is not None and not has_gcv:
        raise InputError(
            Message("{scoring} needs rows held out by {loss='square'}; got {loss=}. Leave {scoring} out.", loss)
        )
    if is_auto(recipe.gamma):
        raise InputError(Message("{gamma='auto'} needs {features='exact'}; use {gamma='mean'}."))


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
    ends_at : float or None, default=None
        Time of ``time.monotonic`` at which a solver that may stop early stops; None for no limit.
    """

    loss: str | Loss
    open: OpenSettings
    n_principal: Any = None
    solver_name: str | None = None
    groups: GroupNorm | None = None
    ends_at: float | None = None

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

    def check(self, recipe: Recipe) -> None:
        """Raise ValueError for settings that the solver does not support."""
        if self.solver.leaves_out:
            check_exact(recipe, self.loss)
        else:
            check_choosing(recipe, self.loss, has_gcv=self.has_gcv)

    def footprint(self, job: Job, parts: list[FeatureBlock]) -> Job:
        """Return the job with the memory that finding the weights takes."""
        sizes = [part.footprint.features for part in parts]
        working_bytes = self.solver.working_bytes(sizes, job.n_folds)
        return replace(job, solver_bytes=job.solver_bytes + working_bytes)

    def learn(self, evidence: Evidence, features: Any, clock: Stopwatch, progress: Progress) -> ChosenSolution:
        """Choose what is open, and return the weights of the features."""
        evidence = replace(evidence, progress=progress, ends_at=self.ends_at)
        if np.ndim(self.n_principal):
            numbers: Sequence[int] = self.n_principal
            evidence = replace(evidence, components=Components(features.borders, numbers))
        if self.groups is not None:
            evidence = replace(evidence, penalty=self.groups.penalty(features))
        problem = self.solver.problem(self.loss, evidence)
        choice = choose(problem, self.open, evidence.witnesses, clock, progress)
        if not self.solver.leaves_out:
            return choice
        return replace(choice, attributes={**choice.attributes, "kernel_": features.kernel_})
