"""What a collector does: it draws the sample, and turns the rows into the evidence that a solver needs.

Solvers differ in what they need of the rows: sums, rows that can be read again, the features of all rows, or the kernel
matrix between them. ``fit.fit`` takes the collector for the ``needs`` of the objective and calls its methods in the
order in which they stand here, so that all fits share one trunk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from chimap import _arrays
from chimap._types import Rows, Scoring
from chimap.data.source import choose_rows
from chimap.engines import Engine, Progress, Stopwatch
from chimap.engines.memory import FIRST_ROWS
from chimap.features.base import FittedFeatures
from chimap.features.nearest import FAR, LEFT_OUT_ROWS, empty_rows, nearest_distances
from chimap.fit.checkpoint import SavedState
from chimap.fit.method import Method
from chimap.fit.passes import Passes
from chimap.fit.rows import PreparedRows
from chimap.models.answers import Distances
from chimap.moments import Moments
from chimap.selection.choose import ChosenSolution
from chimap.selection.learning_curve import LearningCurve
from chimap.solvers.base import Evidence, Needs
from chimap.solvers.held_out import HeldOut


@dataclass(frozen=True)
class Request:
    """What a caller asks of a fit besides its recipe.

    Parameters
    ----------
    can_keep : bool
        Whether rows can be kept in the memory of this process, as the engine says.
    has_checkpoint : bool, default=False
        Whether the state of the fit is written to a file.
    has_unlabelled : bool, default=False
        Whether there are rows without targets.
    has_curve : bool, default=False
        Whether a learning curve is wanted.
    is_batch : bool, default=False
        Whether the rows are a first batch, and more will come.
    has_distances : bool, default=False
        Whether distances of left-out rows to the others are wanted, as they are of a model that is kept.
    """

    can_keep: bool
    has_checkpoint: bool = False
    has_unlabelled: bool = False
    has_curve: bool = False
    is_batch: bool = False
    has_distances: bool = False

    @property
    def keeps_rows(self) -> bool:
        """Whether the fit may keep all rows, as exact machines do."""
        return self.can_keep and not self.has_unlabelled and not self.is_batch


@dataclass(frozen=True)
class Sample:
    """Prepared rows that are read before the first pass.

    Parameters
    ----------
    rows : rows or None
        Rows that the features are fitted on; None for a resumed fit, whose features are known.
    weights : array of shape (n,) or None, default=None
        Weights of these rows; None where they were drawn by weight.
    places : array of int, default=empty
        Places in the source of the rows to compute held-out outputs for.
    others : rows or None, default=None
        The prepared rows at these places; None if they are still to be read.
    order : array of int or None, default=None
        Places in the source of ``rows``; None for those that ``PreparedRows.sampled`` gives.
    """

    rows: Rows | None
    weights: np.ndarray | None = None
    places: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    others: Rows | None = None
    order: np.ndarray | None = None

    @property
    def drawn(self) -> Rows:
        """The rows that the features are fitted on, of a fit that is not resumed."""
        if self.rows is None:
            raise TypeError("a resumed fit has no sample")
        return self.rows

    def after_features(self) -> Sample:
        """Return the sample as the passes need it: only the first of its rows, about whose mean sums are taken."""
        if self.rows is None:
            return self
        return replace(self, rows=_arrays.take_rows(self.rows, slice(FIRST_ROWS)).copy(), weights=None, order=None)


@dataclass(frozen=True)
class Collected:
    """What the passes have collected.

    Parameters
    ----------
    evidence : Evidence
        What the solver needs.
    shift : array of shape (D,) or None, default=None
        Shift of the features if they are rounded.
    sums : sequence of Moments, default=()
        Moments of more and more rows, for a learning curve; the last of them has all rows.
    """

    evidence: Evidence
    shift: np.ndarray | None = None
    sums: Sequence[Moments] = ()


_FEWEST_MEASURED = 20  # rows whose distances say what is far at a share of .05


class Collector(ABC):
    """An entry of the catalogue ``COLLECTORS``: what the passes of a fit collect, and the memory that this takes.

    Attributes
    ----------
    needs : {"moments", "rows", "features", "kernel", "blocks"}
        The evidence that it collects.
    method : Method
        The settings of the fit, with the number of folds that are kept apart.
    rows : PreparedRows
        The rows, with these folds.
    """

    needs: ClassVar[Needs]
    method: Method
    rows: PreparedRows

    @property
    def chunk_rows(self) -> int:
        """Rows of a chunk; 0 if the rows are read at once."""
        return 0

    @classmethod
    def check(cls, request: Request) -> None:
        """Raise ValueError for a request that this collector cannot serve."""
        return

    @classmethod
    @abstractmethod
    def planned(
        cls, method: Method, rows: PreparedRows, engine: Engine, saved: SavedState | None, request: Request
    ) -> Self:
        """Return a collector that stays within the memory budget, or raise MemoryBudgetError."""

    @abstractmethod
    def sample(self, progress: Progress, saved: SavedState | None) -> Sample:
        """Read the rows that features are fitted on, and those besides them that are read in the same go.

        A resumed fit, whose state is ``saved``, has its features and reads neither.
        """

    @abstractmethod
    def collect(self, passes: Passes, features: FittedFeatures, sample: Sample) -> Collected:
        """Pass over the rows and return the evidence."""

    def distances(self, features: FittedFeatures, held_out: HeldOut | None, sample: Sample) -> Distances | None:
        """Return how far some held-out rows are from the nearest row that the features keep.

        Landmarks tell it of the rows that none of them is made of. None if the features keep no rows, or too few rows
        were held out. See ``features.nearest``.
        """
        if held_out is None or not features.has_distances:
            return None
        places = self.measured(held_out)
        if places.size < _FEWEST_MEASURED:
            return None
        found = self.measure(features, held_out.rows[places], empty_rows(features, self.method.dtype), sample)
        told = found < FAR
        return Distances(places[told], found[told]) if told.sum() >= _FEWEST_MEASURED else None

    def measured(self, held_out: HeldOut) -> np.ndarray:
        """Return places among the held-out rows of those whose distances are measured, ascending."""
        apart = np.flatnonzero(self.rows.is_apart(held_out.rows))
        return apart[choose_rows(apart.size, LEFT_OUT_ROWS, self.method.seed)] if apart.size else apart

    def measure(self, features: FittedFeatures, places: np.ndarray, empty: np.ndarray, sample: Sample) -> np.ndarray:
        """Return the distances of the rows at these places of the source; see ``features.nearest`` for ``empty``."""
        ascending = np.sort(places)
        if sample.others is None:
            rows = self.rows.take(ascending)
        else:
            rows = _arrays.take_rows(sample.others, np.searchsorted(sample.places, ascending))
        return nearest_distances(features, rows, empty)[np.searchsorted(ascending, places)]

    def curve(
        self, collected: Collected, chosen: ChosenSolution, shown: Scoring, clock: Stopwatch
    ) -> LearningCurve | None:
        """Return how the score ``shown`` grows with the rows: the choice has shown it, or None tells."""
        return chosen.curve
