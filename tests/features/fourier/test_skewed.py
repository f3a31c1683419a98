"""Features of the skewed kernels and of the Gaussian."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_approximation import RBFSampler, SkewedChi2Sampler

from chimap import FourierFeatures, Gaussian, SkewedChi2, SkewedFourierFeatures, SkewedIntersection
from chimap._validation import DataError
from chimap.features.fourier import quantiles

from ...golden import column, golden
from ...histograms import DTYPES, histograms, relative_error, signed_histograms

KERNELS = {"skewed-chi2": SkewedChi2(0.1), "skewed-intersection": SkewedIntersection(0.1, sigma=0.2)}


@pytest.mark.parametrize(
    ("name", "quantile"),
    [
        ("gaussian", quantiles.gaussian),
        ("skewed_chi2", quantiles.sech),
        ("skewed_intersection", quantiles.cauchy),
    ],
)
def test_quantiles(name, quantile):
    rows = golden("skewed")["quantiles"]
    u = column(rows, "u")
    np.testing.assert_allclose(quantile(u), column(rows, name), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(quantile(1 - u), -quantile(u), rtol=1e-9, atol=1e-12)


def gram_error(features, X):
    Z = features.fit_transform(X)
    return relative_error(Z @ Z.T, features.kernel_(X))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("form", ["pair", "offset"])
@pytest.mark.parametrize("sampling", ["iid", "qmc"])
def test_error_falls_with_the_root_of_the_components(name, form, sampling):
    X = histograms(25, 10)

    def errors(n_components):
        found = [
            gram_error(SkewedFourierFeatures(KERNELS[name], n_components, sampling, form, s), X)
            for s in range(3)
        ]
        return np.sqrt(np.mean(np.square(found)))

    few, many = errors(64), errors(4096)
    assert many < few / 5
    assert many < 0.06


def test_as_scikit_learn_has_them():
    X = histograms(25, 10)
    theirs = [
        SkewedChi2Sampler(skewedness=0.1, n_components=512, random_state=s).fit_transform(X)
        for s in range(20)
    ]
    exact = SkewedChi2(0.1)(X)
    ours = [gram_error(SkewedFourierFeatures(SkewedChi2(0.1), 512, random_state=s), X) for s in range(20)]
    assert np.mean(ours) < np.mean([relative_error(Z @ Z.T, exact) for Z in theirs])


@pytest.mark.parametrize("sampling", ["iid", "orthogonal", "structured", "qmc"])
def test_gaussian(sampling):
    X = signed_histograms(25, 10)
    features = FourierFeatures("gaussian", 4096, 2.0, sampling=sampling, random_state=0)
    assert gram_error(features, X) < 0.05
    assert features.kernel_ == Gaussian(2.0)
    np.testing.assert_allclose(features.transform(sp.csr_matrix(X)), features.transform(X), atol=1e-12)
    Z = RBFSampler(gamma=2.0, n_components=4096, random_state=0).fit_transform(X)
    assert gram_error(features, X) < 2 * relative_error(Z @ Z.T, features.kernel_(X))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_and_sparse_rows(dtype):
    X = histograms().astype(dtype)
    features = SkewedFourierFeatures(n_components=64, random_state=0).fit(X)
    Z = features.transform(X)
    assert Z.dtype == features.frequencies_.dtype == dtype
    np.testing.assert_allclose(features.transform(sp.csr_matrix(X)), Z, atol=1e-6)
    np.testing.assert_array_equal(features.fit(X).transform(X), Z)


def test_bad_input():
    X = histograms()
    for settings, message in (
        ({"kernel": "exp-chi2"}, "SkewedFourierFeatures draws features of skewed-chi2 .* got 'exp-chi2'"),
        ({"sampling": "orthogonal"}, "sampling must be one of 'iid', 'qmc'"),
        ({"n_components": 0}, "n_components must be a positive whole number"),
        ({"form": "triple"}, "form must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            SkewedFourierFeatures(**settings).fit(X)
    with pytest.raises(ValueError, match=r"got 'skewed-chi2'. SkewedFourierFeatures takes"):
        FourierFeatures("skewed-chi2").fit(X)
    features = SkewedFourierFeatures(SkewedChi2(0.25)).fit(X)
    X[2, 1] = -1
    for call in (features.transform, features.fit):
        with pytest.raises(DataError, match="row 2, column 1: -1 is not above -c"):
            call(X)
