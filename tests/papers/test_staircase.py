"""The staircase map: unary codes, their error, and the sparse form with its regulariser."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

from chimap import StaircaseMap, chi2, intersection

from ..histograms import DTYPES, SPARSE_KINDS, histograms, relative_error, signed_histograms

STEPS = ("linear", "constant")
every_step = pytest.mark.parametrize("steps", STEPS)


def unary(x, n_steps, linear):
    """The code of x in [0, 1], digit by digit."""
    level = x * n_steps if linear else np.floor(x * n_steps + 0.5)
    return np.array([1.0 if level >= q + 1 else max(level - q, 0.0) for q in range(n_steps)])


@every_step
def test_unary_codes(steps):
    x = np.array([0.0, 0.07, 0.125, 0.25, 0.6, 0.9, 1.0])
    psi = StaircaseMap(n_terms=4, steps=steps).fit(x[:, None])
    expected = np.array([unary(v, 4, steps == "linear") for v in x]) / np.sqrt(4)
    np.testing.assert_allclose(psi.transform(x[:, None]), expected, rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(psi.scale_, [1.0])
    np.testing.assert_array_equal(psi.transform([[7.0]]), psi.transform([[1.0]]))


def test_linear_steps_are_exact_where_one_value_is_a_border():
    borders, x = np.arange(9.0)[:, None], np.linspace(0, 8, 57)[:, None]
    psi = StaircaseMap(n_terms=8).fit(borders)
    np.testing.assert_allclose(psi.transform(borders) @ psi.transform(x).T, intersection(borders, x), rtol=1e-14)


@pytest.mark.parametrize(("steps", "order"), [("linear", 1.0), ("constant", 1.0)])
def test_error_falls_with_the_steps(steps, order):
    X = histograms(200, 6, empty=0.1)
    n_steps = (8, 16, 32, 64)
    errors = []
    for n in n_steps:
        Z = StaircaseMap(n_terms=n, steps=steps).fit_transform(X)
        errors.append(relative_error(Z @ Z.T, intersection(X)))
    assert all(b < 0.62 * a for a, b in pairwise(errors))


def test_linear_steps_never_promise_more_than_the_kernel():
    X = histograms(50, 5)
    Z = StaircaseMap(n_terms=6).fit_transform(X)
    assert np.linalg.eigvalsh(intersection(X) - Z @ Z.T).min() > -1e-12


@every_step
@pytest.mark.parametrize("kernel", [intersection, intersection.with_gamma(0.5), intersection.signed()])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sparse_form(steps, kernel, dtype):
    X = (signed_histograms if kernel.is_signed else histograms)(40, 7).astype(dtype)
    X[3] = 0
    psi = StaircaseMap(kernel, 6, steps).fit(X)
    beyond = 2 * X
    for rows in (X, beyond):
        Z = psi.transform(rows)
        for kind in ("csr", "unordered, doubled", "explicit zeros"):
            S = psi.transform_sparse_form(SPARSE_KINDS[kind](rows))
            assert S.dtype == dtype
            S.check_format(full_check=True)
            assert S.has_sorted_indices
            assert S.nnz <= (2 if steps == "linear" else 1) * np.count_nonzero(rows)
            tolerance = 1e-12 if dtype == np.float64 else 1e-5
            expected = Z @ psi.differences().toarray()
            np.testing.assert_allclose(S.toarray(), expected, rtol=tolerance, atol=tolerance * np.abs(Z).max())
        np.testing.assert_array_equal(psi.transform_sparse_form(rows).toarray(), S.toarray())


@every_step
def test_generalised_ridge_in_the_sparse_form_is_ridge_in_the_features(steps):
    X, rng = histograms(80, 5), np.random.default_rng(0)
    y, alpha = rng.normal(size=(80, 2)), 0.3
    psi = StaircaseMap(n_terms=7, steps=steps).fit(X)
    Z, S, M = psi.transform(X), psi.transform_sparse_form(X), psi.metric()
    w = np.linalg.solve(Z.T @ Z + alpha * np.eye(35), Z.T @ y).T
    v = spsolve((S.T @ S + alpha * M).tocsc(), S.T @ y).T
    np.testing.assert_allclose(S @ v.T, Z @ w.T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose((psi.differences() @ v.T).T, w, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose((w * w).sum(axis=1), ((M @ v.T).T * v).sum(axis=1), rtol=1e-8)
    assert set((M.tocoo().col - M.tocoo().row).tolist()) == {-5, 0, 5}


def test_empty_bins_and_rows():
    X = np.array([[0.0, 1.0], [0.0, 0.0]])
    for rows in (X, sp.csr_matrix(X)):
        psi = StaircaseMap(n_terms=3).fit(rows)
        np.testing.assert_array_equal(psi.scale_, [0, 1])
        Z = psi.transform(np.array([[5.0, 0.5]]))
        np.testing.assert_allclose(Z, [[0, 1, 0, 0.5, 0, 0]] / np.sqrt(3))
        assert psi.transform_sparse_form(X).nnz == 1


def test_settings():
    with pytest.raises(ValueError, match="steps must be one of 'linear', 'constant'"):
        StaircaseMap(steps="cubic").fit(histograms())
    with pytest.raises(ValueError, match=r"StaircaseMap approximates intersection; got 'chi2'. Maps of .*AnchorMap"):
        StaircaseMap(chi2).fit(histograms())
