"""The passes of a fit over its rows: sums about a provisional mean, computed on this machine or a device.

``fit.fit`` makes one ``Passes``: what every pass of a fit runs with, and the checkpoint that it keeps. Its
``components`` finds principal components if they are asked for; the collectors (``fit.collecting``) run the other
passes. The functions below make the empty sums and the work of a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap._validation import DataError
from chimap.backends import backend_of
from chimap.backends.base import BlockedFeatures, Keep, Sums
from chimap.data import Source
from chimap.engines import Engine, Progress, Stopwatch
from chimap.engines.local import Pass, Reached, Work, no_targets
from chimap.engines.memory import FIRST_ROWS
from chimap.features.base import FittedFeatures
from chimap.features.principal import PCA, BlockMoments
from chimap.features.rounded import RoundedFeatures
from chimap.fit.checkpoint import Checkpoint, FittedDesign, SavedState
from chimap.fit.method import Method
from chimap.fit.rows import PreparedRows, features_by_pieces
from chimap.moments import DealtFolds, FoldMoments, RowWeights, provisional_mean
from chimap.solvers.base import Swept
from chimap.solvers.held_out import SCORED_ROWS, ScoredRows, Witnesses


def first_mean(features: FittedFeatures, rows: Rows, dtype: np.dtype) -> np.ndarray:
    """Return the provisional mean (D,) of the features, computed from the first of the prepared rows."""
    first = _arrays.take_rows(rows, slice(FIRST_ROWS))
    Z = np.empty((first.shape[0], features._n_features_out), dtype=dtype)
    features.features_into(first, Z)
    return provisional_mean(Z)


def empty_moments(
    features: FittedFeatures,
    rows: Rows,
    n_folds: int,
    target_shift: np.ndarray,
    dtype: np.dtype,
    is_rounded: bool = False,
) -> FoldMoments:
    """Return moments without rows, whose shift is the mean feature of the first of ``rows``."""
    shift = first_mean(features, rows, dtype)
    return FoldMoments(n_folds, shift.size, target_shift.size, shift, target_shift, dtype, is_rounded)


def learning_pass(
    method: Method,
    rows: PreparedRows,
    features: FittedFeatures,
    moments: FoldMoments,
    clock: Stopwatch,
    keep: Keep | None = None,
) -> Pass[Sums]:
    """Return the pass that adds up features and targets of the rows, fold by fold."""
    features = rounded(method, features, moments.shift)
    sums = backend_of(method.device).sums(features, moments, keep)
    return Pass(rows.prepare, rows.codec.encode, sums, rows.folds, clock, rows.weights)


def component_pass(
    method: Method, rows: PreparedRows, features: BlockedFeatures, moments: BlockMoments, clock: Stopwatch
) -> Pass[Sums]:
    """Return the pass that adds up the features of each block of columns, without targets."""
    sums = backend_of(method.device).block_sums(features, moments, method.dtype)
    return Pass(rows.prepare, no_targets, sums, DealtFolds(1, rows.seed), clock, rows.weights)


def rounded(method: Method, features: FittedFeatures, shift: np.ndarray) -> FittedFeatures:
    """Return the features as they are added up: rounded to bfloat16 if the method says so."""
    return RoundedFeatures(features, shift) if method.is_rounded else features


def witnesses_of(
    method: Method, rows: PreparedRows, features: FittedFeatures, moments: FoldMoments, places: np.ndarray, seen: Rows
) -> Witnesses:
    """Return features and targets, less the shifts of the moments, of the rows ``seen`` at ``places`` of the source."""
    Z = np.empty((places.size, moments.shift.size), dtype=method.dtype)
    features_by_pieces(rounded(method, features, moments.shift), seen, Z, moments.shift)
    Y = np.asarray(rows.codec.encode(rows.labels[places]), dtype=np.float64)
    weights, counts = (None if part is None else part[places] for part in (rows.source.weights, rows.source.counts))
    return Witnesses(
        places,
        Z,
        Y,
        rows.folds(0, rows.source.n_rows)[places],
        weights,
        rows.shares(places),
        rows.leaves_folds,
        rows.unseen(places),
        counts,
    )


def witnesses_and_scored(
    method: Method,
    rows: PreparedRows,
    features: FittedFeatures,
    moments: FoldMoments,
    places: np.ndarray,
    seen: Rows | None,
    n_scored: int,
) -> tuple[Witnesses | None, ScoredRows | None]:
    """Return the rows to compute held-out outputs for, and the rows whose score helps choose the strength.

    The former are those at ``places``, prepared in ``seen`` unless that is None. The latter are rows of the fold that
    is held out, at most ``n_scored`` of them, for ``selection="holdout"``; else a fixed number of rows that resemble
    unseen ones (the former, if they are the same rows), or None if ``n_scored`` is 0.
    """
    make = partial(witnesses_of, method, rows, features, moments)
    witnesses = make(places, rows.take(places) if seen is None else seen) if places.size else None
    if not n_scored:
        return witnesses, None
    # The number of scored rows is independent of the budget, which would otherwise influence the choice.
    scored_places = rows.held_out(n_scored) if method.holding.asked == "holdout" else rows.representative(SCORED_ROWS)
    is_there = witnesses is not None and np.array_equal(scored_places, places)
    scored = witnesses if is_there else make(scored_places, rows.take(scored_places))
    return witnesses, None if scored is None else rows.scored(scored, method.scoring)


@dataclass
class Passes:
    """What passes over the rows run with; each is resumed from a checkpoint where there is one.

    ``components`` sets ``principal``, which each later version of the checkpoint contains.
    """

    method: Method
    rows: PreparedRows
    sources: list[Source]
    fitted: FittedDesign
    chunk_rows: int
    engine: Engine
    checkpoint: Checkpoint | None
    saved: SavedState | None
    clock: Stopwatch
    progress: Progress
    principal: Sequence[PCA] | None = None

    def components(self, first: Any) -> Sequence[PCA] | None:
        """Return the principal components of each block, from a separate pass over all sources; None without any.

        The sums are taken about the mean of the rows ``first``.
        """
        if self.method.most_principal is not None:
            self.principal = self._components(self.method.most_principal, first)
        return self.principal

    def _components(self, most: int, first: Any) -> Sequence[PCA]:
        saved = self.saved
        if saved is not None and saved.principal is not None:
            return saved.principal
        features = self.fitted.features
        moments = BlockMoments(saved.moments) if saved else BlockMoments.about(features, first)
        work = component_pass(self.method, self.rows, features, moments, self.clock)
        place, next_row = (0, 0) if saved is None else (saved.place, saved.next_row)
        for i in range(place, len(self.sources)):
            work = replace(work, weights=RowWeights(self.sources[i].weights))
            first_row, reached = next_row if i == place else 0, self.reached("components", i)
            self.engine.run(work, self.sources[i], self.chunk_rows, self.progress, "components", first_row, reached)
        work.finish()
        with self.clock("components"):
            return [PCA.of(block, min(most, block.n_features), self.method.device) for block in work.moments.blocks]

    def overflow(self, features: FittedFeatures) -> DataError:
        """Return the error for sums that are not finite, which names the first row whose features are not."""
        rows = self.rows
        for chunk in rows.source.chunks(FIRST_ROWS):
            prepared = rows.prepare(chunk.X, chunk.start, rows.source.name)
            Z = np.empty((prepared.shape[0], features._n_features_out), self.method.dtype)
            features.features_into(prepared, Z)
            most = np.sqrt(np.finfo(Z.dtype).max)  # above it, squares overflow
            for row in np.flatnonzero(~(np.abs(Z) < most).all(axis=1)):
                return DataError(
                    f"{rows.source.name}, row {chunk.start + row}: the features of this row overflow, because its bins "
                    "are many orders of magnitude larger than those of other rows. Check the row."
                )
        return DataError(f"{rows.source.name}: sums of the features of all rows overflow. Scale the rows down.")

    def swept(self, fitted: FittedDesign, digest: str, swept: Swept) -> None:
        """Write the checkpoint between two blocks of a sweep if it is due.

        The features of ``fitted`` hold no rows; ``digest`` is that of the rows. After the last block there is
        nothing to resume: outputs without rows of that block need its factor.
        """
        if self.checkpoint is not None and swept.weights.shape[0] < swept.borders[-1]:
            saved = SavedState("blocks", 0, swept.weights.shape[0], 0, [], None, fitted, swept, digest)
            with self.clock("checkpoint"):
                self.checkpoint.reached(self.method, self.sources, saved)

    def reached(self, stage: str, place: int = 0) -> Reached:
        """Return the callback for the end of a chunk, which writes the checkpoint if it is due.

        ``stage`` is the pass, and ``place`` the index of the source that it reads.
        """

        def reached(work: Work, next_row: int) -> None:
            if self.checkpoint is not None:
                saved = SavedState(
                    stage, place, next_row, self.chunk_rows, work.moments.parts, self.principal, self.fitted
                )
                with self.clock("checkpoint"):
                    self.checkpoint.reached(self.method, self.sources, saved)

        return reached
