from __future__ import annotations

import numpy as np
import pytest

from chimap.fourier.sampling import CATALOGUE, orthogonal

from ..histograms import DTYPES


def draw(name, n_inputs, n_frequencies, dtype=np.float64, seed=0):
    return CATALOGUE[name](n_inputs, n_frequencies, np.random.default_rng(seed), np.dtype(dtype))


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 17), (40, 7), (40, 30), (64, 64), (8, 2000)])
def test_columns_are_standard_normal(name, dtype, shape):
    W = np.concatenate([draw(name, *shape, dtype, seed) for seed in range(max(1, 8000 // np.prod(shape)))])
    assert W.dtype == dtype
    assert W.shape[1] == shape[1]
    n = W.size / (shape[0] if name == "orthogonal" else 1)  # within a column the entries hang together
    assert abs(W.mean()) < 5 / np.sqrt(W.size)
    assert abs((W**2).mean() - 1) < 8 / np.sqrt(n * shape[0] if name == "iid" else W.size)
    if shape[0] >= 5:
        assert abs((W**4).mean() - 3) < 0.35
    np.testing.assert_array_equal(draw(name, *shape, dtype), draw(name, *shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n_inputs", "n_frequencies"), [(40, 7), (40, 20), (40, 39), (40, 100), (3, 7)])
def test_columns_are_orthogonal_within_blocks(n_inputs, n_frequencies, dtype):
    W = orthogonal(n_inputs, n_frequencies, np.random.default_rng(0), np.dtype(dtype)).astype(np.float64)
    for first in range(0, n_frequencies, n_inputs):
        block = W[:, first : first + n_inputs]
        block = block / np.linalg.norm(block, axis=0)
        np.testing.assert_allclose(
            block.T @ block, np.eye(block.shape[1]), atol=1e-5 if dtype == np.float32 else 1e-13
        )
