"""Features of the skewed kernels and of the Gaussian."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler, SkewedChi2Sampler

from chimap import FourierFeatures, Gaussian, SkewedChi2, SkewedFourierFeatures, SkewedIntersection
from chimap._validation import DataError
from chimap.features.fourier import sampling

from ...golden import column, golden
from ...histograms import DTYPES, histograms, relative_error, signed_histograms

KERNELS = {"skewed-chi2": SkewedChi2(0.1), "skewed-intersection": SkewedIntersection(0.1, sigma=0.2)}


@pytest.mark.parametrize(
    ("name", "quantile"),
    [("gaussian", sampling.gaussian), ("skewed_chi2", sampling.sech), ("skewed_intersection", sampling.cauchy)],
)
def test_quantiles(name, quantile):
    rows = golden("skewed")["quantiles"]
    u = column(rows, "u")
    np.testing.assert_allclose(quantile(u), column(rows, name), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(quantile(1 - u), -quantile(u), rtol=1e-9, atol=1e-12)
    assert np.all(np.diff(quantile(0.5 + np.linspace(-1e-4, 1e-4, 41))) > 0)


def gram_error(features, X):
    Z = features.fit_transform(X)
    return relative_error(Z @ Z.T, features.kernel_(X))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("form", ["pair", "offset"])
@pytest.mark.parametrize("sampling", ["iid", "qmc"])
def test_error_falls_with_the_root_of_the_components(name, form, sampling):
    X = histograms(25, 10)

    def errors(n_components):
        found = [gram_error(SkewedFourierFeatures(KERNELS[name], n_components, sampling, form, s), X) for s in range(3)]
        return np.sqrt(np.mean(np.square(found)))

    few, many = errors(64), errors(4096)
    assert many < few / 5
    assert many < 0.06


def test_as_scikit_learn_has_them():
    X = histograms(25, 10)
    theirs = [SkewedChi2Sampler(skewedness=0.1, n_components=512, random_state=s).fit_transform(X) for s in range(20)]
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


# --- large means: the kernels take differences alone, and so must the angles


def rows_about(mean, dtype, n=60, n_bins=8, spread=1.0):
    """Rows that float32 holds exactly, so that features of either type are of the same data."""
    X = mean + spread * np.random.default_rng(0).normal(size=(n, n_bins))
    return X.astype(np.float32).astype(dtype)


LARGE_MEANS = {
    "gaussian": FourierFeatures("gaussian", 256, random_state=0),
    "structured": FourierFeatures("gaussian", 256, sampling="structured", random_state=0),
    "skewed-chi2": SkewedFourierFeatures(SkewedChi2(1.0, sigma=3e5), 256, random_state=0),
    "skewed-intersection": SkewedFourierFeatures(SkewedIntersection(1.0, sigma=3e4), 256, random_state=0),
}


@pytest.mark.parametrize("name", LARGE_MEANS)
def test_features_of_large_means_in_single_precision_are_those_in_double(name):
    X = rows_about(1e6, np.float32)
    features = clone(LARGE_MEANS[name]).fit(X)
    Z, wide = features.transform(X), features.transform(X.astype(np.float64))
    root = np.sqrt(256 / 2)
    # Cauchy's law has frequencies of any size; their angles are off by as many roundings
    assert np.median(abs(Z - wide)) * root < 2e-6
    assert np.mean(abs(Z - wide) * root < 1e-4) > 0.95
    assert np.std(wide @ wide.T) > 0.05  # the kernel tells the rows apart


def test_sparse_rows_stay_sparse_and_lose_the_mean_of_full_columns_alone():
    rng = np.random.default_rng(1)
    X = sp.random(300, 40, 0.05, format="csr", random_state=2, dtype=np.float32).tolil()
    X[:, 7] = (1e5 + rng.normal(size=(300, 1))).astype(np.float32)
    X[5, 7] = 0
    X = sp.csr_matrix(X)
    dense = X.toarray()
    features = FourierFeatures("gaussian", 64, gamma=0.5, random_state=0).fit(X[6:])
    assert np.flatnonzero(features.centre_).tolist() == [7]
    inputs = features._inputs(X, np.empty_like(dense))
    assert sp.issparse(inputs)
    assert inputs.nnz <= X.nnz + 300
    np.testing.assert_array_equal(inputs.toarray(), dense - features.centre_)
    np.testing.assert_allclose(features.transform(X), features.transform(dense), atol=2e-5)


def test_histograms_are_not_centred():
    assert not FourierFeatures("exp-chi2", 8, random_state=0).fit(histograms(50, 6)).centre_.any()


def test_rows_far_below_the_mean_keep_their_digits():
    # (x - m) / (m + c) rounds to -1 in single precision, whose log1p is infinite
    X = np.array([[0.0], [1e-6], [1.0], [3.0]], np.float32)
    kernel = SkewedChi2(c=1e-12, sigma=0.05)
    features = SkewedFourierFeatures(kernel, 16384, random_state=0).fit(X)
    Z = features.transform(X)
    np.testing.assert_allclose(Z @ Z.T, kernel(X.astype(np.float64)), atol=0.03)
    assert np.isfinite(features._inputs(X, np.empty_like(X))).all()


@pytest.mark.parametrize("make", [SkewedChi2, SkewedIntersection])
def test_narrow_skewed_kernels_do_not_overflow(make):
    X = rows_about(1e6, np.float64, n=5)
    K = make(1.0, sigma=1e6)(X)
    reference = np.ones((5, 5))
    for i, j in np.ndindex(5, 5):
        with np.errstate(over="ignore"):
            d = 1e6 * np.log1p((X[i] - X[j]) / (X[j] + 1.0))
        reference[i, j] = np.prod(1 / np.cosh(d)) if make is SkewedChi2 else np.exp(-abs(d).sum())
    np.testing.assert_allclose(K, reference, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("at", [-0.1, -0.2])
def test_the_end_of_the_domain_is_refused(kind, at):
    """ln(x + c) has no value at -c, and just above it one."""
    rows = histograms(20).astype(np.float64)
    features = SkewedFourierFeatures(SkewedChi2(0.1), 8, random_state=0).fit(rows)
    above, beyond = rows.copy(), rows.copy()
    above[3, 2], beyond[3, 2] = -0.1 + 1e-6, at
    assert np.isfinite(features.transform(kind(above))).all()
    assert np.isfinite(clone(features).fit(kind(above)).transform(kind(above))).all()
    for call in (features.transform, clone(features).fit):
        with pytest.raises(DataError, match=r"row 3, column 2"):
            call(kind(beyond))
