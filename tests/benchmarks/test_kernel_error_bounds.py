"""Errors and bounds against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.accuracy.kernel_errors import GramOracle, ValueOracle

from chimap import DirectMap, HomogeneousMap, OptimalMap, chi2
from chimap.kernels import Exponential
from tests.histograms import histograms

X = histograms(60, 9, seed=3)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_errors_are_those_of_a_loop_over_pairs(make):
    rows = make(X)
    Z = HomogeneousMap("chi2", n_terms=3).fit(rows).transform(rows)
    dense = Z.toarray() if sp.issparse(Z) else Z
    differences, norm = [], 0.0
    whole = 0.0
    for i in range(60):
        for j in range(60):
            exact = sum(2 * a * b / (a + b) for a, b in zip(X[i], X[j], strict=True) if a + b > 0)
            off = abs(float(dense[i] @ dense[j]) - exact)
            whole, norm = whole + off**2, norm + exact**2
            if i != j:
                differences.append(off)
    found = GramOracle(chi2, rows).error(Z)
    # rows sum to 1, so K(x, x) is 1
    np.testing.assert_allclose(found.mean, np.mean(differences), rtol=1e-9)
    np.testing.assert_allclose(found.worst, max(differences), rtol=1e-9)
    np.testing.assert_allclose(found.relative, np.sqrt(whole / norm), rtol=1e-9)


def test_no_unit_in_the_errors():
    """Counts of any total have the errors of their shares."""
    small, large = (
        GramOracle(chi2, rows).error(DirectMap(n_terms=2, nodes=[scale * 0.05, scale * 0.4]).fit_transform(rows))
        for scale, rows in ((1, X), (1e4, 1e4 * X))
    )
    np.testing.assert_allclose(small, large, rtol=1e-9)


def test_gram_bound_is_reached_by_the_leading_eigenvectors_and_by_nothing_below():
    kernel = Exponential(chi2, 2.0)
    oracle = GramOracle(kernel, X)
    values, vectors = np.linalg.eigh(kernel(X))
    for n in (1, 5, 20):
        Z = vectors[:, -n:] * np.sqrt(values[-n:])
        np.testing.assert_allclose(oracle.error(Z).relative, oracle.bound(n), rtol=1e-8)
        Z[:, 0] *= 1.01
        assert oracle.error(Z).relative > oracle.bound(n)
    assert oracle.bound(60) == oracle.bound(4096) == 0


def test_value_bound_is_that_of_the_matrix_of_values():
    oracle = ValueOracle(chi2, X)
    values = X[X > 0]
    exact = 2 * np.multiply.outer(values, values) / np.add.outer(values, values)
    eigenvalues = np.sort(np.abs(np.linalg.eigvalsh(exact)))[::-1]
    for n in (1, 2, 3):
        expected = np.sqrt((eigenvalues[n:] ** 2).sum() / (eigenvalues**2).sum())
        np.testing.assert_allclose(oracle.bound(n), expected, rtol=1e-9)


@pytest.mark.parametrize("make", [OptimalMap, DirectMap, HomogeneousMap])
@pytest.mark.parametrize("n_terms", [1, 3])
def test_no_map_goes_below_the_value_bound(make, n_terms):
    psi = make(kernel="chi2", n_terms=n_terms).fit(X)
    oracle = ValueOracle(chi2, X)
    found = oracle.error(psi, X.shape[1])
    assert found >= oracle.bound(n_terms) * (1 - 1e-9)
    # one bin, one value per row: the map of values itself
    Z = make(kernel="chi2", n_terms=n_terms).fit(X[X > 0][:, None]).transform(oracle.values[:, None])
    expected = np.linalg.norm(Z @ Z.T - oracle.gram) / np.linalg.norm(oracle.gram)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_map_that_differs_from_bin_to_bin_has_no_value_error():
    class Different:
        def transform(self, rows):
            return rows.multiply(np.arange(1, rows.shape[1] + 1)).tocsr()

    assert ValueOracle(chi2, X).error(Different(), X.shape[1]) is None


def test_rows_without_entries_are_no_fault():
    oracle = ValueOracle(chi2, np.zeros((5, 3)))
    assert np.isfinite(oracle.bound(1))
    empty = GramOracle(chi2, np.zeros((5, 3)))
    assert empty.error(np.zeros((5, 3))) == (0, 0, 0)
