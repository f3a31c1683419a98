"""A model that grows by batches of rows (``partial_fit``).

``SummedBatches`` fixes the features on the first batch and adds every batch to the moments; the weights are computed on
demand. ``KeptBatches`` keeps the rows of an exact machine, for which a batch is a block. Both use the same method and
objective as ``fit.fit``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np

from chimap import _arrays
from chimap._errors import DataError, InputError, MemoryBudgetError
from chimap._memory import budget_for, format_bytes, room_in, whole_mebibytes
from chimap._messages import Message
from chimap._types import Rows
from chimap.backends import on_host
from chimap.data import Source
from chimap.data.doubts import first_look
from chimap.data.views import InForm
from chimap.engines import LocalEngine, Progress, Stopwatch, chunk_rows_within
from chimap.explain.background import RowStatistics
from chimap.features.base import FittedFeatures, LinearForm
from chimap.features.scaled import Scale, ScaledFeatures, unscaled
from chimap.fit.checkpoint import FittedOnSample
from chimap.fit.collecting import FitRun, Sample
from chimap.fit.collecting.kernel import CHUNK_ROWS
from chimap.fit.collecting.sums import empty_moments, validation_and_scored_rows
from chimap.fit.fit import fit_candidate, learn_features, model_of_fit
from chimap.losses import Observed, Square
from chimap.machines.base import Facts, Request, filling_of
from chimap.machines.block_plan import FEWEST_BLOCK_ROWS, MOST_BLOCK_ROWS, block_bytes, mapped_row_bytes, outputs_bytes
from chimap.machines.holding_out import HoldingOut
from chimap.machines.jobs import largest_job
from chimap.machines.method import Method
from chimap.machines.objective import PenalisedLoss
from chimap.machines.rows import PreparedRows, sample_rows
from chimap.models.model import Model
from chimap.models.schema import RowSchema, units_of
from chimap.moments import DealtFolds, RowWeights, of_rows, unit_of
from chimap.race.choose import raced_recipes
from chimap.race.gamma import plan_for
from chimap.recipe import Recipe
from chimap.recipe.task import HeldOutRows, Task
from chimap.selection.base import USUAL_FOLDS, OpenSettings, checked_alpha
from chimap.selection.choose import ChosenSolution
from chimap.solvers.base import Evidence, KernelRows, Swept
from chimap.solvers.blocks import core_rows
from chimap.solvers.exact import is_shared
from chimap.solvers.held_out import SCORED_ROWS, HeldOut
from chimap.solvers.observed import ObservedMoments

# Rows of a block that small batches are gathered to: MNIST's first 12,000 rows, in batches of 250, score .957, .961 and
# .965 with blocks of 500, 1000 and 2000 rows, and .966 in a fit.
GATHERED_ROWS = 2000


class Batches(ABC):
    """The rows so far, in a form that batches can be added to.

    Attributes
    ----------
    method : Method
        How the first batch is fitted.
    task : Task
        The targets of all batches.
    schema : RowSchema
        The rows of the first batch, as the others have to be.
    """

    method: Method
    task: Task
    schema: RowSchema

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of rows so far."""

    @abstractmethod
    def add(self, source: Source) -> None:
        """Add a batch. Raise DataError, naming the row, if rows or labels cannot be used."""

    @abstractmethod
    def result(self) -> Model:
        """Return the features, and their weights learned from all rows so far."""


def first_batches(recipe: Recipe, task: Task, first: Source) -> Batches:
    """Return batches as a recipe asks for them: after a race, by the machine that the first batch gets."""
    request = Request(True, is_batch=True)
    raced = [found for found, _ in raced_recipes(recipe, first, task, None, fit_candidate, Progress(), request)]
    taken = [found for found in raced if found.normalization is None or not found.normalization.learns]
    if not taken:
        raise InputError(
            Message(
                "{normalize=} learns from all rows, and partial_fit has seen the first of them: use fit, or another of "
                "{normalize}.",
                raced[0].normalize,
            )
        )
    plan = plan_for(taken[0], Facts.of(first, task, None, request), recipe, None, fit_candidate)
    method = Method.of(plan.recipe, first.column_names)
    kind = KeptBatches if method.objective.solver.needs == "blocks" else SummedBatches
    return kind(method, task, first)


class SummedBatches(Batches):
    """Moments of the rows so far, of features that the first batch fixes.

    Parameters
    ----------
    method : Method
        The checked settings.
    task : Task
        The targets of all batches.
    first : Source
        The first batch; it is not added yet.

    Raises
    ------
    ValueError
        If principal components are asked for, as they take two passes.
    """

    def __init__(self, method: Method, task: Task, first: Source):
        self.task, codec = task, task.codec
        if method.n_principal is not None:
            raise InputError(Message("{n_principal} takes two passes over all rows: use fit or fit_source."))
        y = first.labels()
        method = _in_folds(method) if y is not None and y.ndim == 2 else method
        self.method = method = method.fitted_to(first, codec, None)
        self.schema = _schema_of(method, first)
        preparation = method.preparation(first)
        folds = method.holding.folds(None, None, None, method.recipe.seed)
        self.rows = PreparedRows(first, preparation, codec, folds, method.recipe.seed)
        n_features = largest_job(method, first, codec.n_targets).n_features
        places = self.rows.validation(n_features, method.recipe.dtype.itemsize, method.recipe.budget)
        sample, others = self.rows.sample_and(places)
        run = FitRun(LocalEngine(), Progress(), Stopwatch(), Request(can_keep=True, is_batch=True))
        self.fitted = learn_features(method, self.rows, Sample(sample, None, places, others), run)
        self.moments = empty_moments(self.fitted.features, sample, folds.n_folds, codec.shift, method.recipe.dtype)
        self._observed = ObservedMoments(self.moments)
        n_scored = min(SCORED_ROWS, first.n_rows) if method.holding.asked in ("gcv", "holdout") else 0
        self.validation, self.scored_rows = validation_and_scored_rows(
            method, self.rows, self.fitted.features, self.moments, places, others, n_scored
        )
        self._held_folds = self.rows.folds_to_hold_out(places)
        self._weights = self._squares = 0.0  # sums over the rows so far, as ``moments.unit_of`` takes them

    @property
    def count(self) -> int:
        return self.moments.n_rows

    def add(self, source: Source) -> None:
        """Add a batch.

        Raise DataError, naming the row, if rows or labels cannot be used; the chunks before that row have been added.
        """
        job = largest_job(self.method, source, self.fitted.codec.n_targets)
        gaps = self._observed.gaps | _gaps_of(source)
        keep = None
        if gaps:
            _check_gaps(self.method)
            job = replace(job, solver_bytes=job.solver_bytes + len(gaps) * job.moments_bytes)
            keep = self._observed.put
        rows, n_before = replace(self.rows, source=source), self.count
        weight = source.n_rows if source.weights is None else float(of_rows(source.weights).sum())
        self._weights += weight
        self._squares += weight * unit_of(source.weights, source.counts)
        work = self.method.learning_pass(rows, self.fitted.features, self.moments, Stopwatch(), keep)
        work = replace(work, weights=RowWeights(source.weights, n_before))
        for chunk in source.chunks(chunk_rows_within(job, self.method.recipe.budget)):
            work.add(chunk.X, chunk.y, n_before + chunk.start, source.name)
        work.finish()
        self._observed.release_buffers()

    def result(self) -> Model:
        clock, method, objective = Stopwatch(), self.method, self.method.objective
        if self._observed.gaps:
            objective = PenalisedLoss(Observed(Square()), OpenSettings(checked_alpha(method.recipe.alpha)))
        evidence = Evidence(
            self.moments,
            self._observed,
            device=method.recipe.device,
            seed=method.recipe.seed,
            asked=method.holding.asked,
            validation=self.validation,
            scored_rows=self.scored_rows,
            held_folds=self._held_folds,
            unit=self._squares / self._weights,
        )
        learned = objective.learn(evidence, self.fitted.features, clock, Progress())
        learned = learned.in_units(self.fitted.codec.units)
        kept = LinearForm(self.fitted.features, learned.solution.coef, learned.solution.intercept)
        return model_of_fit(
            method, self.task, self.schema, self.fitted, kept, learned, self.rows.held_out_rows(learned.held_out), None
        )


class KeptBatches(Batches):
    """Rows so far, and an exact machine that learns them block by block (``solvers.blocks``).

    The first batch fixes map and gamma. Batches are gathered until they are worth a factor, ``GATHERED_ROWS``, and are
    then a block; the first block chooses gamma="auto" and the strength. If the machine is asked before, fewer rows are
    learned as a block, and once more together with those that follow. Both begin with the blocks before, so that asking
    in between changes nothing.

    Parameters
    ----------
    method : Method
        The checked settings, of a machine in blocks.
    task : Task
        The targets of all batches.
    first : Source
        The first batch; it is not added yet.

    Raises
    ------
    ValueError
        If folds or test sets are asked for, as rows to come are in none.
    """

    def __init__(self, method: Method, task: Task, first: Source):
        self.task, codec = task, task.codec
        if method.holding.asked != "leave-out":
            raise InputError(
                Message(
                    "exact machines leave out single rows of batches: use {selection='auto'}; got {selection=}.",
                    method.recipe.selection,
                )
            )
        self.method, self.schema = method, _schema_of(method, first)
        preparation = method.preparation(first)
        self._rows = PreparedRows(first, preparation, codec, DealtFolds(1, method.recipe.seed), method.recipe.seed)
        size = min(first.n_rows, sample_rows(first.n_features))
        filling = filling_of(first)
        self._is_sparse = filling.is_sparse
        sample = preparation(InForm(first, self._is_sparse).block(0, size).X, 0, first.name)
        weights = None if first.weights is None else of_rows(first.weights[:size])
        features = method.features(sample, weights)
        self.fitted = FittedOnSample(
            method.recipe.seed, codec, features.take(slice(0)), method.normalization, RowStatistics.of(sample)
        )
        self._row_bytes = mapped_row_bytes(method.recipe, first, filling)
        self._labels = self._rows.labels[:0]
        self._weights: np.ndarray | None = None
        self._order = np.empty(0, dtype=np.intp)
        self._borders = [0]  # of the blocks that are complete
        self._gathered: list[Rows] = []  # prepared rows that the features do not hold yet
        self._swept: Swept | None = None
        self._latest: tuple[FittedFeatures, ChosenSolution] | None = (
            None  # features and machine of the rows that were learned last
        )

    @property
    def count(self) -> int:
        return int(self._labels.shape[0])

    def add(self, source: Source) -> None:
        """Add a batch; learn it if there are enough rows for a block.

        Raises
        ------
        DataError
            If rows or labels cannot be used; none has been added then.
        MemoryBudgetError
            If the budget does not hold these rows and a block of their kernel matrix.
        """
        rows, n_before, n = self._rows, self.count, source.n_rows
        labels = rows.labels[:0] if source.labels() is None else np.asarray(source.labels())
        if not is_shared(np.asarray(rows.codec.encode(labels)), source.weights):
            raise DataError(
                Message(
                    "partial_fit of {features='exact'} takes targets without missing entries or separate weights. "
                    "Use {features='landmarks'}, or fit the tasks one by one."
                )
            )
        self._check_memory(n_before + n)
        chunks = InForm(source, self._is_sparse).chunks(CHUNK_ROWS)
        prepared = [rows.prepare(c.X, n_before + c.start, source.name) for c in chunks]
        order = np.random.default_rng([self.method.recipe.seed, n_before]).permutation(n)
        self._gathered.append(_arrays.take_rows(_arrays.stack_rows(prepared), order))
        if source.weights is not None or self._weights is not None:
            before = np.ones(n_before) if self._weights is None else self._weights
            now = np.ones(n) if source.weights is None else of_rows(source.weights)
            self._weights = np.concatenate([before, now])
        self._labels = np.concatenate([self._labels, labels])
        self._order = np.concatenate([self._order, n_before + order])
        if self.count - self._borders[-1] >= GATHERED_ROWS:
            blocks = -(-(self.count - self._borders[-1]) // self._most_block_rows(self.count))
            ends = np.linspace(self._borders[-1], self.count, blocks + 1).round()[1:]
            self._borders += ends.astype(int).tolist()
            self._learn(self._borders)

    def result(self) -> Model:
        if self._latest is None or self._latest[1].n_rows < self.count:
            self._learn([*self._borders, self.count], Stopwatch())
        assert self._latest is not None
        features, learned = self._latest
        kept = features.simplified(learned.solution.coef, learned.solution.intercept)
        return model_of_fit(
            self.method,
            self.task,
            self.schema,
            replace(self.fitted, features=features),
            kept,
            learned,
            self._held_out(learned.held_out),
            learned.curve,
        )

    def _held_out(self, held_out: HeldOut | None) -> HeldOutRows | None:
        """Return the outputs of rows left out with the labels and weights of these rows."""
        if held_out is None:
            return None
        weights = None if self._weights is None else self._weights[held_out.rows]
        return HeldOutRows(held_out.outputs, self._labels[held_out.rows], weights, held_out.noise)

    def _learn(self, borders: list[int], clock: Stopwatch | None = None) -> None:
        """Learn the blocks that are left, and keep the machine; go on later from the last that is complete."""
        method, codec, weights = self.method, self._rows.codec, self._weights
        self._extend()
        features = self.fitted.features.take(slice(None))  # the search for gamma changes it
        evidence_rows = KernelRows(
            unscaled(features),
            self._order,
            None,
            np.asarray(codec.encode(self._labels[self._order]), dtype=np.float64),
            codec.shift,
            None if weights is None else weights[self._order],
            codec.score(self._labels, method.recipe.scoring, weights),
            method.recipe.dtype,
            unit_of(weights),
            has_noise=codec.has_noise,
            units=codec.units,
        )
        ends = np.array(borders)
        begun = None if self._swept is None else replace(self._swept, borders=ends)
        evidence = Evidence(
            kernel=evidence_rows,
            borders=ends,
            n_rows=self.count,
            begun=begun,
            reached=self._keep,
            device=method.recipe.device,
            seed=method.recipe.seed,
        )
        learned = method.objective.learn(evidence, features, clock or Stopwatch(), Progress())
        self._latest = features, learned

    def _keep(self, swept: Swept) -> None:
        """Keep the state after a block that is complete."""
        if swept.weights.shape[0] <= self._borders[-1]:
            self._swept = replace(swept, weights=swept.weights.copy(), held_out=swept.held_out.copy())

    def _extend(self) -> None:
        """Give the gathered rows to the features."""
        if self._gathered:
            features = self.fitted.features
            scale = features.scale if isinstance(features, ScaledFeatures) else Scale()
            unscaled(features).extend(scale.rows(_arrays.stack_rows(self._gathered)))
            self._gathered = []

    def _check_memory(self, n_rows: int) -> None:
        """Raise MemoryBudgetError unless the largest budget holds so many rows and a block of their kernel matrix."""
        least, budget = self._bytes(n_rows, min(n_rows, FEWEST_BLOCK_ROWS)), self.method.recipe.most_memory
        if least > room_in(budget):
            raise MemoryBudgetError(
                Message(
                    "{memory} of {} is too small for an exact machine of {:,} rows and the {:,} of this batch: with a "
                    "block of their kernel matrix they take {}. The batch was not added. Begin with {memory=}, or use "
                    "{features='landmarks'}, whose memory does not grow.",
                    format_bytes(budget),
                    self.count,
                    n_rows - self.count,
                    format_bytes(budget_for(least)),
                    whole_mebibytes(budget_for(2 * least)),
                )
            )

    def _most_block_rows(self, n_rows: int) -> int:
        """Return the rows of the largest block that the budget holds besides so many rows."""
        sizes = range(MOST_BLOCK_ROWS, FEWEST_BLOCK_ROWS, -FEWEST_BLOCK_ROWS)
        room = room_in(self.method.recipe.budget)
        return next((m for m in sizes if self._bytes(n_rows, m) <= room), FEWEST_BLOCK_ROWS)

    def _bytes(self, n_rows: int, block_rows: int) -> int:
        """Return the bytes of so many rows, of which there are two copies when some are added, and of a block."""
        kept = 2 * self._row_bytes + outputs_bytes(self._rows.codec.n_targets)
        core = core_rows(self._borders[1]) if len(self._borders) > 1 else 0
        return int(n_rows * kept) + block_bytes(block_rows + core, self._row_bytes, self.method.recipe.dtype)


def _schema_of(method: Method, first: Source) -> RowSchema:
    """Return the schema of the first batch."""
    schema = RowSchema.of(method.recipe.estimator, first, *units_of(first_look(first)[0], None))
    return schema.finished(method.normalization, None)


def _in_folds(method: Method) -> Method:
    """Return the method for several tasks, which are compared by folds in place of generalised cross-validation.

    Entries may be missing in a later batch, and generalised cross-validation needs complete targets. If the user asked
    for it by name, it is kept.
    """
    holding = method.holding
    if holding.asked != "gcv" or not holding.n_group_folds:
        return method
    return replace(method, holding=HoldingOut("folds", USUAL_FOLDS, USUAL_FOLDS))


def _gaps_of(source: Source) -> set[int]:
    """Return the tasks that have missing entries."""
    y = source.labels()
    if y is None or y.ndim == 1:
        return set()
    return set(np.flatnonzero(np.isnan(y).any(axis=0)).tolist())


def _check_gaps(method: Method) -> None:
    """Raise ValueError if the settings do not support missing entries."""
    if method.holding.asked == "gcv":
        raise InputError(
            Message(
                "{selection='gcv'} needs targets without missing entries, but some are missing. Use {selection='auto'}."
            )
        )
    if not on_host(method.recipe.device):
        raise InputError(
            Message(
                "{device=} needs targets without missing entries, but some are missing. Use {device='cpu'}, or fit "
                "the tasks one by one.",
                method.recipe.device,
            )
        )
