"""k(x, y) = sqrt(xy) S(ln y - ln x), and S is the Fourier transform of the spectrum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from chimap.kernels import CATALOGUE

SMOOTH = [kernel for kernel in CATALOGUE.values() if kernel.name != "hellinger"]


@pytest.mark.parametrize("kernel", CATALOGUE.values(), ids=CATALOGUE)
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_kernel_is_that_of_its_signature(kernel, gamma):
    rng = np.random.default_rng(0)
    x, y = np.exp(rng.normal(0, 4, (2, 50)))
    expected = (x * y) ** (gamma / 2) * kernel.signature(np.log(y / x))
    np.testing.assert_allclose(np.diagonal(kernel.with_gamma(gamma)(x[:, None], y[:, None])), expected, 1e-11)


@pytest.mark.parametrize("kernel", CATALOGUE.values(), ids=CATALOGUE)
def test_signature_is_even_one_at_zero_and_finite_far_out(kernel):
    l = np.array([0.0, 0.1, 3.0, 50.0, 1000.0, 5000.0])  # noqa: E741
    np.testing.assert_array_equal(kernel.signature(l), kernel.signature(-l))
    np.testing.assert_allclose(kernel.signature(0.0), 1, 1e-15)
    assert np.isfinite(kernel.signature(l)).all()
    assert kernel.signature(3) == kernel.signature([3.0])[0]


@pytest.mark.parametrize("kernel", SMOOTH, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("log_ratio", [0.0, 0.3, 1.0, 4.0])
def test_spectrum_is_the_transform_of_the_signature(kernel, log_ratio):
    # S(l) = int kappa(w) cos(w l) dw, and kappa(w) = (1 / 2 pi) int S(l) cos(w l) dl, both even
    def transform(function, at):
        if at == 0:
            return 2 * quad(lambda t: float(function(t)), 0, np.inf, epsabs=1e-12)[0]
        return 2 * quad(lambda t: float(function(t)), 0, np.inf, weight="cos", wvar=at, epsabs=1e-10)[0]

    np.testing.assert_allclose(transform(kernel.spectrum, log_ratio), kernel.signature(log_ratio), atol=1e-7)
    back = transform(kernel.signature, log_ratio) / (2 * np.pi)
    np.testing.assert_allclose(back, kernel.spectrum(log_ratio), atol=1e-7)


def test_spectrum_of_hellinger_is_a_delta():
    np.testing.assert_array_equal(CATALOGUE["hellinger"].spectrum([0.0, 0.5]), [np.inf, 0.0])
