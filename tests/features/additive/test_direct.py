from __future__ import annotations

import numpy as np
import pytest

from chimap import DirectMap, chi2
from chimap._validation import DataError
from chimap.features.additive.densities import counted, log_histogram
from chimap.features.additive.direct import greedy_nodes, minimax_nodes

from ...histograms import histograms


@pytest.mark.parametrize("nodes", ["greedy", "minimax"])
def test_nodes_are_landmarks(nodes):
    """Psi is the Cholesky factor of the kernel with the nodes for landmarks: exact on them."""
    X = histograms()
    k = DirectMap(n_terms=4, nodes=nodes).fit(X).nodes_
    psi = DirectMap(n_terms=4, nodes=k).fit(np.ones((1, 1)))
    k = psi.nodes_[:, None]
    factor = psi.transform(k)
    signs = np.sign(np.diagonal(factor))
    np.testing.assert_allclose(factor * signs, np.linalg.cholesky(chi2(k)), atol=1e-12)
    features = psi.transform(X[5][:, None]).T
    np.testing.assert_allclose(factor @ features, chi2(k, X[5][:, None]), atol=1e-13)


def test_minimax_nodes_span_the_data():
    X = histograms()
    psi = DirectMap(n_terms=5, nodes="minimax").fit(X)
    np.testing.assert_allclose(psi.nodes_, minimax_nodes(X[X > 0].min(), X.max(), 5))
    np.testing.assert_allclose(DirectMap(n_terms=5, nodes="minimax").fit(8 * X).nodes_, 8 * psi.nodes_)


@pytest.mark.parametrize("ratio", [1e-1, 1e-6, 1e-12, 1e-100, 0.99])
def test_minimax_nodes_equalise_the_error(ratio):
    nodes = minimax_nodes(ratio, 1.0, 4)
    assert np.all(np.diff(nodes) < 0)
    assert ratio <= nodes[-1] <= nodes[0] <= 1
    # symmetric about the geometric mean, as the problem is
    np.testing.assert_allclose(nodes * nodes[::-1], ratio, rtol=1e-9)
    x = np.array([[ratio], [1.0]])
    edges = np.abs(np.prod((x - nodes) / (x + nodes), axis=1))
    np.testing.assert_allclose(edges[0], edges[1], rtol=1e-5)


def test_one_value():
    np.testing.assert_array_equal(minimax_nodes(0.3, 0.3, 3), [0.3, 0.3, 0.3])
    for nodes in ("greedy", "minimax"):
        psi = DirectMap(n_terms=3, nodes=nodes).fit(np.full((4, 2), 0.3))
        np.testing.assert_array_equal(psi.nodes_, [0.3, 0.3, 0.3])
        np.testing.assert_allclose(psi.transform([[0.3, 0.0]]), np.sqrt([[0.3, 0, 0, 0, 0, 0]]), rtol=1e-15)


def test_range_that_is_none():
    for lowest, highest in ((0.0, 1.0), (2.0, 1.0), (-1.0, 1.0), (np.nan, 1.0)):
        with pytest.raises(DataError, match="0 < lowest <= highest"):
            minimax_nodes(lowest, highest, 2)


@pytest.mark.parametrize(
    ("counts", "first"),
    [
        ([1.0, 1.0, 1.0], 9.0),  # t/(t+1) h(t): .5, .75, .9
        ([1.79, 1.0, 0.98], 1.0),  # .895, .75, .882; with t/(t+1.1) the last would be the largest
        ([1.0, 1.25, 1.035], 3.0),  # .5, .9375, .9315; with t/(t+1.1), or t alone, the last
    ],
)
def test_first_greedy_node_by_hand(counts, first):
    assert greedy_nodes(np.array([1.0, 3.0, 9.0]), np.array(counts), 1)[0] == first


def test_greedy_nodes_of_more_terms_than_centres():
    np.testing.assert_array_equal(greedy_nodes(np.array([0.5, 2.0]), np.array([1.0, 1.0]), 4), [2, 0.5, 2, 2])


def test_histogram_of_values():
    counts = np.random.default_rng(0).integers(1, 6, 500).astype(float)
    centres, weights = log_histogram(*counted(counts))
    np.testing.assert_array_equal(centres, [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(weights, np.bincount(counts.astype(int))[1:])
    values = np.random.default_rng(1).lognormal(0, 2, 5000)
    centres, weights = log_histogram(*counted(values), 64)
    assert centres.size <= 64
    assert np.all(np.diff(centres) > 0)
    assert weights.sum() == 5000
    np.testing.assert_allclose(weights @ centres, values.sum(), rtol=1e-12)
    # logarithmic bins: neighbours are never further apart than two bins
    assert np.diff(np.log(centres)).min() > 0
