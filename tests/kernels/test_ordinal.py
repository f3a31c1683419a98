"""The PQ kernel against Kendall's tau and the definition."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kendalltau

from chimap import PQKernel, jensen_shannon
from chimap._validation import DataError
from chimap.kernels import as_kernel


def signs(X):
    """sign(x_i - x_j) over the pairs of bins, scaled to length 1: the feature vectors of the definition."""
    i, j = np.triu_indices(X.shape[1], 1)
    S = np.sign(X[:, i] - X[:, j])
    norms = np.linalg.norm(S, axis=1, keepdims=True)
    return S / np.where(norms > 0, norms, 1)


def test_kendall():
    X = np.random.default_rng(0).poisson(1.0, (12, 9)).astype(float)
    expected = [[kendalltau(a, b).statistic for b in X] for a in X]
    np.testing.assert_allclose(PQKernel()(X), expected, rtol=1e-12, atol=1e-15)


@given(x=arrays(np.float64, (5, 7), elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, 1e-30, 1e30])))
def test_any_histogram(x):
    expected = signs(x) @ signs(x[:3]).T
    np.testing.assert_allclose(PQKernel()(x, x[:3]), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(PQKernel()(sp.csr_matrix(x), x[:3]), expected, rtol=1e-12, atol=1e-14)


def test_many_empty_bins():
    X = sp.random(40, 3000, 0.02, format="csr", random_state=0)
    S = signs(X[:, :].toarray()[:, :400])
    np.testing.assert_allclose(PQKernel()(X[:, :400]), S @ S.T, atol=1e-12)
    assert PQKernel()(X).shape == (40, 40)


@pytest.mark.parametrize("n_values", [3, 40, 2000])
def test_few_and_many_different_values(n_values):
    rng = np.random.default_rng(n_values)
    X = np.where(rng.random((6, 2000)) < 0.5, rng.integers(1, n_values + 1, (6, 2000)), 0).astype(float)
    expected = [[kendalltau(a, b).statistic for b in X] for a in X[:3]]
    np.testing.assert_allclose(PQKernel()(X[:3], X), expected, rtol=1e-11, atol=1e-13)


def test_rows_of_equal_bins_order_nothing():
    X = np.array([[2.0, 2.0, 2.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
    np.testing.assert_allclose(PQKernel()(X), [[0, 0, 0], [0, 0, 0], [0, 0, 1]], rtol=1e-15)
    np.testing.assert_array_equal(PQKernel().diagonal(X), [0, 0, 1])


def test_joined_to_jensen_shannon():
    X = np.random.default_rng(0).dirichlet(np.ones(8), 5)
    np.testing.assert_allclose(as_kernel("jensen_shannon+pq")(X), jensen_shannon(X) + PQKernel()(X), rtol=1e-14)


def test_negative_bins_are_refused():
    with pytest.raises(DataError, match="row 0, column 1: -2"):
        PQKernel()(np.array([[1.0, -2.0]]))


def test_two_bins_are_one_pair():
    X = np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 2.0]])
    np.testing.assert_array_equal(PQKernel()(X), [[1, -1, 0], [-1, 1, 0], [0, 0, 0]])
