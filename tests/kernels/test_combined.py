"""Sums and products of kernels."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import Exponential, Gaussian, chi2, hellinger, intersection
from chimap.kernels import Anisotropic, Product, Sum, as_kernel

from ..histograms import histograms


def test_sums_and_products():
    X, Y = histograms(9), histograms(4)
    a, b, c = chi2(X, Y), intersection(X, Y), hellinger(X, Y)
    np.testing.assert_allclose((chi2 + 2 * intersection)(X, Y), a + 2 * b, rtol=1e-14)
    np.testing.assert_allclose((chi2 * (intersection + hellinger))(X, Y), a * (b + c), rtol=1e-14)
    np.testing.assert_allclose((chi2 + hellinger).distance(X, Y), chi2.distance(X, Y) + hellinger.distance(X, Y))


def test_names():
    assert (chi2 + 0.5 * intersection).name == "chi2+0.5*intersection"
    assert (chi2 * (chi2 + intersection)).name == "chi2*(chi2+intersection)"
    assert as_kernel("chi2 + exp-chi2") == Sum((chi2, Exponential(chi2)))
    assert as_kernel("chi2+hellinger*intersection") == chi2 + hellinger * intersection
    assert as_kernel("0.5 * chi2+.25*hellinger*intersection") == Sum((0.5 * chi2, 0.25 * (hellinger * intersection)))
    assert as_kernel("2*minmax")(np.eye(2)).tolist() == [[2, 0], [0, 2]]
    with pytest.raises(ValueError, match=r"kernel must be one of .* '2\*' before one"):
        as_kernel("0*chi2")


def test_parts_are_fitted_to_the_data():
    X = histograms(20)
    kernel = (chi2 + as_kernel("exp-chi2")).fitted(X)
    assert kernel.kernels[1] == Exponential(chi2).fitted(X)


def test_bins_may_be_negative_where_every_part_allows_it():
    assert not (chi2.signed() + hellinger).is_signed
    assert (chi2.signed() * as_kernel("gaussian")).is_signed


def test_bad_parts():
    with pytest.raises(ValueError, match=r"each of weights .* must be a positive number; got -1"):
        -1 * chi2
    with pytest.raises(ValueError, match="weights must hold one number for each of the 2 kernels; got 1"):
        Sum((chi2, hellinger), (1.0,))
    with pytest.raises(ValueError, match="kernels must hold at least one"):
        Product(())
    with pytest.raises(ValueError, match="kernel objects such as chi2; got 'chi2'"):
        Sum(("chi2",))
    with pytest.raises(TypeError):
        chi2 + 1


def test_distance_with_widths_is_that_of_its_features():
    """|phi(x) - phi(y)|^2 = K(x, x) + K(y, y) - 2 K(x, y)."""
    rows = histograms(6)
    kernel = Anisotropic(Gaussian(), np.arange(rows.shape[1]) % 2, [1.0, 3.0])
    K = kernel(rows)
    np.testing.assert_allclose(kernel.distance(rows), 2 - 2 * K, atol=1e-14)
    np.testing.assert_allclose(np.diagonal(kernel.distance(rows)), 0, atol=1e-14)
    np.testing.assert_allclose(kernel.diagonal(rows), np.diagonal(K))
