"""How often which values come, whatever their number."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import OptimalMap, chi2
from chimap.features.additive.densities import MOST_ALIKE, counted, value_counts


def counts_of(rows):
    magnitudes = np.abs(rows.data if sp.issparse(rows) else rows)
    return value_counts(rows, float(magnitudes[magnitudes > 0].min()), float(magnitudes.max()))


def many(seed=0, sigma=2.0):
    values = np.random.default_rng(seed).lognormal(0, sigma, (MOST_ALIKE // 64 + 50, 64))
    return values * np.random.default_rng(seed + 1).choice([1, -1, 1], values.shape)


def test_few_values_are_told_apart_to_the_last_bit():
    rows = np.array([[1.0, np.nextafter(1.0, 2)], [0.0, -1.0]])
    values, counts = counts_of(rows)
    np.testing.assert_array_equal(values, [1.0, np.nextafter(1.0, 2)])
    np.testing.assert_array_equal(counts, [2, 1])
    assert values.dtype == counts.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_that_repeat_stay_as_they_are(dtype):
    rows = (np.random.default_rng(0).integers(0, 256, (MOST_ALIKE // 64 + 50, 64)) / 255).astype(dtype)
    expected = counted(rows[rows > 0])
    for given in (rows, sp.csr_matrix(rows), -rows):
        for found, own in zip(counts_of(given), expected, strict=True):
            np.testing.assert_array_equal(found, own)


def test_cells_keep_mass_mean_and_ends():
    rows = many()
    magnitudes = np.abs(rows)
    rows[0, :2] = magnitudes.min() * (1 + 1e-7), magnitudes.max() * (1 - 1e-7)  # of the cells of the ends
    magnitudes = np.abs(rows)
    values, counts = counts_of(rows)
    assert values.size <= MOST_ALIKE + 2
    assert np.all(np.diff(values) > 0)
    assert counts.sum() == rows.size
    np.testing.assert_allclose(counts @ values, magnitudes.sum(), rtol=1e-12)
    assert (values[0], values[-1]) == (magnitudes.min(), magnitudes.max())
    # a value and the mean of its cell are of 2^-9 at most apart: 17 doublings in 2^14 cells
    ordered = np.sort(magnitudes.reshape(-1))
    np.testing.assert_allclose(np.repeat(values, counts.astype(int)), ordered, rtol=2**-9)


def test_cells_are_wider_where_values_are_far_apart():
    rows = many()
    rows[0, :2] = 1e-300, 1e300
    values, counts = counts_of(rows)
    assert values.size <= MOST_ALIKE + 2
    assert counts.sum() == rows.size
    assert (values[0], values[-1]) == (1e-300, 1e300)


def test_cells_of_values_that_are_close():
    rows = 1 + 1e-9 * np.abs(many(sigma=0.5))
    values, counts = counts_of(rows)
    assert 1000 < values.size <= MOST_ALIKE + 2
    np.testing.assert_allclose(counts @ (values - 1), (rows - 1).sum(), rtol=1e-6)


def test_a_map_sees_every_value_of_a_heavy_tail():
    """The five largest of 70,000 values carry half of the kernel's square: a map that misses any is off by them."""
    values = np.random.default_rng(0).uniform(0.5, 1, 70_000)
    values[12_345:12_350] = [1e4, 2e4, 3e4, 5e4, 8e4]
    psi = OptimalMap(n_terms=6).fit(values[:, None])
    large = np.array([[1e4], [2e4], [3e4], [5e4], [8e4]])
    Z = psi.transform(large)
    np.testing.assert_allclose(Z @ Z.T, chi2(large), rtol=2e-4)
