"""What a collector does: it draws the sample, and turns the rows into the evidence that a solver needs.

Solvers differ in what they need of the rows: sums, rows that can be read again, the features of all rows, or the kernel
matrix between them. ``fit.fit`` takes the collector for the ``needs`` of the objective and calls its methods in the
order in which they stand here, so that all fits share one trunk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from chimap import _arrays
from chimap._types import Rows, Scoring
from chimap._validation import DataError
from chimap.backends import backend_of
from chimap.backends.base import Sums
from chimap.data import Source
from chimap.data.source import choose_rows
from chimap.engines import Engine, Progress, Stopwatch
from chimap.engines.local import Pass, Reached, Work, no_targets
from chimap.engines.memory import FIRST_ROWS
from chimap.features.base import FittedFeatures
from chimap.features.nearest import FAR, LEFT_OUT_ROWS, empty_rows, nearest_distances
from chimap.features.principal import PCA, BlockMoments
from chimap.fit.checkpoint import Checkpoint, Choice, FittedOnSample, SavedState
from chimap.machines.base import Plan, Request
from chimap.machines.method import Method
from chimap.machines.rows import PreparedRows
from chimap.models.answers import Distances
from chimap.models.race_result import RaceResult
from chimap.moments import DealtFolds, Moments, RowWeights
from chimap.selection.choose import ChosenSolution
from chimap.selection.learning_curve import LearningCurve
from chimap.solvers.base import Evidence, Needs, Swept, WatchedRows
from chimap.solvers.held_out import HeldOut


@dataclass(frozen=True)
class FitRun:
    """Where a fit runs, what it reports to, and what is asked of it.

    Parameters
    ----------
    engine : Engine
        Processes chunks of rows.
    progress : Progress
        Informed of the stages and of each step within them.
    clock : Stopwatch
        Adds up the seconds of the stages.
    request : Request
        What is asked besides the recipe.
    checkpoint : Checkpoint or None, default=None
        The file to write the state to, and to resume from.
    race : RaceResult or None, default=None
        The race that has chosen the recipe.
    ends_at : float or None, default=None
        Time of ``time.monotonic`` at which a solver that may stop early stops; None for no limit.
    watch : WatchedRows or None, default=None
        Rows that machines on the kernel matrix learn last, by which a sweep ends.
    """

    engine: Engine
    progress: Progress
    clock: Stopwatch
    request: Request
    checkpoint: Checkpoint | None = None
    race: RaceResult | None = None
    ends_at: float | None = None
    watch: WatchedRows | None = None

    def resumed(self, method: Method, sources: Sequence[Source], plan: Plan) -> SavedState | None:
        """Return the state that the checkpoint has of the fit, if any; it keeps what the race has chosen."""
        if self.checkpoint is None:
            return None
        raced = plan.raced
        self.checkpoint.keep(plan.asked, Choice(raced.seed, raced.raced_settings, raced.memory, self.race))
        return self.checkpoint.open(method, sources)


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
    sums : sequence of Moments, default=()
        Moments of more and more rows, for a learning curve; the last of them has all rows.
    """

    evidence: Evidence
    sums: Sequence[Moments] = ()


@dataclass
class Passes:
    """What passes over the rows run with; each is resumed from a checkpoint where there is one.

    ``components`` sets ``principal``, which each later version of the checkpoint contains.
    """

    method: Method
    rows: PreparedRows
    sources: list[Source]
    fitted: FittedOnSample
    chunk_rows: int
    run: FitRun
    saved: SavedState | None
    principal: Sequence[PCA] | None = None

    def components(self, first: Any) -> Sequence[PCA] | None:
        """Return the principal components of each block, from a separate pass over all sources; None without any.

        The sums are taken about the mean of the rows ``first``.
        """
        most, saved = self.method.most_principal, self.saved
        if most is None:
            return None
        if saved is not None and saved.principal is not None:
            self.principal = saved.principal
            return self.principal
        features = self.fitted.features
        moments = BlockMoments(saved.moments) if saved else BlockMoments.about(features, first)
        recipe, clock = self.method.recipe, self.run.clock
        sums = backend_of(recipe.device).block_sums(features, moments, recipe.dtype)
        work: Pass[Sums] = Pass(
            self.rows.prepare, no_targets, sums, DealtFolds(1, self.rows.seed), clock, self.rows.weights
        )
        place, next_row = (0, 0) if saved is None else (saved.place, saved.next_row)
        for i in range(place, len(self.sources)):
            work = replace(work, weights=RowWeights(self.sources[i].weights))
            self.add(work, self.sources[i], "components", next_row if i == place else 0, i)
        work.finish()
        with clock("components"):
            self.principal = [
                PCA.of(block, min(most, block.n_features), recipe.device) for block in work.moments.blocks
            ]
        return self.principal

    def add(
        self, work: Work, source: Source, stage: str, first: int = 0, place: int = 0, chunk_rows: int | None = None
    ) -> None:
        """Add the rows of a source from row ``first`` on to the work; see ``reached`` for the other arguments."""
        chunk_rows, reached = chunk_rows or self.chunk_rows, self.reached(stage, place)
        self.run.engine.run(work, source, chunk_rows, self.run.progress, stage, first, reached)

    def overflow(self, features: FittedFeatures) -> DataError:
        """Return the error for sums that are not finite, which names the first row whose features are not."""
        rows = self.rows
        for chunk in rows.source.chunks(FIRST_ROWS):
            prepared = rows.prepare(chunk.X, chunk.start, rows.source.name)
            Z = np.empty((prepared.shape[0], features._n_features_out), self.method.recipe.dtype)
            features.features_into(prepared, Z)
            most = np.sqrt(np.finfo(Z.dtype).max)  # above it, squares overflow
            for row in np.flatnonzero(~(np.abs(Z) < most).all(axis=1)):
                return DataError(
                    f"{rows.source.name}, row {chunk.start + row}: the features of this row overflow, because its bins "
                    "are many orders of magnitude larger than those of other rows. Check the row."
                )
        return DataError(f"{rows.source.name}: sums of the features of all rows overflow. Scale the rows down.")

    def swept(self, fitted: FittedOnSample, digest: str, swept: Swept) -> None:
        """Write the checkpoint between two blocks of a sweep if it is due.

        The features of ``fitted`` hold no rows; ``digest`` is that of the rows. After the last block there is
        nothing to resume: outputs without rows of that block need its factor.
        """
        if self.run.checkpoint is not None and swept.weights.shape[0] < swept.borders[-1]:
            saved = SavedState("blocks", 0, swept.weights.shape[0], 0, [], None, fitted, swept, digest)
            with self.run.clock("checkpoint"):
                self.run.checkpoint.reached(self.method, self.sources, saved)

    def reached(self, stage: str, place: int = 0) -> Reached:
        """Return the callback for the end of a chunk, which writes the checkpoint if it is due.

        ``stage`` is the pass, and ``place`` the index of the source that it reads.
        """

        def reached(work: Work, next_row: int) -> None:
            if self.run.checkpoint is not None:
                saved = SavedState(
                    stage, place, next_row, self.chunk_rows, work.moments.parts, self.principal, self.fitted
                )
                with self.run.clock("checkpoint"):
                    self.run.checkpoint.reached(self.method, self.sources, saved)

        return reached


_FEWEST_MEASURED = 20  # rows whose distances say what is far at a share of .05


class Collector(ABC):
    """An entry of the catalogue ``COLLECTORS``: what the passes of a fit collect, and the memory that this takes.

    Attributes
    ----------
    needs : {"moments", "rows", "features", "kernel", "blocks"}
        The evidence that it collects.
    method : Method
        The settings of the fit.
    rows : PreparedRows
        The rows, with the folds whose sums are kept separately.
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
    def planned(cls, method: Method, plan: Plan, rows: PreparedRows, run: FitRun, saved: SavedState | None) -> Self:
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

        Landmarks give it for the rows that none of them is made of. None if the features keep no rows, or too few rows
        were held out. See ``features.nearest``.
        """
        if held_out is None or not features.has_distances:
            return None
        places = self.measured(held_out)
        if places.size < _FEWEST_MEASURED:
            return None
        found = self.measure(features, held_out.rows[places], empty_rows(features, self.method.recipe.dtype), sample)
        is_known = found < FAR
        return Distances(places[is_known], found[is_known]) if is_known.sum() >= _FEWEST_MEASURED else None

    def measured(self, held_out: HeldOut) -> np.ndarray:
        """Return places among the held-out rows of those whose distances are measured, ascending."""
        reserved = np.flatnonzero(self.rows.is_reserved(held_out.rows))
        return (
            reserved[choose_rows(reserved.size, LEFT_OUT_ROWS, self.method.recipe.seed)] if reserved.size else reserved
        )

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
