"""The passes of a fit over its rows: sums about a provisional mean, computed on this machine or a device.

``fit.fit`` makes one ``Passes``: what every pass of a fit runs with, and the checkpoint that it keeps. Its
``components`` finds principal components if they are asked for; the collectors (``fit.collecting``) run the other
passes. The functions below make the empty sums and the work of a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.backends import backend_of
from chimap.backends.base import BlockedFeatures, Keep, RowFeatures, Sums
from chimap.data import Source
from chimap.engines import Engine, Progress, Stopwatch
from chimap.engines.local import Pass, Reached, Work, no_targets
from chimap.engines.memory import FIRST_ROWS
from chimap.features.principal import BlockMoments
from chimap.features.rounded import RoundedFeatures
from chimap.fit.checkpoint import Checkpoint, Standing
from chimap.fit.recipe import Recipe
from chimap.fit.result import Known
from chimap.fit.rows import PreparedRows, features_by_pieces
from chimap.moments import PCA, DealtFolds, FoldMoments, RowWeights, provisional_mean
from chimap.solvers.blocks import Swept
from chimap.solvers.held_out import Witnesses


def first_mean(features: RowFeatures, rows: Rows, dtype: np.dtype) -> np.ndarray:
    """Return the provisional mean (D,) of the features, computed from the first of the prepared rows."""
    first = _arrays.take_rows(rows, slice(FIRST_ROWS))
    Z = np.empty((first.shape[0], features._n_features_out), dtype=dtype)
    features.features_into(first, Z)
    return provisional_mean(Z)


def empty_moments(
    features: RowFeatures,
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
    recipe: Recipe,
    rows: PreparedRows,
    features: RowFeatures,
    moments: FoldMoments,
    clock: Stopwatch,
    keep: Keep | None = None,
) -> Pass[Sums]:
    """Return the pass that adds up features and targets of the rows, fold by fold."""
    features = rounded(recipe, features, moments.shift)
    sums = backend_of(recipe.device).sums(features, moments, keep)
    return Pass(rows.prepare, rows.codec.encode, sums, rows.folds, clock, rows.weights)


def component_pass(
    recipe: Recipe, rows: PreparedRows, features: BlockedFeatures, moments: BlockMoments, clock: Stopwatch
) -> Pass[Sums]:
    """Return the pass that adds up the features of each block of columns, without targets."""
    sums = backend_of(recipe.device).block_sums(features, moments, recipe.dtype)
    return Pass(rows.prepare, no_targets, sums, DealtFolds(1, rows.seed), clock, rows.weights)


def rounded(recipe: Recipe, features: RowFeatures, shift: np.ndarray) -> RowFeatures:
    """Return the features as they are added up: rounded to bfloat16 if the recipe says so."""
    return RoundedFeatures(features, shift) if recipe.is_rounded else features


def witnesses_of(
    recipe: Recipe,
    rows: PreparedRows,
    features: RowFeatures,
    moments: FoldMoments,
    places: np.ndarray,
    seen: Rows,
    needs_folds: bool,
) -> Witnesses:
    """Return features and targets, less the shifts of the moments, of the rows ``seen`` at ``places`` of the source."""
    Z = np.empty((places.size, moments.shift.size), dtype=recipe.dtype)
    features_by_pieces(rounded(recipe, features, moments.shift), seen, Z, moments.shift)
    folds = np.zeros(places.size, dtype=np.intp)
    if needs_folds and rows.n_folds > 1:
        folds = rows.folds(0, rows.source.n_rows)[places]
    Y = np.asarray(rows.codec.encode(rows.labels[places]), dtype=np.float64)
    weights = rows.source.weights
    return Witnesses(places, Z, Y, folds, None if weights is None else weights[places])


@dataclass
class Passes:
    """What passes over the rows run with; each is resumed from a checkpoint where there is one.

    ``components`` sets ``principal``, which each later version of the checkpoint contains.
    """

    recipe: Recipe
    rows: PreparedRows
    sources: list[Source]
    known: Known
    chunk_rows: int
    engine: Engine
    checkpoint: Checkpoint | None
    standing: Standing | None
    clock: Stopwatch
    progress: Progress
    principal: Sequence[PCA] | None = None

    def components(self, first: Any) -> Sequence[PCA] | None:
        """Return the principal components of each block, from a separate pass over all sources; None without any.

        The sums are taken about the mean of the rows ``first``.
        """
        if self.recipe.most_principal is not None:
            self.principal = self._components(self.recipe.most_principal, first)
        return self.principal

    def _components(self, most: int, first: Any) -> Sequence[PCA]:
        standing = self.standing
        if standing is not None and standing.principal is not None:
            return standing.principal
        features = self.known.features
        moments = BlockMoments(standing.moments) if standing else BlockMoments.about(features, first)
        work = component_pass(self.recipe, self.rows, features, moments, self.clock)
        place, next_row = (0, 0) if standing is None else (standing.place, standing.next_row)
        for i in range(place, len(self.sources)):
            work = replace(work, weights=RowWeights(self.sources[i].weights))
            first_row, reached = next_row if i == place else 0, self.reached("components", i)
            self.engine.run(
                work, self.sources[i], self.chunk_rows, self.progress, "components", first_row, reached
            )
        work.finish()
        with self.clock("components"):
            return [
                PCA.of(block, min(most, block.n_features), self.recipe.device)
                for block in work.moments.blocks
            ]

    def swept(self, known: Known, digest: str, swept: Swept) -> None:
        """Write the checkpoint between two blocks of a sweep if it is due.

        The features that are ``known`` hold no rows; ``digest`` is that of the rows. After the last block there is
        nothing to resume: outputs without rows of that block need its factor.
        """
        if self.checkpoint is not None and swept.weights.shape[0] < swept.borders[-1]:
            standing = Standing("blocks", 0, swept.weights.shape[0], 0, [], None, known, swept, digest)
            with self.clock("checkpoint"):
                self.checkpoint.reached(self.recipe, self.sources, standing)

    def reached(self, stage: str, place: int = 0) -> Reached:
        """Return the callback for the end of a chunk, which writes the checkpoint if it is due.

        ``stage`` is the pass, and ``place`` the index of the source that it reads.
        """

        def reached(work: Work, next_row: int) -> None:
            if self.checkpoint is not None:
                standing = Standing(
                    stage, place, next_row, self.chunk_rows, work.moments.parts, self.principal, self.known
                )
                with self.clock("checkpoint"):
                    self.checkpoint.reached(self.recipe, self.sources, standing)

        return reached
