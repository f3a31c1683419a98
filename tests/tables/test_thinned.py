"""Features of rows of which fewer counts are drawn: mean and covariance by bin."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import AnchorMap, OptimalMap
from chimap.data.depth import thinned
from chimap.normalizations import CATALOGUE
from chimap.tables.thinned import ThinnedFeatures

ROWS = np.array([[40.0, 0.0, 9.0, 1.0, 9.0], [0.0, 3.0, 2000.0, 700.0, 3.0]])
DEPTHS = np.array([12, 300])
DRAWS = 3000


@pytest.mark.parametrize("normalize", [None, "l1", "log-cpm", "sqrt"])
@pytest.mark.parametrize("factors", [None, np.linspace(0.5, 2, 5)], ids=["equal", "weighted"])
def test_means_and_covariances_are_those_of_draws(normalize, factors):
    normalization = CATALOGUE.get(normalize)
    columns = [np.arange(5)]

    def prepared(rows):
        rows = rows if normalization is None else normalization(rows, columns)
        return rows if factors is None else rows * factors

    psi = OptimalMap("chi2", n_terms=2).fit(prepared(ROWS))
    counts = sp.csr_matrix(ROWS)
    means, covariances = ThinnedFeatures(psi, normalization, factors).moments(counts, DEPTHS)
    rng, entry = np.random.default_rng(0), 0
    for row, depth in zip(ROWS, DEPTHS, strict=True):
        few = thinned(sp.csr_matrix(np.repeat(row[None], DRAWS, axis=0)), np.full(DRAWS, depth), rng)
        Z = psi.transform(prepared(few.toarray())).reshape(DRAWS, 2, 5)
        for place in np.flatnonzero(row):
            drawn = Z[:, :, place]
            error = drawn.std(axis=0) / np.sqrt(DRAWS) + 1e-12
            assert (np.abs(drawn.mean(axis=0) - means[entry]) < 4.5 * error).all()
            products = np.einsum("nt,nu->ntu", drawn - means[entry], drawn - means[entry])
            error = products.std(axis=0) / np.sqrt(DRAWS) + 1e-12
            assert (np.abs(products.mean(axis=0) - covariances[entry]) < 4.5 * error).all()
            entry += 1
    assert entry == means.shape[0]


def test_rows_that_are_drawn_whole_scatter_nothing():
    psi = OptimalMap("hellinger", n_terms=1).fit(ROWS)
    counts = sp.csr_matrix(ROWS)
    means, covariances = ThinnedFeatures(psi, None, None).moments(counts, counts.sum(axis=1).A1)
    np.testing.assert_allclose(means[:, 0], psi.transform(ROWS)[ROWS > 0])
    np.testing.assert_array_equal(covariances, 0)


def test_maps_that_differ_by_bin_are_evaluated_bin_by_bin():
    rows = np.random.default_rng(1).poisson(30.0, (60, 5)) * np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    psi = AnchorMap("chi2").fit(rows)
    assert psi._differs_by_bin
    same = sp.csr_matrix(np.full((1, 5), 20.0))
    means, _ = ThinnedFeatures(psi, None, None).moments(same, np.array([100]))
    np.testing.assert_allclose(means, psi.transform(same.toarray()).reshape(-1, 5).T)
    few, _ = ThinnedFeatures(psi, None, None).moments(same, np.array([30]))
    assert np.ptp(few, axis=0).max() > 0.01
