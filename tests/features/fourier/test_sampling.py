from __future__ import annotations

import numpy as np
import pytest

from chimap.features.fourier.sampling import CATALOGUE, _orthonormal, orthogonal

from ...histograms import DTYPES


def draw(name, n_inputs, n_frequencies, dtype=np.float64, seed=0):
    return CATALOGUE[name](n_inputs, n_frequencies, np.random.default_rng(seed), np.dtype(dtype)).matrix


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 17), (40, 7), (40, 30), (64, 64), (8, 2000)])
def test_columns_are_standard_normal(name, dtype, shape):
    seeds = range(min(2000, max(1, 8000 // np.prod(shape))))
    W = np.concatenate([draw(name, *shape, dtype, seed).ravel() for seed in seeds])
    assert W.dtype == dtype
    assert draw(name, *shape, dtype).shape == shape
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (4, 3, 96)):
        assert abs((W.astype(float) ** power).mean() - moment) < 5 * np.sqrt(variance / W.size)
    np.testing.assert_array_equal(draw(name, *shape, dtype), draw(name, *shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n_inputs", "n_frequencies"), [(40, 7), (40, 20), (40, 39), (40, 100), (3, 7)])
def test_columns_are_orthogonal_within_blocks(n_inputs, n_frequencies, dtype):
    W = orthogonal(n_inputs, n_frequencies, np.random.default_rng(0), np.dtype(dtype)).matrix.astype(np.float64)
    for first in range(0, n_frequencies, n_inputs):
        block = W[:, first : first + n_inputs]
        block = block / np.linalg.norm(block, axis=0)
        np.testing.assert_allclose(block.T @ block, np.eye(block.shape[1]), atol=1e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("n_inputs", [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 30])
def test_the_mean_is_the_gaussian_kernel(name, n_inputs):
    # along an axis and along the diagonal, where few signs mix least
    ends = np.array([np.eye(n_inputs)[0], np.ones(n_inputs) / np.sqrt(n_inputs)])
    steps = np.concatenate([r * ends for r in (1.0, 2.0, 3.2)])
    means = np.array([np.cos(steps @ draw(name, n_inputs, 256, seed=s)).mean(axis=1) for s in range(200)])
    exact = np.exp(-np.square(steps).sum(axis=1) / 2)
    error = means.std(axis=0) / np.sqrt(len(means))
    allowed = 4.5 * error + (6e-3 if name == "structured" and n_inputs > 16 else 1e-4)
    assert (np.abs(means.mean(axis=0) - exact) < allowed).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (9, 5), (9, 4)])
def test_directions_are_those_of_the_factor_with_a_positive_diagonal(shape, dtype):
    """They alone are uniform: the signs that LAPACK gives depend on its algorithm."""
    for seed in range(10):
        G = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
        Q = _orthonormal(G.copy())
        R = Q.T @ G
        assert (np.diag(R) > 0).all()
        tolerance = 1e-4 if dtype == np.float32 else 1e-11
        np.testing.assert_allclose(np.tril(R, -1), 0, atol=tolerance)
        np.testing.assert_allclose(Q @ R, G, atol=tolerance)
