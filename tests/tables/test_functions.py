"""Functions of single bins are what they are among all others."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import DirectMap, OptimalMap, StaircaseMap
from chimap.features.blocks import BlockFeatures
from chimap.tables import BinFunctions

from ..histograms import histograms


def functions():
    X = histograms(80)
    features = BlockFeatures(
        [OptimalMap("chi2", 2), StaircaseMap(n_terms=5), DirectMap(n_terms=2)], [slice(0, 8), [2, 6, 11], [9, 10]]
    ).fit(X)
    coef = np.random.default_rng(0).normal(size=(features._n_features_out, 2))
    return BinFunctions(features, coef), features, coef, X


def test_they_add_up_to_the_scores():
    g, features, coef, X = functions()
    values = g(X, np.arange(12))
    np.testing.assert_allclose(values.sum(axis=1), features.transform(X) @ coef, atol=1e-10)
    assert (g.n_bins, g.n_outputs) == (12, 2)


@pytest.mark.parametrize("bins", [[0], [6], [11], [8], [2, 9], [0, 1, 10, 11], [3, 4, 5]])
def test_some_bins(bins):
    g, _, _, X = functions()
    expected = g(X, np.arange(12))[:, bins]
    np.testing.assert_allclose(g(X[:, bins], np.array(bins)), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("places", [[[0, 1], [5, 7]], [[2, 6], [9, 10], [1, 11]], [[3]]])
def test_sums_over_places(places):
    """The same values in the bins of several places: of one map, across maps, and of maps that differ by bin."""
    g, _, _, X = functions()
    x, places = X[:, : len(places[0])], np.array(places)
    expected = np.stack([g(x, bins).sum(axis=1) for bins in places], axis=1)
    np.testing.assert_allclose(g.sums(places)(x), expected, rtol=1e-10, atol=1e-12)
