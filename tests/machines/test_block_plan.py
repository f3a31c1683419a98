"""Plans of machines in blocks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import HistogramRegressor
from chimap.data import ArraySource
from chimap.machines.base import Facts, Request
from chimap.machines.block_plan import MOST_BLOCK_ROWS, block_bytes, block_plan
from chimap.moments.kept_rows import FilledShares, KeptRows
from chimap.recipe import Recipe
from chimap.recipe.task import Task


@pytest.mark.parametrize(("columns", "block_rows"), [(20, 9500), (2000, 10_000)], ids=["cheap", "dear"])
def test_blocks_are_smaller_where_work_is_short_and_most_of_it_would_be_factors(columns, block_rows):
    recipe = Recipe.of(HistogramRegressor("exp-chi2", memory="64GiB"))

    def plan(n_rows):
        rows, y = np.broadcast_to(np.float32(1), (n_rows, columns)), np.arange(n_rows) % 7.0
        source = ArraySource(rows, y)
        return block_plan(recipe, Facts.of(source, Task.of(source, recipe)[0], None, Request(can_keep=True)))

    assert plan(10**6).block_rows == block_rows
    assert block_rows < plan(10**6).n_rows < 10**6
    assert plan(50_000).block_rows == MOST_BLOCK_ROWS


def test_columns_of_few_entries_count_by_the_entries_that_rows_share():
    few = np.full(500, 0.01)
    assert FilledShares(few).dense_columns < 10
    assert FilledShares(np.append(few, np.ones(30))).dense_columns == pytest.approx(
        30 + FilledShares(few).dense_columns
    )


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("memory", ["20MiB", "64MiB"])
def test_dense_rows_and_csr_rows_of_the_same_numbers_have_one_plan(share, memory):
    X = (np.random.default_rng(0).random((6000, 200)) < share).astype(np.float32)
    stored = sp.csr_matrix(X + 0.5)
    stored.data -= 0.5  # every zero is an explicit one
    recipe = Recipe.of(HistogramRegressor("exp-chi2", memory=memory))

    def plan(rows):
        source = ArraySource(rows, np.arange(6000.0))
        return block_plan(recipe, Facts.of(source, Task.of(source, recipe)[0], None, Request(can_keep=True)))

    dense = plan(X)
    assert dense == plan(sp.csr_matrix(X)) == plan(stored)
    kept = KeptRows(sp.csr_matrix(X) if share < 0.5 else X.copy())
    n_bytes = kept.dense.nbytes + kept.data.nbytes + kept.rows.nbytes
    assert n_bytes < 1.01 * (dense.n_bytes - block_bytes(dense.block_rows, n_bytes / 6000, recipe.dtype))


def test_min_max_of_small_counts_is_fast_whatever_its_weight():
    X = sp.random(4000, 300, 0.1, format="csr", random_state=0, dtype=np.float32)
    X.data = np.ceil(9 * X.data)
    large = X.copy()
    large.data *= 9

    def seconds(rows, kernel="minmax", normalize=None):
        source = ArraySource(rows, np.arange(4000.0))
        recipe = Recipe.of(HistogramRegressor(kernel, normalize=normalize))
        return block_plan(recipe, Facts.of(source, Task.of(source, recipe)[0], None, Request(can_keep=True))).seconds

    assert seconds(X) == seconds(X, "2*minmax") < seconds(X, normalize="l1") == seconds(large)
    assert seconds(X) < seconds(X / 2)
