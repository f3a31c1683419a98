"""How a machine in blocks takes the rows of a source: its memory, its work, the sizes of its blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from chimap import _threads
from chimap._progress import Ahead
from chimap._types import JSON, Blocks
from chimap._validation import check_blocks
from chimap.backends import backend_of, on_host
from chimap.data import Source
from chimap.data.table import named_blocks
from chimap.engines.rates import RATES
from chimap.machines.base import CHOICE_FACTORS, Cost, Facts, search_ahead
from chimap.moments.kept_rows import FilledShares
from chimap.recipe.recipe import Recipe
from chimap.solvers.blocks import core_rows

MOST_BLOCK_ROWS = 10_000  # a factor takes two seconds of two cores, and larger blocks gain nothing
FEWEST_BLOCK_ROWS = 500  # smaller blocks take longer to learn about than landmarks of the same memory
USUAL_SECONDS = 240.0  # of counted work that a sweep may do
BLOCK_TERMS = 1  # features per bin of machines in blocks: a second costs as much again and gains nothing at many rows
_STEP_OF_BLOCKS = 500  # rows by which blocks differ that are tried for the memory
_FIRST_SHARE = 0.3  # of the seconds of a fit that its first block may take
# On a device: rows of a factor, of which a sweep over millions of rows then has as much to do as products, and the
# factors that a sweep has at least, as each scores the machine before it.
_MOST_ON_DEVICE, _FEWEST_FACTORS = 20_000, 8
_OUTPUTS_OF_ROWS = 4  # matrices of targets, weights and outputs of all rows
# Of the rows that a sweep would take in if factors cost nothing, those that it takes in at least: larger blocks come
# nearer to the exact solution, and leave work for fewer rows.
_LEAST_SHARE = 0.7


def block_bytes(block_rows: int, row_bytes: float, dtype: np.dtype) -> int:
    """Return the bytes of a sweep with blocks of so many rows, besides the rows: see ``exact_bytes``."""
    columns = block_rows + 512 * _threads.count()
    return int(dtype.itemsize * block_rows * columns + 3 * block_rows * row_bytes)


def block_seconds(n_rows: int, block_rows: int, n_columns: float) -> float:
    """Return the seconds of a sweep on two cores, by its operations, for mapped rows of so many (dense) columns.

    It needs half of the pairs of rows.
    """
    pairs = n_rows**2 / 2
    factors = n_rows * _factor_operations(block_rows)
    return 2 * pairs * n_columns / RATES.products + pairs * RATES.exponential_seconds + factors / RATES.factors


def choice_seconds(n_rows: int) -> float:
    """Return the seconds of a machine on one matrix of so many rows, with the choice of strength and gamma."""
    return CHOICE_FACTORS * block_seconds(n_rows, n_rows, 0)


def _factor_operations(block_rows: int) -> float:
    """Return the operations of factors for each new row."""
    return block_rows**3 / 3 / (block_rows - core_rows(block_rows)) if block_rows else 0.0


def most_rows_within(seconds: float, block_rows: int, n_columns: float) -> int:
    """Return the rows that a sweep learns from in so many seconds of two cores."""
    square = block_seconds(2, 0, n_columns) / 4
    linear = _factor_operations(block_rows) / RATES.factors
    return int((np.sqrt(linear**2 + 4 * square * seconds) - linear) / (2 * square))


@dataclass(frozen=True, kw_only=True)
class BlockPlan(Cost):
    """How a machine in blocks takes the rows of a source, and what that takes.

    Parameters
    ----------
    n_bytes, seconds, n_rows
        See ``Cost``: bytes of the rows and of a block, and those rows of the source that the work allows.
    block_rows : int
        Rows of the first block, which this machine solves: as many as its memory holds.
    factor_rows : int
        Rows of the factors of later blocks: as many, or more on a device that holds them.
    is_held : bool
        Whether the device, if there is one, has room for the rows and a block.
    n_columns : float
        Columns of mapped rows, as dense ones count.
    """

    block_rows: int
    factor_rows: int
    is_held: bool
    n_columns: float

    def ahead(self, searches: bool) -> tuple[Ahead, ...]:
        """See ``Cost``: the search on the first block, and the sweep."""
        search = search_ahead(self.block_rows, self.first_seconds, searches)
        if self.block_rows >= self.n_rows:
            return (search,)
        faster = self.seconds / block_seconds(self.n_rows, self.block_rows, self.n_columns)

        def seconds(n: float) -> float:
            """Return those of the rows behind the first block, which the search has learned."""
            first, reached = (block_seconds(int(k), self.block_rows, self.n_columns) for k in (self.block_rows, n))
            return faster * max(0.0, reached - first)

        return search, Ahead("blocks", self.n_rows, seconds)

    def fits(self, room: int) -> bool:
        """Return whether ``room`` bytes, and the device, hold the rows and a block."""
        return self.is_held and self.n_bytes <= room

    @property
    def sizes(self) -> JSON:
        return super().sizes | {"chunk_rows": self.block_rows, "seconds": self.first_seconds + self.seconds}

    @property
    def first_seconds(self) -> float:
        """Seconds of the first block, on which strength and gamma are chosen too."""
        return choice_seconds(self.block_rows)


def block_plan(recipe: Recipe, facts: Facts) -> BlockPlan:
    """Return how a machine in blocks takes the rows of a source within its memory.

    The work is that of the time limit, or a usual amount. A device does it faster, apart from the
    first block, which is solved on this machine.

    Blocks are as large as memory allows. Where the work does not allow all rows and much of it would be factors, they
    are smaller, to take in more rows.
    """
    backend, source = backend_of(recipe.device), facts.source
    dtype = recipe.dtype
    row_bytes = mapped_row_bytes(recipe, source, facts.filling)
    kept_bytes = row_bytes + outputs_bytes(facts.n_outputs)
    seconds = recipe.time_limit or USUAL_SECONDS
    terms = terms_of(recipe, BLOCK_TERMS) * share_of_columns(recipe.blocks, source)
    stored = int(terms * source.n_features)
    is_by_columns = on_host(recipe.device) or compares_entries(recipe)
    columns = sweep_columns(recipe, facts) if is_by_columns else stored
    least = min(FEWEST_BLOCK_ROWS, source.n_rows)

    def of_blocks(block_rows: int) -> BlockPlan:
        work = seconds * backend.speed
        n_rows = min(source.n_rows, max(block_rows, most_rows_within(work, block_rows, columns)))
        needed = int(n_rows * kept_bytes) + block_bytes(block_rows, row_bytes, dtype)
        return BlockPlan(
            n_bytes=needed,
            seconds=block_seconds(n_rows, block_rows, columns) / backend.speed,
            n_rows=n_rows,
            block_rows=block_rows,
            factor_rows=block_rows,
            is_held=backend.holds(n_rows, stored, block_rows, dtype),
            n_columns=columns,
        )

    def factor_rows(plan: BlockPlan) -> int:
        """Return the rows of factors on the device: the most that it holds besides the rows."""
        if on_host(recipe.device):
            return plan.block_rows
        most = min(_MOST_ON_DEVICE, plan.n_rows // _FEWEST_FACTORS)
        sizes = range(most, plan.block_rows, -_STEP_OF_BLOCKS)
        return next((m for m in sizes if backend.holds(plan.n_rows, stored, m, dtype)), plan.block_rows)

    sizes = range(min(MOST_BLOCK_ROWS, source.n_rows), least, -_STEP_OF_BLOCKS)
    plans = [of_blocks(size) for size in [*sizes, least]]
    fitting = [p for p in plans if p.fits(recipe.room) and p.first_seconds <= _FIRST_SHARE * seconds]
    if not fitting:
        return plans[-1]
    if fitting[0].n_rows == source.n_rows:
        return replace(fitting[0], factor_rows=factor_rows(fitting[0]))
    enough = _LEAST_SHARE * most_rows_within(seconds * backend.speed, 0, columns)
    return next((plan for plan in fitting if plan.n_rows >= enough), fitting[-1])


def sweep_columns(recipe: Recipe, facts: Facts) -> float:
    """Return the dense columns whose products take this machine as long as kernel values, in all blocks together."""
    filling, share = facts.filling, share_of_columns(recipe.blocks, facts.source)
    if not compares_entries(recipe):
        return terms_of(recipe, BLOCK_TERMS) * share * filling.dense_columns
    if filling.are_small and recipe.normalize is None and recipe.given_bin_weights is None:
        seconds = float(filling.shares.sum()) / RATES.small_entries
    else:
        seconds = float(np.square(filling.shares).sum()) / RATES.shared_entries
    return share * seconds * RATES.products / 2


def compares_entries(recipe: Recipe) -> bool:
    """Whether values are computed entry by entry, and not from products: of the min-max kernel."""
    return any(kernel.compares_entries for kernel in recipe.exact_kernels)


def outputs_bytes(n_targets: int) -> int:
    """Return the bytes of the targets, weights and outputs of a row of a machine in blocks."""
    return _OUTPUTS_OF_ROWS * n_targets * np.dtype(np.float64).itemsize


def mapped_row_bytes(recipe: Recipe, source: Source, filling: FilledShares) -> float:
    """Return the bytes of a mapped row that is kept, in the larger precision of those of the rows and the fit."""
    itemsize = max(source.dtype.itemsize, recipe.dtype.itemsize)
    return terms_of(recipe, BLOCK_TERMS) * filling.row_bytes(itemsize) * share_of_columns(recipe.blocks, source)


def terms_of(recipe: Recipe, usual: int) -> int:
    """Return the features per bin that are asked for, or the usual ones."""
    if recipe.map is not None:
        return int(recipe.map._terms_at_most)
    return usual if recipe.leaves_open("n_terms") else int(recipe.n_terms)


def share_of_columns(blocks: Blocks | None, source: Source) -> float:
    """Return how many columns all blocks have together, which may overlap, as a share of those of the source."""
    if blocks is None:
        return 1.0
    _, columns = check_blocks(named_blocks(blocks, source.column_names), source.n_features)
    return sum(block.size for block in columns) / source.n_features
