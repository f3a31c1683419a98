"""The interface of a solver: the losses it minimises, the data it needs, and the problem it builds from them.

A problem minimises

    sum_i w_i loss(y_i, z_i'w + b) + alpha/2 |w|^2

over weights w and intercept b, target by target, for any alpha that a selection rule tries. The module of each solver
gives its method and cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, Self, TypeVar

import numpy as np

from chimap._pieces import Held
from chimap.losses import FeatureRows, Loss
from chimap.moments import FoldMoments
from chimap.moments.kept import KeptFeatures
from chimap.solvers.blocks import Swept
from chimap.solvers.held_out import HeldOut, Witnesses
from chimap.solvers.kernel_matrix import KernelRows
from chimap.solvers.posterior import Posterior
from chimap.solvers.ridge import LinearSolution

Part = TypeVar("Part")

Needs = Literal["moments", "rows", "features", "kernel", "blocks"]
"""What a solver needs: the moments of the folds; moments, and rows that can be read again; the features of all rows in
memory; the kernel matrix between all rows; or all rows, in blocks whose kernel matrices fit in memory one at a time."""

Asked = Literal["nothing", "gcv", "folds", "holdout", "splitter", "leave-out"]
"""How the open settings are chosen: none is open, generalised cross-validation, folds dealt at random, one hold-out,
the folds of a user's splitter, or each row (each group, if there are groups) left out of one machine in closed form."""


@dataclass(frozen=True)
class Evidence:
    """What the passes over the rows have collected, as much of it as the solver needs.

    Parameters
    ----------
    moments : FoldMoments or None, default=None
        Moments of the features and targets, fold by fold.
    rows : FeatureRows or None, default=None
        Rows that can be read again.
    kept : KeptFeatures or None, default=None
        Features of all rows, in memory.
    kernel : KernelRows or None, default=None
        All rows, in the order of their kernel matrix.
    borders : ndarray of shape (blocks + 1,) or None, default=None
        Where the blocks of these rows begin, and the end of the last, if their matrix is too large.
    n_rows : int, default=0
        Rows of the source, of which blocks may take fewer.
    begun : Swept or None, default=None
        Where a sweep over these blocks goes on from, if the fit is resumed.
    reached : callable or None, default=None
        Takes where such a sweep stands after each block; None if nothing keeps it.
    hold : callable or None, default=None
        Returns a place for the rows of such a sweep on the workers that multiply them; None for this process.
    device : str, default="cpu"
        Device that factorises matrices.
    seed : int, default=0
        Seed of the solver's random numbers.
    on_step : callable
        Called without arguments after each step of the solver. By default nothing happens.
    asked : {"nothing", "gcv", "folds", "holdout", "splitter", "leave-out"}, default="folds"
        How the open settings are chosen.
    tried : Tried or None, default=None
        Rows whose prediction score takes part in that choice.
    witnesses : Witnesses or None, default=None
        Rows whose held-out outputs are wanted.
    held_folds : tuple of int, default=(0,)
        Folds that are left out in turn for held-out outputs, where each of them takes a fit: as few as are enough.
    unit : float, default=1.0
        The weight that counts as one row, ``moments.unit_of``.
    """

    moments: FoldMoments | None = None
    rows: FeatureRows | None = None
    kept: KeptFeatures | None = None
    kernel: KernelRows | None = None
    borders: np.ndarray | None = None
    n_rows: int = 0
    begun: Swept | None = None
    reached: Callable[[Swept], None] | None = None
    hold: Callable[[], Held] | None = None
    device: str = "cpu"
    seed: int = 0
    on_step: Callable[[], None] = lambda: None
    asked: Asked = "folds"
    tried: Tried | None = None
    witnesses: Witnesses | None = None
    held_folds: tuple[int, ...] = (0,)
    unit: float = 1.0


def collected(part: Part | None, kind: str) -> Part:
    """Return a part of the evidence. Raise TypeError, naming its kind, if the passes have not collected it."""
    if part is None:
        raise TypeError(f"the solver needs {kind}, which the passes have not collected.")
    return part


class Tried(Protocol):
    """Rows with features and targets, on which outputs are scored. See ``selection.tried.TriedRows``."""

    @property
    def Z(self) -> np.ndarray:
        """Features of shape (h, D)."""
        ...

    @property
    def Y(self) -> np.ndarray:
        """Targets of shape (h, t)."""
        ...

    @property
    def weights(self) -> np.ndarray | None:
        """Weights of the rows in the sums that they are part of, shape (h,), or None."""
        ...

    @property
    def counted(self) -> np.ndarray | None:
        """Weights of the rows in averages over all rows, shape (h,), or None."""
        ...

    @property
    def measure(self) -> str:
        """Name of the score."""
        ...

    def __len__(self) -> int: ...

    def outputs(self, coef: np.ndarray, origin: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """Return the outputs (h, t) of a linear model, whose features are taken about ``origin``."""
        ...

    def scored(self, outputs: np.ndarray) -> float:
        """Return the score of outputs (h, t)."""
        ...

    def projected(self, basis: np.ndarray) -> Self:
        """Return the same rows in the coordinates of the columns of ``basis`` (D, p)."""
        ...

    def of_features(self, chosen: np.ndarray) -> Self:
        """The same rows with some of their features, given by index."""
        ...

    def blocks(self) -> Iterator[slice]:
        """Iterate over slices of the rows, each small enough to be converted to float64."""
        ...


class Problem(Protocol):
    """Minimise sum loss + alpha/2 |w|^2 over the rows of the evidence.

    Attributes
    ----------
    n_folds : int
        Number of folds of the rows.
    passes : int
        Passes over the rows so far.
    """

    n_folds: int
    passes: int

    @property
    def loss(self) -> Loss | None:
        """The loss, or None for the hinge."""
        ...

    @property
    def n_rows(self) -> int:
        """Number of rows over all folds."""
        ...

    def usual_alpha(self) -> float:
        """Return a strength of the right order of magnitude for these features."""
        ...

    def solve(self, alpha: float) -> LinearSolution:
        """Return the minimum over all rows, for unshifted features and targets."""
        ...

    def held_out(self, solution: LinearSolution, witnesses: Witnesses | None) -> HeldOut | None:
        """Return outputs of rows by models that have not seen them, or None if there are none.

        The outputs belong to ``solution``, which ``solve`` returned.
        """
        ...

    def posterior(self, solution: LinearSolution) -> Posterior | None:
        """Return the posterior of the solution, which gives the variance of its outputs; None if the loss has none."""
        ...


class TrialProblem(Problem, Protocol):
    """A problem that compares candidates on held-out rows, those of fold 0.

    Attributes
    ----------
    moments : FoldMoments or None
        Moments of the same rows. A search may begin where ridge on them does best.
    """

    moments: FoldMoments | None

    def trial(self, alpha: float) -> float:
        """Fit on all folds but 0 and return the mean loss of the rows of fold 0, summed over targets."""
        ...


class Solver(Protocol):
    """An entry of the catalogue of solvers.

    Attributes
    ----------
    name : str
        Name in the catalogue.
    needs : {"moments", "rows", "features", "kernel", "blocks"}
        The evidence that the solver needs.
    n_vectors : int
        Number of arrays of the size of the weights (D, t) that it holds in memory beside the factor of a matrix.
    """

    name: ClassVar[str]
    needs: ClassVar[Needs]
    n_vectors: ClassVar[int]

    def supports(self, loss: str | Loss) -> bool:
        """Return whether the solver minimises this loss with the penalty alpha/2 |w|^2."""
        ...

    def problem(self, loss: str | Loss, evidence: Evidence) -> Problem:
        """Return the problem of this loss on these rows."""
        ...
