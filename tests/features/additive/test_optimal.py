"""The optimal map against the bound that no map can beat."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from chimap import OptimalMap
from chimap.features.additive.densities import counted, density
from chimap.features.additive.optimal import tabulate
from chimap.kernels import CATALOGUE

from ...golden import counts
from ...histograms import DTYPES, histograms, relative_error

TERMS = range(1, 7)
# of the bound; where the kernel has a kink or a cusp, so have the eigenfunctions, and the points are fewer
SHARE = {"chi2": 1.02, "jensen_shannon": 1.05, "intersection": 1.05}


def digits():
    return load_digits().data


def normalised_digits():
    X = digits()
    return X / X.sum(axis=1, keepdims=True)


def compositions():
    X = counts("hmp_otu_counts")
    return np.asarray(X.multiply(1 / X.sum(axis=1)).tocsr().data)


DATA = {"digits": digits, "normalised digits": normalised_digits, "compositions": compositions}


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
@pytest.mark.parametrize("name", SHARE)
def test_attains_the_bound(name, data):
    values = data().reshape(-1)
    values = np.random.default_rng(0).choice(values[values > 0], 800, replace=False)[:, None]
    K = CATALOGUE[name](values)
    left_out = np.sort(np.linalg.eigvalsh(K))[::-1]
    features = OptimalMap(name, TERMS[-1]).fit_transform(values)
    for n in TERMS:
        bound, Z = np.linalg.norm(left_out[n:]), features[:, :n]
        assert np.linalg.norm(K - Z @ Z.T) <= SHARE[name] * bound + 1e-13 * left_out[0]


@pytest.mark.parametrize("name", SHARE)
def test_terms_do_not_depend_on_how_many_follow(name):
    X = histograms(100)
    few, many = (OptimalMap(name, n).fit_transform(X) for n in (2, 5))
    np.testing.assert_allclose(few, many[:, :24], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", SHARE)
def test_eigenvalues_are_those_of_the_kernel_under_the_density(name):
    values = histograms(40).reshape(-1)
    values = values[values > 0][:, None]
    psi = OptimalMap(name, 4).fit(values)
    expected = np.linalg.eigvalsh(CATALOGUE[name](values) / values.size)[::-1][:4]
    np.testing.assert_allclose(psi.eigenvalues_, expected, rtol=1e-10)
    # the features are orthogonal under the density, with the eigenvalues for squared norms
    Z = psi.eigenfunctions(psi.points_)
    np.testing.assert_allclose(Z.T @ (psi.weights_[:, None] * Z), np.diag(psi.eigenvalues_), atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", CATALOGUE.values(), ids=CATALOGUE)
def test_table_is_as_accurate_as_the_sum(kernel, dtype):
    X = histograms(400, empty=0)
    x = np.sort(X.reshape(-1))[:, None].astype(dtype)
    psi = OptimalMap(kernel, 3).fit(x)
    exact = psi.eigenfunctions(x[:, 0])
    error = np.abs(psi.transform(x) - exact).max() / np.abs(exact).max()
    # a polynomial cannot follow the kinks that the intersection leaves at each point of the density
    limits = (1e-4, 1e-4) if kernel.name == "intersection" else (4e-6, 1e-10)
    assert error < limits[dtype == np.float64]


def test_term_after_the_last_distinct_value_is_zero():
    X = np.array([[1.0, 2.0], [2.0, 4.0]])
    Z = OptimalMap(n_terms=6).fit(X).transform(X).reshape(2, 6, 2)
    assert np.all(Z[:, 3:] == 0)
    K = CATALOGUE["chi2"](X)
    assert relative_error(np.einsum("aqi,bqi->ab", Z, Z), K) < 1e-10


def test_far_apart_values():
    X = np.array([[1e-300, 1.0, 0.0], [1e30, 1e-300, 2.0]])
    psi = OptimalMap(n_terms=6).fit(X)
    Z = psi.transform(X)
    assert np.isfinite(Z).all()
    assert relative_error(Z @ Z.T, CATALOGUE["chi2"](X)) < 1e-6


@pytest.mark.parametrize("fitted_on", [1e-310, 1e-300, 1e300])
def test_other_dtype_than_the_one_fitted_on(fitted_on):
    psi = OptimalMap(n_terms=2).fit(np.full((3, 2), fitted_on))
    for dtype in DTYPES:
        Z = psi.transform(np.array([[0, 1e-30], [1, 1e30]], dtype))
        assert Z.dtype == dtype
        assert np.isfinite(Z).all()


def test_density_keeps_mass_and_mean():
    values = np.random.default_rng(0).lognormal(0, 3, 20_000)
    points, weights = density(*counted(values), 512)
    assert points.size <= 512
    assert np.all(np.diff(points) > 0)
    assert weights.sum() == values.size
    np.testing.assert_allclose(weights @ points, values.sum(), rtol=1e-12)


@pytest.mark.parametrize("kernel", ["chi2", "intersection"])
def test_heavy_tails_are_at_the_bound(kernel):
    # counts over four decades, far more different ones than the points of the density
    values = np.ceil(np.random.default_rng(0).pareto(0.6, 20_000) * 3).clip(1, 50_000)
    atoms, counts = np.unique(values, return_counts=True)
    assert atoms.size > 700
    roots = np.sqrt(counts / counts.sum())[:, None]
    exact = CATALOGUE[kernel](atoms[:, None]) * roots * roots.T
    best = np.sort(np.linalg.eigvalsh(exact))[::-1]
    for n_terms in (1, 3, 5, 6):
        Z = OptimalMap(kernel, n_terms).fit(values[:, None]).transform(atoms[:, None]) * roots
        error = np.linalg.norm(exact - Z @ Z.T)
        assert error <= 1.02 * np.linalg.norm(best[n_terms:])


@pytest.mark.parametrize("dtype", DTYPES)
def test_polynomials_of_the_table_meet_the_function_at_chebyshev_points(dtype):
    seen = []

    def function(x):
        seen.append(x)
        return np.sin(1e3 * x)[:, None]

    tables, drop, first = tabulate(function, 0.5, 1.0, np.dtype(dtype))
    n_points = tables.shape[1]
    integer = np.int32 if dtype == np.float32 else np.int64
    starts = (np.arange(first + 1, first + tables.shape[2], dtype=np.int64) << drop).astype(integer)
    starts = starts.view(dtype).astype(np.float64)
    t = (np.polynomial.chebyshev.chebpts1(n_points) + 1) / 2
    x = starts[:-1, None] + np.diff(starts)[:, None] * t
    found = np.einsum("pt,ps->st", np.vander(t, increasing=True).T, tables[0, :, 1:-1].astype(np.float64))
    np.testing.assert_allclose(found, np.sin(1e3 * x), atol=1e-10 if dtype == np.float64 else 1e-5)
    np.testing.assert_allclose(np.sort(seen[0]), np.sort(x.reshape(-1)), rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("kernel", [k for k in CATALOGUE.values() if k.is_analytic], ids=lambda k: k.name)
def test_a_polynomial_a_doubling_has_the_digits_of_the_sum(kernel, gamma, dtype):
    for scale in (1e-100, 1, 1e100):
        psi = OptimalMap(kernel.with_gamma(gamma), 3).fit(scale * histograms(60))
        plain = tabulate(psi.eigenfunctions, *psi.range_, np.dtype(dtype))
        smooth = tabulate(psi.eigenfunctions, *psi.range_, np.dtype(dtype), smooth=True)
        assert smooth[1:] == plain[1:]
        # kernels of BLAS that add up in another order move the eigenfunctions by 2e-12
        tolerance = 1e-6 if dtype == np.float32 else 1e-11
        np.testing.assert_allclose(smooth[0], plain[0], rtol=0, atol=tolerance * np.abs(plain[0]).max())


def test_a_kernel_with_a_kink_is_not_analytic():
    """A polynomial per doubling would be ten thousand times as far from it as one per segment."""
    assert not CATALOGUE["intersection"].is_analytic


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_formula_is_the_table_within_and_beyond_its_range(dtype):
    X = histograms(20).astype(dtype)
    psi = OptimalMap(n_terms=3).fit(X)
    for scale in (2.0**-20, 1.0, 2.0**3, 2.0**20):
        rows = X * dtype(scale)
        np.testing.assert_allclose(psi.array_features(rows), psi.transform(rows), rtol=1e-4, atol=1e-6)
