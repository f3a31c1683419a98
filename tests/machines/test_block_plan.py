"""Plans of machines in blocks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import HistogramRegressor
from chimap.data import ArraySource
from chimap.machines.base import Facts, Request
from chimap.machines.block_plan import MOST_BLOCK_ROWS, block_plan
from chimap.moments.kept_rows import KeptRows
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
    rng = np.random.default_rng(0)
    few = sp.csr_matrix((rng.random((1000, 500)) < 0.01).astype(np.float32))
    assert KeptRows.columns_of(few) < 10
    many = sp.hstack([few, np.ones((1000, 30), np.float32)], format="csr")
    assert KeptRows.columns_of(many) == pytest.approx(30 + KeptRows.columns_of(few))
