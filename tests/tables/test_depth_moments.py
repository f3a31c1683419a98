"""Moments of additive scores of rows whose counts are drawn to a fixed number."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import dirichlet_multinomial

from chimap.tables.depth_moments import score_moments


def scores(seed, n_bins):
    """Random smooth functions of single counts, with two outputs."""
    weights = np.random.default_rng(seed).normal(size=(n_bins, 2))
    return lambda k, bins: np.log1p(3 * k)[:, :, None] * weights[bins]


@pytest.mark.parametrize("further", [1, 2, 7])
@pytest.mark.parametrize("alpha", [[0.02, 0.4, 0.0, 3.0], [40.0, 1e-6, 2.0, 9.0], [0.1, 0.1, 0.1, 0.1]])
def test_are_sums_over_all_ways_to_draw_few_counts(alpha, further):
    alpha, g = np.array(alpha), scores(0, 4)
    ways = np.array(
        [k for k in product(range(further + 1), repeat=4) if sum(k) == further and not k[2] * (alpha[2] == 0)]
    )
    held = alpha > 0
    chances = dirichlet_multinomial.pmf(ways[:, held], alpha[held], further)
    values = g(ways.astype(float), np.arange(4)).sum(axis=1)
    mean = chances @ values
    found = score_moments(g, alpha, further)
    np.testing.assert_allclose(chances.sum(), 1, rtol=1e-12)
    np.testing.assert_allclose(found[0], mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[1], chances @ np.square(values - mean), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("n_bins", "further", "scale"), [(40, 200, 5.0), (60, 40_000, 300.0), (30, 3_000_000, 3e4)])
def test_are_those_of_draws_within_their_error(n_bins, further, scale):
    rng, g = np.random.default_rng(1), scores(1, n_bins)
    alpha = scale * rng.gamma(0.3, size=n_bins) + 1e-3
    mean, variance = score_moments(g, alpha, further)
    drawn = rng.multinomial(further, rng.dirichlet(alpha, size=10_000))
    values = g(drawn.astype(float), np.arange(n_bins)).sum(axis=1)
    centred = values - values.mean(axis=0)
    spread = np.square(centred).mean(axis=0)
    assert (np.abs(values.mean(axis=0) - mean) < 4 * np.sqrt(spread / len(values))).all()
    error = np.sqrt((np.power(centred, 4).mean(axis=0) / spread**2 - 1) / len(values))
    assert (np.abs(spread / variance - 1) < 4 * error).all()
    assert error.max() < 0.05
