"""The interface of a solver: the losses it minimises, the data it needs, and the problem it builds from them.

A problem minimises

    sum_i w_i loss(y_i, z_i'w + b) + alpha/2 |w|^2

over weights w and intercept b, target by target, for any alpha that a selection rule tries. The module of each solver
gives its method and cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Protocol, TypeVar

import numpy as np

from chimap._pieces import Held
from chimap._progress import Progress
from chimap._types import Shape
from chimap._validation import DataError
from chimap.features.exact import RowKernel
from chimap.losses import FeatureRows, Loss
from chimap.model_files import register
from chimap.moments import FoldMoments
from chimap.moments.kept import KeptFeatures
from chimap.penalties import L2, L21
from chimap.solvers.findings import Findings
from chimap.solvers.held_out import HeldOut, ScoredRows, ValidationRows
from chimap.solvers.posterior import DualPosterior, Posterior
from chimap.solvers.ridge import LinearSolution

Part = TypeVar("Part")

Needs = Literal["moments", "rows", "features", "kernel", "blocks"]
"""What a solver needs: the moments of the folds; moments, and rows that can be read again; the features of all rows in
memory; the kernel matrix between all rows, or that of rows in their own order, with their folds; or all rows, in blocks
whose kernel matrices fit in memory one at a time."""

Asked = Literal["nothing", "gcv", "folds", "holdout", "splitter", "leave-out"]
"""How the open settings are chosen: none is open, generalised cross-validation, folds dealt at random, one hold-out,
the folds of a user's splitter, or each row (each group, if there are groups) left out of one machine in closed form."""


class PlacedScore(Protocol):
    """A score, greater is better, of outputs for the rows at some places of the source."""

    @property
    def name(self) -> str:
        """Name of the score in tables."""
        ...

    def __call__(self, outputs: np.ndarray, rows: np.ndarray) -> float:
        """Return the score of outputs (m, t) for the rows at these places, (m,)."""
        ...

    def gain_and_error(
        self, before: np.ndarray, after: np.ndarray, rows: np.ndarray, parts: np.ndarray
    ) -> tuple[float, float]:
        """Return how much more outputs (m, t) score than those before them, and the standard error by parts (m,)."""
        ...


@dataclass(frozen=True)
class KernelRows:
    """All rows of a fit, in the order of their kernel matrix: rows that are left out together are adjacent.

    Parameters
    ----------
    features : RowKernel
        Fitted on the rows, in that order.
    order : array of shape (n,)
        Places of the rows in the source.
    groups : list of arrays, or None
        Places, in the order of the matrix, of the rows that are left out together; None if each is left out alone.
    Y : array of shape (n, t)
        Targets less ``shift``.
    shift : array of shape (t,)
        Shift of the targets.
    weights : array of shape (n,) or (n, t), or None
        Weights of the rows, or of their targets.
    score : PlacedScore
        Score of outputs.
    dtype : dtype
        Precision of the matrix.
    unit : float, default=1.0
        The weight that counts as one row.
    has_rare : bool, default=False
        Whether some rows are of a class that is rare.
    has_noise : bool, default=True
        Whether the variance of the targets about the outputs is wanted.
    units : array of shape (t,) or None, default=None
        Units of the targets, which outputs are multiplied by before they are scored; None for 1.
    counts : array of shape (n,) or None, default=None
        How many equal rows each row stands for; None for one.
    hidden : array of bool of shape (n,) or None, default=None
        The rows that may be scored, if features know the labels of the others; None for all.
    """

    features: RowKernel
    order: np.ndarray
    groups: list[np.ndarray] | None
    Y: np.ndarray
    shift: np.ndarray
    weights: np.ndarray | None
    score: PlacedScore
    dtype: np.dtype
    unit: float = 1.0
    has_rare: bool = False
    has_noise: bool = True
    units: np.ndarray | None = None
    counts: np.ndarray | None = None
    hidden: np.ndarray | None = None

    def scored(self, outputs: np.ndarray, places: np.ndarray | slice) -> float:
        """Return the score of outputs (m, t), less the shift, for those rows at these places that may be scored."""
        outputs, rows = self.in_units(outputs), self.order[places]
        if self.hidden is not None:
            outputs, rows = outputs[self.hidden[places]], rows[self.hidden[places]]
        return self.score(outputs, rows)

    def in_units(self, outputs: np.ndarray) -> np.ndarray:
        """Return outputs (m, t), less the shift, in the units of the targets."""
        return outputs + self.shift if self.units is None else (outputs + self.shift) * self.units

    def score_if_any(self, outputs: np.ndarray, places: np.ndarray | slice) -> float:
        """Return ``scored``, or NaN where the rows at these places have no score: they may lack a class."""
        try:
            return self.scored(outputs, places)
        except DataError:
            return float("nan")

    def score_of_residuals(self, residuals: np.ndarray, places: np.ndarray) -> float:
        """Return the score of the outputs that leave these residuals (m, t) for the rows at these places."""
        return self.scored(self.Y[places] - residuals, places)

    def leading(self, n: int) -> KernelRows:
        """Return the first n rows alone."""
        groups = None if self.groups is None else within(self.groups, np.arange(n))
        return replace(
            self,
            features=self.features.take(slice(n)),
            order=self.order[:n],
            groups=groups,
            Y=self.Y[:n],
            weights=None if self.weights is None else self.weights[:n],
            counts=None if self.counts is None else self.counts[:n],
            hidden=None if self.hidden is None else self.hidden[:n],
        )


def within(groups: Sequence[np.ndarray], rows: np.ndarray) -> list[np.ndarray]:
    """Return the places of each group's rows among ascending chosen rows, without groups that have none there."""
    edges = np.searchsorted(rows, [group[0] for group in groups] + [groups[-1][-1] + 1])
    return [np.arange(a, b) for a, b in pairwise(edges) if b > a]


@dataclass(frozen=True)
class Swept:
    """A sweep between two blocks. With the rows in the same order, it goes on from here as if it had not stopped.

    Parameters
    ----------
    borders : ndarray of shape (blocks + 1,)
        Where the blocks begin, and the end of the last.
    octaves : int
        Octaves from the gamma of the features to that of the machine.
    selection : SelectionResult or None
        The settings that were compared on the first block.
    alpha, intercept, lift
        See ``BlockRidge``.
    weights : ndarray of shape (n_seen, t)
        Weights of the rows of the blocks so far.
    core_residuals : ndarray of shape (core, t)
        Residuals of the core: 0 after full steps whose strength was not raised.
    lengths, step
        See ``BlockRidge``.
    open : sequence of str
        See ``ChosenMachine``.
    held_out : ndarray of shape (n_seen, t)
        Outputs of these rows by machines of the blocks before theirs.
    scores : ndarray of shape (s, 2)
        Rows learned from, and score of the block that followed.
    """

    borders: Annotated[np.ndarray, Shape("ends")]
    octaves: int
    selection: object
    alpha: float
    intercept: Annotated[np.ndarray, Shape("t")]
    lift: float
    weights: Annotated[np.ndarray, Shape("n", "t")]
    core_residuals: Annotated[np.ndarray, Shape("core", "t")]
    lengths: np.ndarray
    step: np.ndarray
    open: Sequence[str]
    held_out: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class Components:
    """Coordinates along principal components, of which a number for each block is chosen.

    Parameters
    ----------
    borders : ndarray of shape (blocks + 1,)
        Block j holds the coordinates borders[j] to borders[j + 1] - 1, the largest component first.
    numbers : sequence of int
        The numbers of components of each block to choose from.
    """

    borders: np.ndarray
    numbers: Sequence[int]


@dataclass(frozen=True, eq=False)
class Standing:
    """The score of a machine for rows that are watched.

    Parameters
    ----------
    n_rows : int
        Rows that it has learned from.
    score : float
        The score; greater is better.
    deviations : array of shape (parts,)
        Its jackknife deviations.
    """

    n_rows: int
    score: float
    deviations: np.ndarray


class WatchedRows(Protocol):
    """Rows that a sweep learns last, and whether it goes on by its outputs for them; see ``selection.contest``."""

    @property
    def places(self) -> np.ndarray:
        """Places (m,) of the rows in the source."""
        ...

    def standing(self, outputs: np.ndarray, n_rows: int) -> Standing:
        """Return the standing of a machine of so many rows, by its outputs (m, t) in the units of the targets."""
        ...

    def verdict(self, curve: Sequence[Standing], n_end: int, growth: Sequence[tuple[int, float]]) -> str:
        """Return why the sweep ends before ``n_end`` rows, by its standings so far; empty if it goes on."""
        ...


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
    ends_at : float or None, default=None
        Time of ``time.monotonic`` after which such a sweep begins no block that would end later; None for no limit.
    watch : WatchedRows or None, default=None
        What ends such a sweep where more rows bring nothing; its rows are the last of ``kernel``.
    held : Held or None, default=None
        A place for the rows and factors of such a sweep on the workers that compute with them; None for this process.
    device : str, default="cpu"
        Device that factorises matrices.
    seed : int, default=0
        Seed of the solver's random numbers.
    components : Components or None, default=None
        Numbers of principal components to choose from, if the features are coordinates along components.
    penalty : L21 or None, default=None
        The norm of groups of features, for solvers that take it.
    progress : Progress
        Informed of each step of the solver.
    asked : {"nothing", "gcv", "folds", "holdout", "splitter", "leave-out"}, default="folds"
        How the open settings are chosen.
    scored_rows : ScoredRows or None, default=None
        Rows whose prediction score takes part in that choice.
    validation rows : Validation rows or None, default=None
        Rows whose held-out outputs are wanted.
    held_folds : tuple of int, default=(0,)
        Folds that are left out in turn for held-out outputs, where each of them takes a fit: as few as are enough. None
        of them where rows are left out alone, in closed form.
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
    ends_at: float | None = None
    watch: WatchedRows | None = None
    held: Held | None = None
    device: str = "cpu"
    seed: int = 0
    components: Components | None = None
    penalty: L21 | None = None
    progress: Progress = field(default_factory=Progress)
    asked: Asked = "folds"
    scored_rows: ScoredRows | None = None
    validation: ValidationRows | None = None
    held_folds: tuple[int, ...] = (0,)
    unit: float = 1.0


def required(part: Part | None, kind: str) -> Part:
    """Return a part of the evidence. Raise TypeError, naming its kind, if the passes have not collected it."""
    if part is None:
        raise TypeError(f"the solver needs {kind}, which the passes have not collected.")
    return part


class Problem(ABC):
    """Minimise sum loss + alpha/2 |w|^2 over the rows of the evidence.

    Attributes
    ----------
    needs : {"moments", "rows", "features", "kernel", "blocks"}
        The evidence that the problem is made of.
    counts : str
        What progress counts: "values" of the strength, "passes" or "classes".
    stage : str
        The stage of a fit whose seconds ``solve`` takes.
    n_folds : int
        Number of folds of the rows.
    passes : int
        Passes over the rows so far.
    loss : Loss or None
        The loss; None for the hinge.
    """

    needs: ClassVar[Needs]
    counts: ClassVar[str] = "values"
    stage: ClassVar[str] = "solve"
    n_folds: int = 1
    passes: int = 1
    loss: Loss | None = None

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows over all folds."""

    @property
    @abstractmethod
    def rule(self) -> str | None:
        """Name of the rule (``selection.choose.RULES``) that chooses what is open; None with too few rows for any."""

    @abstractmethod
    def usual_alpha(self) -> float:
        """Return a strength of the right order of magnitude for these features."""

    @abstractmethod
    def solve(self, alpha: float) -> LinearSolution:
        """Return the minimum over all rows, for unshifted features and targets."""

    @abstractmethod
    def held_out(self, solution: LinearSolution, validation: ValidationRows | None) -> HeldOut | None:
        """Return outputs of rows by models that have not seen them, or None if there are none.

        The outputs belong to ``solution``, which ``solve`` returned.
        """

    def posterior(self, solution: LinearSolution) -> Posterior | DualPosterior | None:
        """Return the posterior of the solution, which gives the variance of its outputs; None if the loss has none."""
        return None

    @property
    def findings(self) -> Findings:
        """What else was learned."""
        return Findings()

    @property
    def growth(self) -> tuple[str, Sequence[tuple[int, float]]] | None:
        """Name of a score, and (rows learned from, score) of machines of more and more rows; None if not known."""
        return None


class TrialProblem(Problem):
    """A problem that compares candidates on held-out rows, those of fold 0.

    Attributes
    ----------
    moments : FoldMoments or None
        Moments of the same rows. A search may begin where ridge on them does best.
    """

    moments: FoldMoments | None = None

    @property
    def rule(self) -> str | None:
        return "holdout" if self.n_folds > 1 else None

    @abstractmethod
    def trial(self, alpha: float) -> float:
        """Fit on all folds but 0 and return the mean loss of the rows of fold 0, summed over targets."""


class Solver(ABC):
    """An entry of the catalogue of solvers.

    Attributes
    ----------
    name : str
        Name in the catalogue.
    needs : {"moments", "rows", "features", "kernel", "blocks"}
        The evidence that the solver needs.
    n_vectors : int
        Number of arrays of the size of the weights (D, t) that it holds in memory besides the factor of a matrix.
    leaves_out : bool
        Whether rows are left out of one machine in closed form, so that no folds are kept separately.
    copies_features : bool
        Whether it makes a copy of features in memory.
    """

    name: ClassVar[str]
    needs: ClassVar[Needs]
    n_vectors: ClassVar[int] = 0
    leaves_out: ClassVar[bool] = False
    copies_features: ClassVar[bool] = False

    @abstractmethod
    def supports(self, loss: str | Loss, penalty: type = L2) -> bool:
        """Return whether the solver minimises this loss with this penalty, such as alpha/2 |w|^2."""

    @abstractmethod
    def problem(self, loss: str | Loss, evidence: Evidence) -> Problem:
        """Return the problem of this loss on these rows."""

    def working_bytes(self, sizes: Sequence[int], n_folds: int) -> int:
        """Return the bytes besides the moments and a factor, for groups of so many features."""
        return 0


register(Swept)
