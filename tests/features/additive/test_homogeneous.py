from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import special

from chimap import HomogeneousMap
from chimap.features.additive.homogeneous import WINDOWS, discrete_spectrum, expected_error
from chimap.kernels import CATALOGUE

from ...histograms import histograms, relative_error

windows = pytest.mark.parametrize("window", WINDOWS)
kernels = pytest.mark.parametrize("kernel", CATALOGUE.values(), ids=CATALOGUE)


@pytest.mark.covering(2)
@windows
@kernels
@pytest.mark.parametrize("n_terms", [1, 3, 7])
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_automatic_period_is_the_best_of_any_fine_grid(kernel, window, n_terms, gamma):
    kernel, m = kernel.with_gamma(gamma), n_terms // 2
    psi = HomogeneousMap(kernel, n_terms, window).fit(np.ones((1, 1)))
    best = expected_error(kernel, psi.period_, m, window)
    grid = np.geomspace(0.7, 60, 200)
    assert best <= min(expected_error(kernel, p, m, window) for p in grid) * (1 + 1e-6) + 1e-12


@windows
@kernels
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_error_is_what_it_says(kernel, window, gamma):
    kernel = kernel.with_gamma(gamma)
    psi = HomogeneousMap(kernel, 5, window).fit(np.ones((1, 1)))
    l = np.linspace(-40, 40, 20_001)  # noqa: E741
    log_s = np.linspace(-100, 8, 4001)
    squares = []
    for shape in (0.3, 1.0, 5.0):
        # k of x = s u and y = s (1 - u), u of a beta distribution, ln u/(1-u) = l; s of a gamma distribution
        u = np.c_[1 / (1 + np.exp(-l)), 1 / (1 + np.exp(l))]
        exact = np.prod(u, axis=1) ** (gamma / 2) * kernel.signature(l)
        Z, Y = psi.transform(u[:, :1]), psi.transform(u[:, 1:])
        missing = exact - (Z * Y).sum(axis=1)
        density = np.prod(u, axis=1) ** shape / special.beta(shape, shape)
        mass = np.exp(2 * shape * log_s - np.exp(log_s)) / special.gamma(2 * shape)
        mean, square = (np.trapezoid(mass * np.exp(p * gamma * log_s), log_s) for p in (1, 2))
        bias = mean * np.trapezoid(missing * density, l)
        scatter = square * np.trapezoid(missing**2 * density, l)
        whole = mean * np.trapezoid(exact * density, l)
        squares.append((bias**2 * 31 / 32 + scatter / 32) / whole**2)
    expected = expected_error(kernel, psi.period_, 2, window)
    np.testing.assert_allclose(np.sqrt(np.mean(squares)), expected, rtol=1e-4, atol=1e-9)


DATA = {
    "few bins": histograms(60, empty=0.1),
    "sparse": np.random.default_rng(1).dirichlet(np.full(50, 0.3), 60),
    "flat": np.random.default_rng(2).dirichlet(np.full(50, 5.0), 60),
    "heavy tails": np.exp(1.5 * np.random.default_rng(3).standard_normal((60, 200))),
}


@windows
@pytest.mark.parametrize("kernel", ["chi2", "intersection", "jensen_shannon"])
@pytest.mark.parametrize("data", DATA)
def test_more_terms_never_have_more_error(kernel, window, data):
    X = DATA[data] / DATA[data].sum(axis=1, keepdims=True)
    exact, errors = CATALOGUE[kernel](X), []
    for n_terms in (1, 3, 5, 7, 9):
        psi = HomogeneousMap(kernel, n_terms, window)
        Z = psi.fit_transform(X)
        errors.append(relative_error(Z @ Z.T, exact))
        assert (np.abs(Z).max(axis=0) > 0).all()
        assert 0.2 < errors[-1] / expected_error(psi.kernel_, psi.period_, n_terms // 2, window) < 5
    assert all(more <= less * (1 + 1e-9) for less, more in pairwise(errors))


@pytest.mark.parametrize(
    ("gamma", "window", "n_terms", "kept"),
    [(1.0, "rectangular", 5, (1,)), (1.0, "rectangular", 9, (1, 2, 3)), (2.0, "least-squares", 11, (1, 2, 3, 5))],
)
def test_harmonics_of_no_amplitude_have_no_features(gamma, window, n_terms, kept):
    X = histograms()
    psi = HomogeneousMap(CATALOGUE["jensen_shannon"].with_gamma(gamma), n_terms, window).fit(X)
    assert tuple(1 + np.flatnonzero(psi.amplitudes_[1:])) == kept
    Z = psi.transform(X)
    assert Z.shape[1] == (1 + 2 * len(kept)) * X.shape[1] == len(psi.get_feature_names_out())
    angles = 2 * np.pi / psi.period_ * np.log(np.where(X > 0, X, 1))
    waves = [psi.amplitudes_[0] * np.ones_like(X)]
    for j in kept:
        waves += [psi.amplitudes_[j] * np.cos(j * angles), psi.amplitudes_[j] * np.sin(j * angles)]
    np.testing.assert_allclose(Z, np.hstack([X ** (gamma / 2) * wave for wave in waves]), atol=1e-13)
    np.testing.assert_allclose(psi._formula(np, X).reshape(len(X), -1), Z, atol=1e-13)


@pytest.mark.parametrize("kernel", ["chi2", "intersection", "jensen_shannon"])
def test_least_squares_are_closest(kernel):
    for n_terms in (3, 5, 9):
        errors = {
            window: expected_error(
                CATALOGUE[kernel],
                HomogeneousMap(kernel, n_terms, window).fit(np.ones((1, 1))).period_,
                n_terms // 2,
                window,
            )
            for window in WINDOWS
        }
        assert errors["least-squares"] < 0.85 * min(errors["rectangular"], errors["uniform"])


@windows
@kernels
def test_spectrum_is_not_negative_and_sums_to_no_more_than_one(kernel, window):
    for period in (2.0, 8.0, 20.0):
        spectrum = discrete_spectrum(kernel, period, 9, window)
        assert spectrum.min() >= 0
        if window == "rectangular":
            assert spectrum[0] + 2 * spectrum[1:].sum() < 1.1


def test_hellinger_is_exact():
    X = histograms()
    Z = HomogeneousMap("hellinger", 3).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, CATALOGUE["hellinger"](X), rtol=1e-13)


def test_smallest_values_are_zeros():
    psi = HomogeneousMap(n_terms=3).fit(np.ones((1, 1)))
    assert np.all(psi.transform(np.array([[0.0], [5e-324]])) == 0)
    assert np.isfinite(psi.transform(np.array([[1e-300], [1e300]]))).all()
