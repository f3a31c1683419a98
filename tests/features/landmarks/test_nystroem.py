"""Landmark features: exact at the landmarks, below the kernel elsewhere, for every kernel."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem

from chimap import AutomaticFeatures, Exponential, HistogramClassifier, NystroemFeatures, chi2, load
from chimap._validation import DataError
from chimap.features.landmarks.choosing import CATALOGUE

from ...histograms import DTYPES, classes, histograms, relative_error
from ...laws.test_kernels import every_kernel, rows_of

every_choice = pytest.mark.parametrize("landmarks", CATALOGUE)


def error(features, X):
    Z = features.fit_transform(X)
    return relative_error(Z @ Z.T, features.kernel_(X))


@every_kernel
def test_exact_among_the_landmarks_and_never_above_the_kernel(kernel):
    X, kernel = rows_of(kernel, 40)
    features = NystroemFeatures(kernel, 10, random_state=0).fit(X)
    assert features.landmarks_.shape == (10, 12)
    Z, L = features.transform(X), features.transform(features.landmarks_)
    np.testing.assert_allclose(L @ Z.T, kernel(features.landmarks_, X), rtol=1e-6, atol=1e-8)
    assert np.linalg.eigvalsh(kernel(X) - Z @ Z.T)[0] > -1e-8
    np.testing.assert_allclose(features.transform(sp.csr_matrix(X)), Z, atol=1e-9)


@every_choice
def test_error_falls_with_the_landmarks(landmarks):
    X = histograms(120)
    errors = [error(NystroemFeatures("exp-chi2", m, landmarks=landmarks, random_state=1), X) for m in (5, 20, 80)]
    assert errors[0] > 1.5 * errors[1] > 3 * errors[2]


def test_pivoted_cholesky_finds_what_is_rare():
    common = np.tile(np.eye(6)[:3], (500, 1)) + 1e-6 * np.random.default_rng(0).random((1500, 6))
    X = np.vstack([common, np.eye(6)[3:]])  # three kinds of rows by the hundred, three by the one
    drawn = [NystroemFeatures(chi2, 6, landmarks="rpcholesky", random_state=s).fit(X) for s in range(3)]
    blind = [NystroemFeatures(chi2, 6, landmarks="uniform", random_state=s).fit(X) for s in range(3)]
    last = X[-3:]

    def unexplained(features):
        return np.abs(chi2(last) - features.transform(last) @ features.transform(last).T).max()

    assert max(map(unexplained, drawn)) < 0.01
    assert min(map(unexplained, blind)) > 0.9


def test_as_scikit_learn_has_them():
    X = histograms(60)
    landmarks = X[::4]
    ours = NystroemFeatures(chi2, landmarks=landmarks).fit(X).transform(X)
    theirs = Nystroem(kernel=lambda a, b: chi2(a[None], b[None])[0, 0], n_components=15).fit(landmarks).transform(X)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-8)


@every_choice
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_and_determinism(landmarks, dtype):
    X = histograms(50).astype(dtype)
    one = NystroemFeatures("exp-chi2", 20, landmarks=landmarks, random_state=3).fit(X)
    two = NystroemFeatures("exp-chi2", 20, landmarks=landmarks, random_state=3).fit(X)
    Z = one.transform(X)
    assert Z.dtype == one.landmarks_.dtype == dtype
    np.testing.assert_array_equal(Z, two.transform(X))
    assert relative_error(Z @ Z.T, one.kernel_(X)) < 0.15
    sparse = NystroemFeatures("exp-chi2", 20, landmarks=landmarks, random_state=3).fit(sp.csr_matrix(X))
    assert sp.issparse(sparse.landmarks_)
    S = sparse.transform(sp.csr_matrix(X))
    assert relative_error(S @ S.T, sparse.kernel_(X)) < 0.15


@every_choice
def test_repeated_rows_and_few_of_them(landmarks):
    X = np.repeat(histograms(4), 10, axis=0)
    with pytest.warns(UserWarning, match="4 of the 40 rows differ enough for the kernel.*fewer than n_components=8"):
        features = NystroemFeatures(chi2, 8, landmarks=landmarks, random_state=0).fit(X)
    Z = features.transform(X)
    assert Z.shape[1] <= 4
    np.testing.assert_allclose(Z @ Z.T, chi2(X), atol=1e-6)


@every_choice
@pytest.mark.parametrize("X", [np.zeros((5, 3)), np.full((5, 3), 0.5)], ids=["zeros", "one row"])
def test_rows_that_say_nothing(landmarks, X):
    with pytest.warns(UserWarning, match="these are the landmarks"):
        Z = NystroemFeatures(chi2, 3, landmarks=landmarks, random_state=0).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, chi2(X), atol=1e-12)


def test_nearly_equal_landmarks_do_not_blow_up():
    X = histograms(20).astype(np.float32)
    landmarks = np.vstack([X[:5], X[:5] * np.float32(1 + 1e-6)])
    features = NystroemFeatures(chi2, landmarks=landmarks).fit(X)
    Z = features.transform(X)
    assert Z.shape[1] <= 6
    assert np.linalg.eigvalsh((chi2(X) - Z @ Z.T).astype(float))[0] > -1e-4


def test_bad_input():
    X = histograms()
    for settings, message in (
        ({"n_components": 0}, "n_components must be a positive whole number"),
        ({"landmarks": "grid"}, "landmarks must be one of 'rpcholesky', 'uniform', 'kmeans'; got 'grid'"),
        ({"landmarks": np.ones(3)}, r"landmarks must be one of .* or rows \(m, bins\)"),
        ({"landmarks": np.ones((3, 4))}, "4 features, but landmarks of NystroemFeatures is expecting 12"),
        ({"kernel": "chi"}, "kernel must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            NystroemFeatures(**settings).fit(X)
    with pytest.raises(DataError, match="landmarks, rows 1 and 3 are equal"):
        NystroemFeatures(landmarks=X[[0, 1, 2, 1]]).fit(X)


@pytest.mark.parametrize("kernel", ["jensen_shannon+pq", "exp-chi2", "linear"])
def test_in_a_classifier(kernel, tmp_path):
    X, y = classes(300)
    model = HistogramClassifier(kernel, n_components=60, features="landmarks", random_state=0).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.6
    model.save(tmp_path / "m.model")
    np.testing.assert_array_equal(load(tmp_path / "m.model").decision_function(X), model.decision_function(X))
    if kernel == "jensen_shannon+pq":
        with pytest.raises(ValueError, match="has no random features: sampling must be 'auto'"):
            HistogramClassifier(kernel, features=AutomaticFeatures(sampling="iid")).fit(X, y)


def test_single_precision_keeps_the_small_eigenvalues_of_many_landmarks():
    X = histograms(800, 40, empty=0.7)
    kernel = Exponential(chi2, 3.0)  # a top eigenvalue of hundreds, and hundreds of them below 1
    Z = NystroemFeatures(kernel, 800, landmarks="uniform").fit_transform(X.astype(np.float32)).astype(float)
    assert relative_error(Z @ Z.T, kernel(X)) < 1e-5


@every_choice
@pytest.mark.parametrize("kernel", ["chi2", "jensen_shannon", "linear"])
def test_single_precision_with_a_mean_that_dominates(kernel, landmarks):
    X = np.random.default_rng(0).random((300, 6)) + 100
    y = X[:, 0] - X[:, 3]
    features = NystroemFeatures(kernel, 40, landmarks=landmarks, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the linear kernel has no more than six
        Z = features.fit_transform(X.astype(np.float32)).astype(float)
    assert Z.shape[1] >= 6
    centred = Z - Z.mean(axis=0)
    left = y - y.mean() - centred @ np.linalg.lstsq(centred, y - y.mean(), rcond=1e-5)[0]
    assert np.square(left).sum() < 0.01 * np.square(y - y.mean()).sum()
