"""Structured projections against the matrices that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import hadamard

from chimap import FourierFeatures, HistogramClassifier, load
from chimap._threads import threads
from chimap.features.fourier.projection import Hadamard
from chimap.features.fourier.sampling import qmc, structured

from ...histograms import DTYPES, classes, histograms, relative_error


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n_inputs", "n_frequencies"), [(17, 5), (32, 32), (29, 80), (100, 300), (700, 64)])
def test_is_the_product_of_hadamard_matrices_and_signs(n_inputs, n_frequencies, dtype):
    found = structured(n_inputs, n_frequencies, np.random.default_rng(0), np.dtype(dtype))
    assert isinstance(found, Hadamard)
    p = found.signs.shape[2]
    assert p // 2 < n_inputs <= p
    H, expected = hadamard(p).astype(float), []
    for s in found.signs.astype(float):
        expected.append(((H * s[2]) @ (H * s[1]) @ (H * s[0])).T[:n_inputs])
    W = np.hstack(expected)[:, :n_frequencies] * found.lengths
    np.testing.assert_allclose(found.matrix, W, atol=(1e-5 if dtype == np.float32 else 1e-13) * np.abs(W).max())
    X = np.random.default_rng(1).standard_normal((50, n_inputs)).astype(dtype)
    out, buffer = np.empty((50, n_frequencies), dtype), np.empty_like(X)
    for rows in (X, sp.csr_matrix(X)):
        with threads(2):
            found.project(rows, buffer, out)
        np.testing.assert_allclose(out, X @ W, atol=(1e-4 if dtype == np.float32 else 1e-12) * np.abs(X @ W).max())


def test_no_worse_than_independent_frequencies():
    X = histograms(40, 50)

    def error(sampling):
        found = []
        for seed in range(12):
            features = FourierFeatures(n_components=256, n_terms=5, sampling=sampling, random_state=seed)
            Z = features.fit_transform(X)
            found.append(relative_error(Z @ Z.T, features.kernel_(X)))
        return np.mean(found)

    iid = error("iid")
    assert error("structured") < 1.1 * iid
    assert error("orthogonal") < iid


def test_few_inputs_and_qmc():
    X = histograms(40, 4)

    def error(sampling):
        found = []
        for seed in range(8):
            features = FourierFeatures("exp-hellinger", 256, n_terms=1, sampling=sampling, random_state=seed)
            Z = features.fit_transform(X)
            found.append(relative_error(Z @ Z.T, features.kernel_(X)))
        return np.mean(found)

    assert error("qmc") < 0.5 * error("iid")
    with pytest.raises(ValueError, match=r"at most 21201 inputs .* got 30000"):
        qmc(30_000, 4, np.random.default_rng(0), np.dtype(float))


@pytest.mark.parametrize("sampling", ["structured", "qmc"])
def test_a_model_of_it_fits_and_opens_again(sampling, tmp_path):
    X, y = classes()
    model = HistogramClassifier(
        "exp-chi2", n_components=256, features=FourierFeatures(sampling=sampling), random_state=0
    ).fit(X, y)
    assert model.score(X, y) > 0.9
    model.save(tmp_path / "a.model")
    again = load(tmp_path / "a.model").decision_function(X)
    np.testing.assert_allclose(again, model.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_types_change_where_they_differ(dtype):
    projection = structured(40, 20, np.random.default_rng(0), np.dtype(np.float64))
    found = projection.astype(np.dtype(dtype))
    assert (found is projection) == (dtype == np.float64)
    assert found.lengths.dtype == found.matrix.dtype == dtype
    np.testing.assert_allclose(found.matrix, projection.matrix, atol=1e-5)
