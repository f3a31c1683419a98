"""A model that grows by batches of rows (``partial_fit``).

``Batches`` fixes the features on the first batch and adds every batch to the moments; the weights are computed on
demand. It uses the same recipe, passes and objective as ``fit.fit``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap.backends import on_host
from chimap.data import Source
from chimap.engines import Progress, Stopwatch, chunk_rows_within
from chimap.explain import mean_and_deviation
from chimap.features.rounded import in_bfloat16
from chimap.fit.dominance import warn_of_dominance
from chimap.fit.holding_out import HoldingOut
from chimap.fit.passes import empty_moments, learning_pass, witnesses_and_tried
from chimap.fit.plan import largest_job
from chimap.fit.recipe import Recipe, checked_alpha
from chimap.fit.result import FitResult, HeldOutRows, Known
from chimap.fit.rows import PreparedRows
from chimap.fit.solving import PenalisedLoss
from chimap.fit.targets import Codec
from chimap.losses import Observed, Square
from chimap.moments import RowWeights, of_rows, unit_of
from chimap.selection.base import USUAL_FOLDS
from chimap.selection.tried import TRIED_ROWS
from chimap.solvers.base import Evidence
from chimap.solvers.observed_moments import ObservedMoments


class Batches:
    """Moments of the rows so far, of features that the first batch fixes.

    Parameters
    ----------
    recipe : Recipe
        The checked settings.
    codec : Codec
        Encodes the targets of all batches.
    first : Source
        The first batch; it is not added yet.

    Raises
    ------
    ValueError
        If principal components are asked for, as they take two passes.
    """

    def __init__(self, recipe: Recipe, codec: Codec, first: Source):
        if recipe.n_principal is not None:
            raise InputError(Message("{n_principal} takes two passes over all rows: use fit or fit_source."))
        y = first.labels()
        recipe = _in_folds(recipe) if y is not None and y.ndim == 2 else recipe
        self.recipe = recipe = recipe.fitted_to(first)
        preparation = recipe.preparation(recipe.design.parts(first.n_features), first.column_names)
        folds = recipe.holding.folds(None, None, None, recipe.seed)
        self.rows = PreparedRows(first, preparation, codec, folds, recipe.seed)
        n_features = largest_job(recipe, first, codec.n_targets).n_features
        places = self.rows.witnesses(n_features, recipe.dtype.itemsize, recipe.budget)
        sample, beside = self.rows.sample_beside(places)
        warn_of_dominance(sample, self.rows.sampled(), preparation.parts, first.name, preparation.columns)
        features = recipe.design.fit(sample, recipe.seed)
        features = in_bfloat16(features, sample) if recipe.is_rounded else features
        attributes = mean_and_deviation(sample) | {"normalization_": recipe.normalize}
        self.known = Known(recipe.seed, codec, features, attributes)
        self.moments = empty_moments(
            self.known.features, sample, folds.n_folds, codec.shift, recipe.dtype, recipe.is_rounded
        )
        self._observed = ObservedMoments(self.moments)
        n_tried = min(TRIED_ROWS, first.n_rows) if recipe.holding.asked in ("gcv", "holdout") else 0
        self.witnesses, self.tried = witnesses_and_tried(
            recipe, self.rows, self.known.features, self.moments, places, beside, n_tried
        )
        self._held_folds = self.rows.folds_to_hold_out(places)
        self._weights = self._squares = 0.0  # sums over the rows so far, as ``moments.unit_of`` takes them

    @property
    def count(self) -> int:
        """Number of rows so far."""
        return self.moments.n_rows

    def add(self, source: Source) -> None:
        """Add a batch.

        Raise DataError, naming the row, if rows or labels cannot be used; the chunks before that row have been added.
        """
        job = largest_job(self.recipe, source, self.known.codec.n_targets)
        gaps = self._observed.gaps | _gaps_of(source)
        keep = None
        if gaps:
            _check_gaps(self.recipe)
            job = replace(job, solver_bytes=job.solver_bytes + len(gaps) * job.moments_bytes)
            keep = self._observed.put
        rows, n_before = replace(self.rows, source=source), self.count
        weight = source.n_rows if source.weights is None else float(of_rows(source.weights).sum())
        self._weights += weight
        self._squares += weight * unit_of(source.weights, source.counts)
        work = learning_pass(self.recipe, rows, self.known.features, self.moments, Stopwatch(), keep)
        work = replace(work, weights=RowWeights(source.weights, n_before))
        for chunk in source.chunks(chunk_rows_within(job, self.recipe.budget)):
            work.add(chunk.X, chunk.y, n_before + chunk.start, source.name)
        work.finish()
        self._observed.release_buffers()

    def result(self) -> FitResult:
        """Return the features, and their weights learned from all rows so far."""
        clock, recipe, objective = Stopwatch(), self.recipe, self.recipe.objective
        if self._observed.gaps:
            objective = PenalisedLoss(Observed(Square()), checked_alpha(recipe.given["alpha"]))
        evidence = Evidence(
            self.moments, self._observed, device=recipe.device, seed=recipe.seed, asked=recipe.holding.asked,
            witnesses=self.witnesses, tried=self.tried, held_folds=self._held_folds,
            unit=self._squares / self._weights,
        )  # fmt: skip
        learned = objective.learn(evidence, self.known.features, clock, Progress())
        learned = learned.in_units(self.known.codec.units)
        shift = self.moments.shift if recipe.is_rounded else None
        solution = learned.solution
        return FitResult(
            self.known,
            learned,
            solution.coef,
            solution.intercept,
            shift,
            self.rows.source.n_features,
            clock.seconds,
            0,
            HeldOutRows.of(learned.held_out, self.rows),
        )


def _in_folds(recipe: Recipe) -> Recipe:
    """Return the recipe for several tasks, which are compared by folds in place of generalised cross-validation.

    Entries may be missing in a later batch, and generalised cross-validation needs complete targets. If the user asked
    for it by name, it is kept.
    """
    holding = recipe.holding
    if holding.asked != "gcv" or not holding.with_groups:
        return recipe
    holding = HoldingOut("folds", USUAL_FOLDS, USUAL_FOLDS)
    return replace(recipe, holding=holding, n_folds=holding.n_folds)


def _gaps_of(source: Source) -> set[int]:
    """Return the tasks that have missing entries."""
    y = source.labels()
    if y is None or y.ndim == 1:
        return set()
    return set(np.flatnonzero(np.isnan(y).any(axis=0)).tolist())


def _check_gaps(recipe: Recipe) -> None:
    """Raise ValueError if the settings do not support missing entries."""
    if recipe.holding.asked == "gcv":
        raise InputError(
            Message(
                "{selection='gcv'} needs targets without missing entries, but some are missing. Use "
                "{selection='auto'}."
            )
        )
    if not on_host(recipe.device):
        raise InputError(
            Message(
                "{device=} needs targets without missing entries, but some are missing. Use {device='cpu'}, or fit "
                "the tasks one by one.",
                recipe.device,
            )
        )
