from __future__ import annotations

import numpy as np
import pytest

from chimap import HomogeneousMap
from chimap.features.additive.homogeneous import discrete_spectrum, mean_square_error
from chimap.kernels import CATALOGUE

from ...histograms import histograms

windows = pytest.mark.parametrize("window", ["rectangular", "uniform"])
kernels = pytest.mark.parametrize("kernel", CATALOGUE.values(), ids=CATALOGUE)


@windows
@kernels
@pytest.mark.parametrize("n_terms", [1, 3, 7])
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_automatic_period_is_the_best_of_any_fine_grid(kernel, window, n_terms, gamma):
    kernel, m = kernel.with_gamma(gamma), n_terms // 2
    psi = HomogeneousMap(kernel, n_terms, window).fit(np.ones((1, 1)))
    found = mean_square_error(kernel, psi.period_, m, window)
    grid = np.geomspace(0.7, 60, 600)
    assert found <= min(mean_square_error(kernel, p, m, window) for p in grid) * (1 + 1e-9) + 1e-15


@kernels
def test_error_is_what_it_says(kernel):
    # the integral over l of (k - k_hat)^2 between 1 and exp(-l)
    psi = HomogeneousMap(kernel, 5).fit(np.ones((1, 1)))
    l = np.linspace(0, 60, 60_001)  # noqa: E741
    y = np.exp(-l)[:, None]
    missing = kernel(y, np.ones((1, 1)))[:, 0] - psi.transform(y) @ psi.transform(np.ones((1, 1)))[0]
    expected = mean_square_error(kernel, psi.period_, 2, "rectangular")
    np.testing.assert_allclose(np.trapezoid(missing**2, l), expected, rtol=1e-3, atol=1e-15)


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
