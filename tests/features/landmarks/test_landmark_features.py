"""Landmark features by products: the Nystrom kernel of their landmarks, whatever the rows, the kernel and the dtype."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import Exponential, Gaussian, LandmarkFeatures, OptimalMap, _threads, chi2, hellinger
from chimap._validation import DataError
from chimap.features.landmarks.choosing import CATALOGUE, kmeans
from chimap.features.landmarks.landmark_features import whitening
from chimap.kernels import CATALOGUE as KERNELS
from chimap.kernels import Anisotropic, OnColumns, PQKernel

from ...golden import column, golden
from ...histograms import DTYPES, histograms, relative_error, signed_histograms

every_choice = pytest.mark.parametrize("landmarks", CATALOGUE)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
EXPONENTIAL = {f"exp-{name}": Exponential(kernel) for name, kernel in KERNELS.items()} | {
    "gaussian": Gaussian(),
    "signed": Exponential(chi2.signed()),
    "half": Exponential(chi2.with_gamma(0.5), "2*mean"),
    "product": OnColumns(Exponential(chi2), range(5)) * OnColumns(Exponential(hellinger), range(4, 12)),
    "widths": Anisotropic(Exponential(chi2), np.arange(12) % 3, [1.0, 2.0, 3.0]),
}
every_kernel = pytest.mark.parametrize("kernel", EXPONENTIAL.values(), ids=EXPONENTIAL)


def rows_of(kernel, n=60):
    return signed_histograms(n) if kernel.is_signed else histograms(n, empty=0.2)


def nystroem(kernel, X, landmarks):
    K = kernel(X, landmarks)
    return K @ np.linalg.pinv(kernel(landmarks), rcond=1e-13, hermitian=True) @ K.T


@every_kernel
@every_dtype
def test_nystroem_kernel_of_given_landmarks(kernel, dtype):
    """With a long map, z.z' is the Nystrom kernel by the exact kernel."""
    off = {"exp-intersection": 0.1, EXPONENTIAL["half"].name: 1e-4}.get(kernel.name, 1e-5)  # of the maps
    X = rows_of(kernel)
    features = LandmarkFeatures(kernel, landmarks=X[:15].astype(dtype), n_terms=12).fit(X.astype(dtype))
    Z = features.transform(X.astype(dtype)).astype(np.float64)
    assert Z.shape == (60, 15)
    np.testing.assert_allclose(Z @ Z.T, nystroem(features.kernel_, X, X[:15]), atol=off)
    K = features.kernel_(X)
    np.testing.assert_allclose(Z @ Z[:15].T, K[:, :15], atol=off)
    assert np.linalg.eigvalsh(K - Z @ Z.T)[0] > -10 * off


@every_choice
@every_kernel
def test_exact_for_the_mapped_kernel(kernel, landmarks):
    """With one term per bin the map is part of the kernel: exact to rounding about the kernel of mapped rows."""
    X = rows_of(kernel)
    features = LandmarkFeatures(kernel, 20, landmarks=landmarks, random_state=0).fit(X)
    u, Z = features.unit_map_.values(X), features.transform(X)
    mapped = Gaussian(0.5)
    np.testing.assert_allclose(Z @ Z.T, nystroem(mapped, u, features.landmarks_), atol=1e-9)
    np.testing.assert_allclose(features.transform(sp.csr_matrix(X)), Z, atol=1e-10)


@every_choice
@every_dtype
def test_folded_scores_are_those_of_the_features(landmarks, dtype):
    X = histograms(80).astype(dtype)
    features = LandmarkFeatures(n_components=30, landmarks=landmarks, random_state=0).fit(X)
    coef, intercept = np.random.default_rng(0).standard_normal((30, 3)), np.array([1.0, -2.0, 0.5])
    merged = features.merged_into_weights(coef, intercept)
    expected = features.transform(X) @ coef + intercept
    for rows in (X, sp.csr_matrix(X), X[7:8], sp.csr_matrix(X[7:8])):
        found = merged(rows)
        assert found.dtype == np.float64
        np.testing.assert_allclose(
            found, expected[7:8] if found.shape[0] == 1 else expected, atol=1e-11 if dtype == np.float64 else 1e-3
        )


@every_choice
def test_error_falls_with_the_landmarks(landmarks):
    X = histograms(200)

    def error(m):
        features = LandmarkFeatures("exp-chi2", m, n_terms=4, landmarks=landmarks, random_state=1)
        Z = features.fit_transform(X)
        return relative_error(Z @ Z.T, features.kernel_(X))

    assert error(5) > 1.3 * error(25) > 2 * error(125)


def test_kmeans_explains_more_than_rows_at_random():
    X = histograms(600, 6)

    def unexplained(landmarks, seed):
        Z = LandmarkFeatures(n_components=40, landmarks=landmarks, random_state=seed).fit_transform(X)
        return 600 - np.square(Z).sum()

    chosen = {how: np.mean([unexplained(how, seed) for seed in range(3)]) for how in ("kmeans", "uniform")}
    assert chosen["kmeans"] < 0.9 * chosen["uniform"]


@pytest.mark.parametrize("name", KERNELS)
def test_golden(name):
    rows = [row for row in golden("kernels")["kernels"] if row["kernel"] == name]
    x, y, expected = (column(rows, c)[:, None] for c in ("x", "y", "squared_distance"))
    for i in range(0, len(rows), 8):  # exact between a row and a landmark
        landmarks = np.unique(y[i : i + 8], axis=0)
        X = np.vstack([x, y])
        features = LandmarkFeatures(Exponential(KERNELS[name], 0.3), landmarks=landmarks, n_terms=20).fit(X)
        Z, L = features.transform(x[i : i + 8]), features.transform(y[i : i + 8])
        np.testing.assert_allclose((Z * L).sum(axis=1), np.exp(-0.3 * expected[i : i + 8, 0]), rtol=1e-4)


@pytest.mark.parametrize("gamma", [1e-12, 1e-6, 1e5])
@every_dtype
def test_gamma_at_both_extremes(gamma, dtype):
    X = histograms(60)
    features = LandmarkFeatures(Gaussian(gamma), 30, landmarks="uniform", random_state=0).fit(X.astype(dtype))
    Z = features.transform(X.astype(dtype)).astype(np.float64)
    assert np.isfinite(Z).all()
    if gamma > 1:  # the identity among landmarks, 0 elsewhere
        assert np.count_nonzero(np.square(Z).sum(axis=1) > 0.9) == features.n_landmarks_ == 30
        return
    # about a constant, the features are the linear kernel's
    shifted = np.empty((60, features.n_landmarks_), dtype)
    features.features_into(X.astype(dtype), shifted, Z.mean(axis=0))
    centred = shifted.astype(np.float64) - shifted.mean(axis=0, dtype=np.float64)
    linear = X - X.mean(axis=0)
    expected = 2 * gamma * linear @ linear.T
    assert relative_error(centred @ centred.T, expected) < 1e-3


@every_choice
def test_single_precision_with_a_mean_that_dominates(landmarks):
    X = np.random.default_rng(0).random((200, 8)) + 1e4
    single = X.astype(np.float32)
    features = LandmarkFeatures("gaussian", 50, landmarks=landmarks, random_state=0).fit(single)
    Z = features.transform(single).astype(np.float64)
    assert features.n_landmarks_ == 50
    K = features.kernel_(single.astype(np.float64))
    assert relative_error(Z @ Z.T, K) < 0.1
    assert np.diagonal(Z @ Z.T).max() < 1.0001


@every_choice
@every_dtype
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_constant_columns_and_empty_rows(landmarks, dtype, kind):
    plain = histograms(100)
    plain[3] = 0
    X = np.hstack([plain, np.full((100, 2), 7e5)])
    both = [
        LandmarkFeatures("gaussian", 25, landmarks=landmarks, random_state=0).fit(kind(rows.astype(dtype)))
        for rows in (plain, X)
    ]
    without, beside = (
        features.transform(kind(rows.astype(dtype))) for features, rows in zip(both, (plain, X), strict=True)
    )
    np.testing.assert_allclose(beside @ beside.T, without @ without.T, atol=1e-4)


@every_choice
def test_fewer_rows_than_landmarks(landmarks):
    X = np.repeat(histograms(4), 10, axis=0)
    features = LandmarkFeatures(Exponential(chi2, 1.0), 8, landmarks=landmarks, n_terms=12, random_state=0).fit(X)
    assert features.n_landmarks_ == 4
    assert "4 landmarks (of 8 wanted)" in features.describe()
    Z = features.transform(X)
    np.testing.assert_allclose(Z @ Z.T, features.kernel_(X), atol=1e-5)


@every_choice
@pytest.mark.parametrize("X", [np.zeros((5, 3)), np.full((5, 1), 0.5)], ids=["zeros", "equal, one bin"])
def test_equal_rows(landmarks, X):
    features = LandmarkFeatures(Exponential(chi2, 1.0), 3, landmarks=landmarks).fit(X)
    np.testing.assert_allclose(features.transform(X), 1.0)
    with pytest.raises(DataError, match="all sampled rows are equal"):
        LandmarkFeatures("exp-chi2", 3, landmarks=landmarks).fit(X)


def test_nearly_equal_landmarks_are_left_out():
    X = histograms(20).astype(np.float32)
    landmarks = np.vstack([X[:5], X[:5] * np.float32(1 + 1e-6)])
    features = LandmarkFeatures(Exponential(chi2, 1.0), landmarks=landmarks).fit(X)
    assert features.n_landmarks_ == 5
    assert np.abs(features.projection_).max() < 100


def test_gamma_from_the_mapped_rows():
    X = histograms(80)
    exact = Exponential(chi2).fitted(X).gamma
    one, two, half = (
        LandmarkFeatures(n_components=5, gamma=gamma, n_terms=12).fit(X).gamma_
        for gamma in ("mean", "2*mean", "0.5 * mean")
    )
    np.testing.assert_allclose([one, two, half], exact * np.array([1, 2, 0.5]), rtol=1e-5)
    assert LandmarkFeatures(n_components=5, gamma=0.7).fit(X).kernel_ == Exponential(chi2, 0.7)


def test_whitening_of_a_gram_matrix():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((9, 3))
    K = np.exp(-np.square(points[:, None] - points).sum(axis=2))
    found = whitening(K - 1, np.dtype(np.float64))
    np.testing.assert_array_equal(found.kept, np.arange(9))
    np.testing.assert_allclose(found.triangle, np.linalg.inv(np.linalg.cholesky(K)).T, atol=1e-9)
    np.testing.assert_allclose(found.ones, found.triangle.sum(axis=0), atol=1e-9)
    np.testing.assert_array_equal(np.tril(found.triangle, -1), 0)


def test_bad_input():
    X = histograms()
    for settings, message in (
        ({"n_components": 0}, "n_components must be a positive whole number"),
        ({"n_terms": 0}, "n_terms must be a positive whole number"),
        ({"map": "optimal"}, "map must be an additive map"),
        ({"kernel": "chi2"}, "takes exponential kernels, .*got 'chi2'. NystroemFeatures takes every kernel"),
        ({"kernel": Exponential(chi2) * PQKernel()}, "takes exponential kernels"),
        ({"gamma": -1}, "gamma .* must be a positive number"),
        ({"gamma": "median"}, r"gamma .* must be a positive number, 'mean', or a multiple such as '0.5\*mean'"),
        ({"landmarks": "grid"}, "landmarks must be one of .*; got 'grid'"),
        ({"landmarks": np.ones(3)}, r"landmarks must be one of .* or rows \(m, bins\)"),
        ({"landmarks": np.ones((3, 4))}, "4 features, but landmarks of LandmarkFeatures is expecting 12"),
    ):
        with pytest.raises(ValueError, match=message):
            LandmarkFeatures(**settings).fit(X)
    with pytest.raises(DataError, match="landmarks, rows 1 and 3 are equal"):
        LandmarkFeatures(landmarks=X[[0, 1, 2, 1]]).fit(X)


def test_a_map_of_the_users():
    X = histograms(50)
    features = LandmarkFeatures("exp-intersection", 10, map=OptimalMap(n_terms=5), landmarks="uniform").fit(X)
    assert features.landmarks_.shape == (10, 60)
    assert features.describe() == "10 landmarks, uniform, over OptimalMap, 5 terms per bin"


def test_landmarks_do_not_depend_on_the_number_of_threads():
    """Rows near a line, where the rounding of a product decides which centre is nearest."""
    rng = np.random.default_rng(0)
    rows = np.outer(rng.random(2048), rng.random(784)) + 1e-3 * rng.random((2048, 784))
    found = []
    for n_threads in (1, 2):
        with _threads.threads(n_threads):
            found.append(kmeans(Gaussian(0.5), rows.astype(np.float32), 500, np.random.default_rng(0)))
    np.testing.assert_array_equal(*found)
