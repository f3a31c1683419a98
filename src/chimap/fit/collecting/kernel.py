"""Keep every row, for machines that are solved on the kernel matrix between all rows, or block by block of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._memory import budget_for, format_bytes, whole_mebibytes
from chimap._messages import Message
from chimap._types import Rows
from chimap._validation import DataError, MemoryBudgetError
from chimap.backends.base import RowFeatures
from chimap.data.rows import RunningDigest
from chimap.data.source import choose_rows
from chimap.data.views import InForm
from chimap.engines import Progress
from chimap.features.base import FittedFeatures
from chimap.features.exact import RowKernel
from chimap.features.nearest import LEFT_OUT_ROWS, distances_among
from chimap.features.scaled import Scale, ScaledFeatures, unscaled
from chimap.fit.checkpoint import SavedState
from chimap.fit.collecting.base import Collected, Collector, FitRun, Passes, Sample
from chimap.machines.base import Plan, Request
from chimap.machines.block_plan import BlockPlan, block_plan
from chimap.machines.method import Method
from chimap.machines.rows import PreparedRows
from chimap.moments import RowFolds, of_rows
from chimap.solvers.base import Evidence, KernelRows, Needs, WatchedRows
from chimap.solvers.blocks import core_rows
from chimap.solvers.exact import is_shared
from chimap.solvers.held_out import HeldOut

CHUNK_ROWS = 2048  # rows that are read at once, besides those that are there


@dataclass(frozen=True)
class RowsCollector(Collector):
    """Keep every row, in a random order in which rows that are left out together are adjacent.

    Parameters
    ----------
    method : Method
        The settings.
    rows : PreparedRows
        The rows; those of a fold are left out together, or each alone if there is one fold.
    order : array of shape (n,)
        Places in the source of the rows to learn from.
    groups : list of arrays, or None
        Places in that order of the rows that are left out together; None if each is left out alone.
    """

    method: Method
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

    def measured(self, held_out: HeldOut) -> np.ndarray:
        """See ``Collector``: any of the rows, as each is left out with its group."""
        return choose_rows(held_out.rows.size, LEFT_OUT_ROWS, self.method.recipe.seed)

    def measure(self, features: FittedFeatures, places: np.ndarray, empty: np.ndarray, sample: Sample) -> np.ndarray:
        """See ``Collector``: to the nearest kept row of another group."""
        place_of = np.full(self.rows.source.n_rows, -1)
        place_of[self.order] = np.arange(self.order.size)
        return distances_among(features, place_of[places], empty, self.groups)

    def kernel_rows(self, features: RowKernel) -> KernelRows:
        """Return the rows that the features hold, with their targets and their score."""
        codec, y, source = self.rows.codec, self.rows.labels, self.rows.source
        return KernelRows(
            features,
            self.order,
            self.groups,
            np.asarray(codec.encode(y[self.order]), dtype=np.float64),
            codec.shift,
            None if source.weights is None else source.weights[self.order],
            codec.score(y, self.method.recipe.scoring, source.weights),
            self.method.recipe.dtype,
            self.rows.unit,
            self.rows.has_rare,
            codec.has_noise,
            codec.units,
            None if source.counts is None else source.counts[self.order],
            None if self.rows.hidden is None else self.rows.hidden[self.order],
        )


@dataclass(frozen=True)
class KernelCollector(RowsCollector):
    """Read all rows at once, for the kernel matrix between them."""

    needs: ClassVar[Needs] = "kernel"

    @classmethod
    def planned(cls, method: Method, plan: Plan, rows: PreparedRows, run: FitRun, saved: SavedState | None) -> Self:
        n_rows, needed = rows.source.n_rows, plan.cost.n_bytes
        if needed > method.recipe.room:
            raise MemoryBudgetError(
                Message(
                    "{memory} of {} is too small for the kernel matrix of {:,} rows: it takes {}. Give {memory=}, take "
                    "fewer rows, or use {features='landmarks'}.",
                    format_bytes(method.recipe.budget),
                    n_rows,
                    format_bytes(budget_for(needed)),
                    whole_mebibytes(budget_for(needed)),
                )
            )
        return cls(method, rows, *order_of(rows.folds, n_rows, method.recipe.seed, run.watch))

    def sample(self, progress: Progress, saved: SavedState | None) -> Sample:
        """Return all rows, with their weights."""
        source = self.rows.source
        progress.stage("sampling", source.n_rows)
        prepared = []
        for chunk in source.chunks(CHUNK_ROWS):
            prepared.append(self.rows.prepare(chunk.X, chunk.start, source.name))
            progress.advance(chunk.X.shape[0])
        rows: Rows = _arrays.take_rows(_arrays.stack_rows(prepared), self.order)
        weights = None if source.weights is None else source.weights[self.order]
        return Sample(rows, None if weights is None else of_rows(weights), order=self.order)

    def collect(self, passes: Passes, features: Any, sample: Sample) -> Collected:
        """Return the rows that the features keep."""
        kernel = self.kernel_rows(unscaled(features))
        return Collected(Evidence(kernel=kernel, device=self.method.recipe.device, seed=self.method.recipe.seed))


def order_of(
    folds: RowFolds, n_rows: int, seed: int, watch: WatchedRows | None = None
) -> tuple[np.ndarray, list[np.ndarray] | None]:
    """Return a random order in which the rows of a fold are adjacent, and their places in it; None without folds.

    Rows that are watched, whole folds of them, come last.
    """
    rng = np.random.default_rng(seed)
    watched = np.zeros(n_rows, dtype=bool)
    watched[[] if watch is None else watch.places] = True
    if folds.n_folds == 1:
        order = rng.permutation(n_rows)
        return order[np.argsort(watched[order], kind="stable")], None
    fold_of_rows = folds(0, n_rows)
    sizes = np.bincount(fold_of_rows, minlength=folds.n_folds)
    members = np.split(np.argsort(fold_of_rows, kind="stable"), np.cumsum(sizes)[:-1])
    members = [rows for rows in members if rows.size]
    rng.shuffle(members)
    members.sort(key=lambda rows: bool(watched[rows[0]]))
    edges = np.cumsum([0, *(rows.size for rows in members)])
    return np.concatenate(members), [np.arange(a, b) for a, b in pairwise(edges)]


def first_and_last(
    order: np.ndarray, groups: list[np.ndarray] | None, n_rows: int, n_last: int
) -> tuple[np.ndarray, list[np.ndarray] | None]:
    """Return at most ``n_rows`` rows of an order, among them the last ``n_last``, and the places of their groups.

    >>> first_and_last(np.arange(9), None, 5, 2)[0].tolist()
    [0, 1, 2, 7, 8]
    >>> order, groups = first_and_last(np.arange(9), [np.arange(3), np.arange(3, 6), np.arange(6, 9)], 7, 3)
    >>> order.tolist(), [group.tolist() for group in groups]
    ([0, 1, 2, 6, 7, 8], [[0, 1, 2], [3, 4, 5]])
    """
    n = order.size
    if n <= n_rows:
        return order, groups
    if groups is None:
        return np.concatenate([order[: n_rows - n_last], order[n - n_last :]]), None
    kept = [group for group in groups if group[-1] < n_rows - n_last or group[0] >= n - n_last]
    edges = np.cumsum([0, *(group.size for group in kept)])
    return order[np.concatenate(kept)], [np.arange(a, b) for a, b in pairwise(edges)]


@dataclass(frozen=True)
class BlocksCollector(RowsCollector):
    """Read the rows once, each to its place, for blocks whose kernel matrices fit in memory one at a time.

    Parameters
    ----------
    method, rows, order, groups
        See ``RowsCollector``.
    borders : array of shape (blocks + 1,)
        Where each block begins in that order, and the end of the last.
    watch : WatchedRows or None
        What ends the sweep where more rows bring nothing. Its rows are the last of the order.
    """

    needs: ClassVar[Needs] = "blocks"
    borders: np.ndarray
    watch: WatchedRows | None

    @classmethod
    def planned(cls, method: Method, plan: Plan, rows: PreparedRows, run: FitRun, saved: SavedState | None) -> Self:
        rows = replace(rows, source=InForm(rows.source, plan.facts.filling.is_sparse))
        source, weights = rows.source, rows.source.weights
        if not is_shared(np.asarray(rows.codec.encode(rows.labels)), weights):
            raise DataError(
                Message(
                    "tasks with missing entries, or with a {class_weight} of their own, take one kernel matrix of all "
                    "{:,} rows, which {memory} does not hold. Use {features='landmarks'}, or fit the tasks one by one.",
                    source.n_rows,
                )
            )
        cost = block_plan(method.recipe, plan.facts)
        if cost.n_bytes > method.recipe.room:
            raise MemoryBudgetError(
                Message(
                    "{memory} of {} is too small for {:,} rows and a block of their kernel matrix: they take {}. Give "
                    "{memory=}, or use {features='landmarks'}.",
                    format_bytes(method.recipe.budget),
                    cost.n_rows,
                    format_bytes(budget_for(cost.n_bytes)),
                    whole_mebibytes(budget_for(cost.n_bytes)),
                )
            )
        if not cost.is_held:
            raise MemoryBudgetError(
                Message(
                    "{device=} has no room for {:,} dense mapped rows and a block of their kernel matrix. Use "
                    "{device='cpu'}, or {features='landmarks'}.",
                    method.recipe.device,
                    cost.n_rows,
                )
            )
        order, groups = order_of(rows.folds, source.n_rows, method.recipe.seed, run.watch)
        if run.watch is not None:
            order, groups = first_and_last(order, groups, cost.n_rows, run.watch.places.size)
        begun = None if saved is None else saved.swept
        borders = block_borders(cost, order.size, groups) if begun is None else begun.borders
        n = int(borders[-1])
        if groups is not None:
            groups = [group for group in groups if group[0] < n]
        return cls(method, rows, order[:n], groups, borders, run.watch)

    def sample(self, progress: Progress, saved: SavedState | None) -> Sample:
        """Return the rows of the first block, with their weights, to fit map and gamma on."""
        if saved is not None:
            return Sample(None)
        places = self.order[: self.borders[1]]
        ascending = np.sort(places)
        rows = _arrays.take_rows(self.rows.take(ascending), np.searchsorted(ascending, places))
        weights = self.rows.source.weights
        return Sample(rows, None if weights is None else of_rows(weights[places]))

    def collect(self, passes: Passes, features: RowFeatures, sample: Sample) -> Collected:
        """Read the rows to their places in the features, and return them with targets and score."""
        method, source = self.method, self.rows.source
        scale = features.scale if isinstance(features, ScaledFeatures) else Scale()
        kept = unscaled(features)
        fitted = replace(passes.fitted, features=passes.fitted.features.take(slice(0)))  # for a checkpoint: no rows
        keeper = kept.keeper(self.order.size)
        place_of = np.full(source.n_rows, -1)
        place_of[self.order] = np.arange(self.order.size)
        seen = None if passes.run.checkpoint is None else RunningDigest()
        passes.run.progress.stage("reading", source.n_rows)
        with passes.run.clock("reading"):
            for chunk in source.chunks(CHUNK_ROWS):
                if seen is not None:
                    seen.add(chunk.X)
                places = place_of[chunk.start : chunk.start + chunk.X.shape[0]]
                chosen = np.flatnonzero(places >= 0)
                if chosen.size:
                    some = chunk.X if chosen.size == places.size else _arrays.take_rows(chunk.X, chosen)
                    prepared = self.rows.prepare(some, chunk.start + chosen, source.name)
                    keeper.put(places[chosen], scale.rows(prepared))
                passes.run.progress.advance(chunk.X.shape[0])
            keeper.close()
        saved, digest = passes.saved, "" if seen is None else seen.result()
        if saved is not None:
            saved.check_rows(digest, source.name)
        evidence = Evidence(
            kernel=self.kernel_rows(kept),
            borders=self.borders,
            n_rows=source.n_rows,
            device=method.recipe.device,
            seed=method.recipe.seed,
            begun=None if saved is None else saved.swept,
            reached=None if passes.run.checkpoint is None else partial(passes.swept, fitted, digest),
            watch=self.watch,
            held=passes.run.engine.hold(),
            ends_at=passes.run.ends_at,
        )
        return Collected(evidence)


def block_borders(plan: BlockPlan, n_rows: int, groups: list[np.ndarray] | None) -> np.ndarray:
    """Return where blocks begin, and the end of the last; no group is divided.

    The first has the rows of its factor, and the others those that the core leaves of theirs: as few blocks as hold
    them, and as even as whole groups allow. A single one has at least half of its room, which the first makes: scores,
    noise and thresholds rest on the last block. Raises DataError for a group that is larger than a block.
    """
    most = plan.factor_rows - core_rows(plan.block_rows)
    ends = np.arange(1, n_rows + 1) if groups is None else np.array([group[-1] + 1 for group in groups])
    largest, room = np.diff(ends, prepend=0).max(), min(most, plan.block_rows)
    if largest > room:
        raise DataError(
            Message(
                "the largest of {groups} has {:,} rows, and {memory} holds a block of {:,}. Give more memory, or use "
                "{features='landmarks'}.",
                largest,
                room,
            )
        )
    ends = ends[ends <= plan.n_rows]
    n = int(ends[-1])
    first = n if n <= plan.block_rows else min(plan.block_rows, n - most // 2)
    begin = int(ends[ends <= first][-1])
    least = [n]  # the first places from which 0, 1, 2, ... blocks hold the rest
    while least[-1] > begin:
        least.append(int(ends[np.searchsorted(ends, least[-1] - most)]))
    borders = [0, begin]
    for even, lowest in zip(np.linspace(begin, n, len(least)).round()[1:], least[-2::-1], strict=True):
        possible = ends[(ends >= max(lowest, borders[-1] + 1)) & (ends <= borders[-1] + most)]
        borders.append(int(possible[np.argmin(np.abs(possible - even))]))
    return np.array(borders, dtype=np.intp)
