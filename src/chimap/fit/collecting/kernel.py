"""Keep every row, for machines that are solved on the kernel matrix between all rows (``features="exact"``)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._memory import budget_for, format_bytes, room_in, whole_mebibytes
from chimap._messages import Message
from chimap._types import Rows, Scoring
from chimap._validation import MemoryBudgetError
from chimap.engines import Engine, Progress, Stopwatch
from chimap.features.scaled import unscaled
from chimap.fit.automatic import bytes_of_exact
from chimap.fit.checkpoint import Standing
from chimap.fit.collecting.base import Collected, Request, Sample
from chimap.fit.passes import Passes
from chimap.fit.recipe import Recipe
from chimap.fit.rows import PreparedRows
from chimap.moments import RowFolds, of_rows
from chimap.selection.choose import Chosen
from chimap.selection.learning_curve import LearningCurve
from chimap.solvers.base import Evidence, KernelRows, Needs

CHUNK_ROWS = 2048  # rows that are read at once, beside those that are there


@dataclass(frozen=True)
class KernelCollector:
    """Read all rows at once, in an order in which rows that are left out together are adjacent.

    Parameters
    ----------
    recipe : Recipe
        The settings.
    rows : PreparedRows
        The rows; those of a fold are left out together, or each alone if there is one fold.
    order : array of shape (n,)
        Places of the rows in the source.
    groups : list of arrays, or None
        Places in that order of the rows that are left out together; None if each is left out alone.
    """

    needs: ClassVar[Needs] = "kernel"
    chunk_rows: ClassVar[int] = 0
    recipe: Recipe
    rows: PreparedRows
    order: np.ndarray
    groups: list[np.ndarray] | None

    @classmethod
    def check(cls, request: Request) -> None:
        """Refuse what would need sums."""
        if request.has_unlabelled:
            raise InputError(
                Message(
                    "{features='exact'} does not support unlabelled rows, which contribute to sums of features: leave "
                    "them out."
                )
            )

    @classmethod
    def planned(
        cls, recipe: Recipe, rows: PreparedRows, engine: Engine, standing: Standing | None, request: Request
    ) -> Self:
        """See ``Collector``."""
        n_rows, needed = rows.source.n_rows, bytes_of_exact(recipe.given, rows.source)
        if needed > room_in(recipe.budget):
            raise MemoryBudgetError(
                Message(
                    "{memory} of {} is too small for the kernel matrix of {:,} rows: it takes {}. Give {memory=}, take "
                    "fewer rows, or use {features='landmarks'}.",
                    format_bytes(recipe.budget),
                    n_rows,
                    format_bytes(budget_for(needed)),
                    whole_mebibytes(budget_for(needed)),
                )
            )
        return cls(recipe, rows, *order_of(rows.folds, n_rows, recipe.seed))

    def sample(self, progress: Progress, standing: Standing | None) -> Sample:
        """Return all rows, with their weights."""
        source = self.rows.source
        progress.stage("sampling", source.n_rows)
        prepared = []
        for chunk in source.chunks(CHUNK_ROWS):
            prepared.append(self.rows.prepare(chunk.X, chunk.start, source.name))
            progress.advance(chunk.X.shape[0])
        rows: Rows = _arrays.take_rows(_arrays.stack_rows(prepared), self.order)
        weights = self._weights
        return Sample(rows, None if weights is None else of_rows(weights), order=self.order)

    @property
    def _weights(self) -> np.ndarray | None:
        """Weights of the rows or of their targets, in the order of the matrix."""
        weights = self.rows.source.weights
        return None if weights is None else weights[self.order]

    def collect(self, passes: Passes, features: Any, sample: Sample) -> Collected:
        """Return the rows that the features keep, with their targets and their score."""
        recipe, codec, y = self.recipe, self.rows.codec, self.rows.labels
        kernel = KernelRows(
            unscaled(features), self.order, self.groups,
            np.asarray(codec.encode(y[self.order]), dtype=np.float64), codec.shift, self._weights,
            codec.score(y, recipe.scoring, self.rows.source.weights), recipe.dtype, self.rows.unit,
            self.rows.has_rare, codec.has_noise, codec.units,
            None if self.rows.source.counts is None else self.rows.source.counts[self.order],
        )  # fmt: skip
        return Collected(Evidence(kernel=kernel, device=recipe.device, seed=recipe.seed))

    def curve(
        self, collected: Collected, learned: Chosen, shown: Scoring, clock: Stopwatch
    ) -> LearningCurve | None:
        """Return the curve of the machines that were compared on fewer rows."""
        return learned.curve


def order_of(folds: RowFolds, n_rows: int, seed: int) -> tuple[np.ndarray, list[np.ndarray] | None]:
    """Return a random order in which the rows of a fold are adjacent, and their places in it; None without folds."""
    rng = np.random.default_rng(seed)
    if folds.n_folds == 1:
        return rng.permutation(n_rows), None
    fold_of_rows = folds(0, n_rows)
    sizes = np.bincount(fold_of_rows, minlength=folds.n_folds)
    members = np.split(np.argsort(fold_of_rows, kind="stable"), np.cumsum(sizes)[:-1])
    members = [rows for rows in members if rows.size]
    rng.shuffle(members)
    edges = np.cumsum([0, *(rows.size for rows in members)])
    return np.concatenate(members), [np.arange(a, b) for a, b in pairwise(edges)]
