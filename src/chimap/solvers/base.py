"""What a solver is: what it needs of the rows, which losses it minimises, and the problem it makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, Self

import numpy as np

from chimap.losses import FeatureRows, Loss
from chimap.moments import FoldMoments
from chimap.moments.kept import KeptFeatures
from chimap.solvers.held_out import HeldOut, Witnesses
from chimap.solvers.posterior import Posterior
from chimap.solvers.ridge import LinearSolution

Needs = Literal["moments", "rows", "features"]
"""moments of folds alone; moments, and rows that can be passed over again; or the features of all rows in memory."""


Asked = Literal["nothing", "gcv", "folds", "holdout", "splitter"]
"""How what is open is to be chosen: not at all, by generalised cross-validation, folds, the score of rows held out, or
the folds of a splitter."""


@dataclass(frozen=True)
class Evidence:
    """What the passes over the rows have given: as much of it as the solver needs.

    asked: how what is open is to be chosen. tried: rows whose score of predictions has a say in it, or None.
    device: where matrices are factorised. seed: of what a solver draws. on_step: called after each of its steps.
    witnesses: rows of which held-out outputs are wanted, or None.
    """

    moments: FoldMoments | None = None
    rows: FeatureRows | None = None
    kept: KeptFeatures | None = None
    device: str = "cpu"
    seed: int = 0
    on_step: Callable[[], None] = lambda: None
    asked: Asked = "folds"
    tried: Tried | None = None
    witnesses: Witnesses | None = None


class Tried(Protocol):
    """See ``selection.tried.TriedRows``."""

    @property
    def Z(self) -> np.ndarray:
        """Features (h, D)."""
        ...

    @property
    def Y(self) -> np.ndarray:
        """Targets (h, t)."""
        ...

    @property
    def weights(self) -> np.ndarray | None:
        """Of the rows, (h,), or None."""
        ...

    @property
    def measure(self) -> str:
        """What the score is called."""
        ...

    def __len__(self) -> int: ...

    def outputs(self, coef: np.ndarray, origin: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """Of a linear model, (h, t)."""
        ...

    def scored(self, outputs: np.ndarray) -> float:
        """The score of outputs."""
        ...

    def projected(self, basis: np.ndarray) -> Self:
        """In other coordinates."""
        ...

    def of_features(self, chosen: np.ndarray) -> Self:
        """The same rows with some of their features, given by index."""
        ...

    def blocks(self) -> Iterator[slice]:
        """Of rows."""
        ...


class Problem(Protocol):
    """Minimise sum loss + alpha/2 |w|^2 over the rows of the evidence.

    n_folds: that the rows are divided into. passes: over the rows so far.
    """

    n_folds: int
    passes: int

    @property
    def loss(self) -> Loss | None:
        """None for the hinge."""
        ...

    @property
    def n_rows(self) -> int:
        """In all."""
        ...

    def usual_alpha(self) -> float:
        """A strength of the right size for these features."""
        ...

    def solve(self, alpha: float) -> LinearSolution:
        """The minimum over all rows, for features and targets as they are."""
        ...

    def held_out(self, solution: LinearSolution, witnesses: Witnesses | None) -> HeldOut | None:
        """Outputs of rows by machines that have not seen them, given what ``solve`` came to; None where there are
        none."""
        ...

    def posterior(self, solution: LinearSolution) -> Posterior | None:
        """How sure the solution is of its outputs; None where the loss has no posterior."""
        ...


class Trials(Problem, Protocol):
    """A problem whose candidates are compared on rows that are held out, those of fold 0.

    moments: of the same rows, or None; ridge on them tells where a search may begin.
    """

    moments: FoldMoments | None

    def trial(self, alpha: float) -> float:
        """Mean loss, summed over targets, of the rows of fold 0 for the minimum over the others."""
        ...


class Solver(Protocol):
    """A line of the catalogue.

    n_vectors: of the size of the weights, in memory together beside the factor of a matrix.
    """

    name: ClassVar[str]
    needs: ClassVar[Needs]
    n_vectors: ClassVar[int]

    def supports(self, loss: str | Loss) -> bool:
        """Whether it minimises this loss with the penalty alpha/2 |w|^2."""
        ...

    def problem(self, loss: str | Loss, evidence: Evidence) -> Problem:
        """What is minimised, and how."""
        ...
