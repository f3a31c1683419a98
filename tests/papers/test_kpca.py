"""Additive kernel PCA against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import AdditiveKernel, AdditiveKPCA, intersection
from chimap.kernels import CATALOGUE

from ..histograms import histograms


@pytest.mark.parametrize("gamma", [0.5, 1.0])
@pytest.mark.parametrize("name", CATALOGUE)
def test_the_definition(name, gamma):
    kernel, X = CATALOGUE[name].with_gamma(gamma), histograms(40)
    psi = AdditiveKPCA(kernel, 4, n_landmarks=10, random_state=0).fit(X)
    Z = psi.transform(X).reshape(40, 4, 12)
    for i in (0, 7):
        landmarks = psi.landmarks_[i][:, None]
        assert np.isin(landmarks, X[:, i]).all()
        values, vectors = np.linalg.eigh(kernel(landmarks))
        values, vectors = values[::-1][:4], vectors[:, ::-1][:, :4]
        np.testing.assert_allclose(psi.eigenvalues_[i], np.maximum(values, 0), rtol=1e-9, atol=1e-12)
        usable = values > 1e-12 * values[0]
        expected = kernel(X[:, i : i + 1], landmarks) @ vectors[:, usable] / np.sqrt(values[usable])
        np.testing.assert_allclose(np.abs(Z[:, usable, i]), np.abs(expected), rtol=1e-6, atol=1e-9)


def test_all_terms_are_exact_at_the_landmarks():
    X = histograms(8)
    Z = AdditiveKPCA("intersection", 8, random_state=0).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, intersection(X), rtol=1e-9)


def test_seeds():
    X = histograms(300)
    one, two, other = (AdditiveKPCA(n_landmarks=8, random_state=s).fit(X) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.transform(X), two.transform(X))
    assert np.abs(one.landmarks_ - other.landmarks_).max() > 0


def test_bad_settings():
    X = histograms()
    with pytest.raises(ValueError, match="n_landmarks must be a positive whole number"):
        AdditiveKPCA(n_landmarks=0).fit(X)
    plain = AdditiveKernel("mine", lambda r: np.exp(-np.abs(r)), lambda w: w)
    with pytest.raises(ValueError, match="Maps of 'mine': OptimalMap"):
        AdditiveKPCA(plain).fit(X)


def test_small_eigenvalues_are_kept_to_the_rounding_of_the_largest():
    X = np.random.default_rng(0).uniform(0.5, 2.0, (60, 1))  # close values: eigenvalues fall by some 200 per term
    psi = AdditiveKPCA("chi2", 7, n_landmarks=60, random_state=0).fit(X)
    values = psi.eigenvalues_[0] / psi.eigenvalues_[0, 0]
    assert 1e-12 < values[-1] < 1e-8
    Z = psi.transform(X)
    assert np.abs(Z).max(axis=0).min() > 0
    assert np.abs(Z @ Z.T - CATALOGUE["chi2"](X)).max() < 1e-9
    # and below it a term is 0, not noise
    Z = AdditiveKPCA("chi2", 16, n_landmarks=60, random_state=0).fit_transform(X)
    assert (Z[:, -1] == 0).all()
    assert np.abs(Z @ Z.T - CATALOGUE["chi2"](X)).max() < 1e-12
