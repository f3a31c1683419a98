"""Blocks of a machine hold whole groups of any size, fit their memory, and are as even as groups allow."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import HistogramRegressor
from chimap.fit.collecting.kernel import block_borders
from chimap.machines.block_plan import BlockPlan
from chimap.solvers.blocks import core_rows

SIZES = {
    "rows": lambda rng, n: np.ones(n, int),
    "triples": lambda rng, n: np.full(n, 3),
    "dozens": lambda rng, n: np.full(n, 12),
    "as large as a block": lambda rng, n: np.full(n, 85),
    "of 1 to 60 rows": lambda rng, n: rng.integers(1, 61, n),
    "few large ones": lambda rng, n: np.minimum(1 + rng.pareto(1, n), 85).astype(int),
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("n_rows", [151, 160, 300, 660, 2660])
@pytest.mark.parametrize("block_rows", [150, 660, 1660])
def test_blocks_are_even_and_no_group_is_divided(name, n_rows, block_rows):
    sizes = SIZES[name](np.random.default_rng(0), n_rows)
    ends = sizes.cumsum()[: np.searchsorted(sizes.cumsum(), n_rows) + 1]
    ends[-1] = n_rows
    groups = None if name == "rows" else [np.arange(a, b) for a, b in pairwise([0, *ends])]
    most = block_rows - core_rows(block_rows)
    plan = BlockPlan(
        n_bytes=0, seconds=0.0, n_rows=n_rows, block_rows=block_rows, factor_rows=block_rows, is_held=True, n_columns=1
    )
    borders = block_borders(plan, n_rows, groups)
    first, *later = np.diff(borders)
    largest = np.diff(ends, prepend=0).max()
    assert borders[-1] == n_rows
    assert np.isin(borders[1:], ends).all()
    assert 0 < first <= block_rows
    assert max(later, default=0) <= most
    assert min(later, default=most) >= most // 2 - largest
    assert np.ptp(later or [0]) <= 2 * largest
    if n_rows > block_rows + most // 2:
        assert first > block_rows - largest
    assert block_borders(plan, n_rows + 999, None)[-1] == n_rows  # more rows than there is time for


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("is_batch", [False, True])
def test_dense_rows_and_csr_rows_of_the_same_numbers_are_one_machine(share, is_batch):
    rng = np.random.default_rng(0)
    X = ((rng.random((1200, 60)) < share) * rng.integers(1, 9, (1200, 60))).astype(np.float32)
    y = X[:, :5].sum(axis=1)
    asked = {"features": "exact", "memory": "6MiB", "alpha": 0.01, "gamma": 0.5, "normalize": None, "random_state": 0}

    def machine(rows):
        model = HistogramRegressor("exp-chi2", **asked)
        return model.partial_fit(rows, y) if is_batch else model.fit(rows, y)

    dense, sparse = machine(X), machine(sp.csr_matrix(X))
    if not is_batch:
        assert np.array_equal(dense.learning_curve_.rows, sparse.learning_curve_.rows)
        assert dense.learning_curve_.rows.size > 2
    kept, others = dense.features_.rows_, sparse.features_.rows_
    assert np.array_equal(kept.dense, others.dense)
    assert np.array_equal(kept.data, others.data)
    assert np.allclose(dense.predict(X[:100]), sparse.predict(X[:100]), rtol=1e-6, atol=1e-6)
