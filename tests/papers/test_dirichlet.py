"""The map of the Dirichlet kernel: exact, on every kind of rows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import chimap
from chimap import DirichletKernel, DirichletMap, HistogramClassifier, chi2
from chimap._loops.elementary import log_single
from chimap._threads import threads
from chimap._validation import DataError

from ..golden import RELATIVE, golden
from ..histograms import DTYPES, SPARSE_KINDS, classes, histograms


@pytest.mark.parametrize("dtype", RELATIVE)
@pytest.mark.parametrize("case", [0, 1])
def test_golden(case, dtype):
    case = golden("dirichlet")["cases"][case]
    X = np.array(case["points"], dtype)
    psi = DirichletMap(DirichletKernel(case["beta"], case["offset"])).fit(X)
    Z = psi.transform(X)
    assert Z.dtype == dtype
    np.testing.assert_allclose(Z.astype(float) @ Z.T, case["kernel"], rtol=RELATIVE[dtype])
    np.testing.assert_allclose(psi.beta_, case["beta"])
    assert psi.offset_ == case["offset"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [0.02, 0.5, 30.0, 1e4])
def test_is_exact_for_its_kernel(scale, dtype):
    rng = np.random.default_rng(0)
    X = rng.dirichlet(scale * rng.gamma(1.0, size=60) + 0.1 * scale, size=200).astype(dtype)
    psi = DirichletMap().fit(X)
    Z, K = psi.transform(X).astype(float), psi.kernel_(X.astype(float))
    sizes = np.sqrt(np.outer(K.diagonal(), K.diagonal()))
    # in float32 a row that is known to 6e-8 is known to sqrt(beta) times as much in features of length sqrt(60)
    tolerance = 1e-11 if dtype == np.float64 else 1e-5 * max(1, np.sqrt(scale) / 10)
    np.testing.assert_allclose(Z @ Z.T / sizes, K / sizes, atol=tolerance)


def test_whitens():
    """Features of rows of the distribution: mean 0, unit covariance."""
    beta = np.array([3.0, 1.5, 2.0, 8.0])
    X = np.random.default_rng(0).dirichlet(beta, size=40_000)
    Z = DirichletMap(DirichletKernel(offset=1e-12)).fit_transform(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-6)  # the likelihood equations
    np.testing.assert_allclose(np.cov(Z.T), np.eye(4), atol=0.05)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", SPARSE_KINDS)
def test_sparse_is_dense(kind, dtype, monkeypatch):
    monkeypatch.setattr("chimap.papers.dirichlet._BLOCK_NUMBERS", 100)
    X = histograms().astype(dtype)
    psi = DirichletMap().fit(SPARSE_KINDS[kind](X))
    Z = psi.transform(SPARSE_KINDS[kind](X))
    assert isinstance(Z, np.ndarray)
    assert Z.dtype == dtype
    np.testing.assert_allclose(Z, psi.transform(X), rtol=1e-12 if dtype == np.float64 else 1e-4)
    np.testing.assert_allclose(psi.beta_, DirichletMap().fit(X).beta_, rtol=1e-9)


def test_rows_do_not_depend_on_scale_on_each_other_nor_on_threads():
    X = histograms(3000, 40)
    psi = DirichletMap().fit(X)
    with threads(1):
        Z = psi.transform(X)
    with threads(3):
        np.testing.assert_array_equal(psi.transform(X), Z)
    np.testing.assert_array_equal(psi.transform(X[1234:1237]), Z[1234:1237])
    np.testing.assert_array_equal(psi.transform(8 * X), Z)
    np.testing.assert_allclose(psi.transform(1e300 * X), Z, rtol=1e-9)
    np.testing.assert_allclose(psi.transform((1e-30 * X).astype(np.float32)), Z, rtol=1e-3, atol=1e-4)


def test_empty_rows():
    X = np.insert(histograms(), 5, 0, axis=0)
    psi = DirichletMap().fit(X)
    for dtype in DTYPES:
        Z = psi.transform(X.astype(dtype)).astype(float)
        np.testing.assert_allclose(Z @ Z.T, psi.kernel_(X), rtol=1e-4, atol=1e-4 * np.abs(Z).max() ** 2)
        np.testing.assert_array_equal(psi.transform(sp.csr_matrix(X.astype(dtype))), Z)


def test_dtypes_and_names():
    counts = np.random.default_rng(0).integers(1, 9, (20, 6))
    psi = DirichletMap().fit(counts)
    exact = psi.transform(counts.astype(float))
    for rows in (counts, counts.astype(np.uint8), sp.csr_matrix(counts)):
        Z = psi.transform(rows)
        assert Z.dtype == np.float64
        np.testing.assert_array_equal(Z, exact)
    np.testing.assert_allclose(psi.transform(counts.astype(np.float32)), exact, rtol=1e-4, atol=1e-5)
    assert psi.get_feature_names_out(list("abcdef")).tolist() == list("abcdef")
    again = pickle.loads(pickle.dumps(psi))
    np.testing.assert_array_equal(again.transform(counts), exact)
    out = np.empty_like(exact)
    psi.features_into(counts.astype(float), out, shift=np.arange(6.0))
    np.testing.assert_allclose(out, exact - np.arange(6.0))


def test_offsets_below_the_floats_of_the_rows():
    X = histograms()
    psi = DirichletMap(DirichletKernel(offset=1e-200)).fit(X)
    assert np.isfinite(psi.transform(X)).all()
    assert np.isfinite(psi.transform(X.astype(np.float32))).all()


@given(arrays(np.float32, (3, 4), elements=st.just(0.0) | st.floats(2.0**-100, 2.0**100, width=32)))
def test_any_histogram(x):
    x[:, 0] = 1
    psi = DirichletMap(DirichletKernel([0.5, 1.0, 2.0, 0.1], 1e-3)).fit(x)
    Z = psi.transform(x)
    exact = psi.transform(x.astype(float))
    np.testing.assert_allclose(Z, exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())


def test_single_precision_logarithm():
    x = np.exp(np.random.default_rng(0).uniform(-87, 88, 2000)).astype(np.float32)
    x = np.concatenate([x, np.linspace(0.5, 2, 2001, dtype=np.float32)])
    found = np.array([log_single(v) for v in x])
    exact = np.log(x.astype(float))
    assert np.all(np.abs(found - exact) <= 2 * np.spacing(np.abs(exact).astype(np.float32)))


def test_in_a_classifier(tmp_path):
    X, y = classes(600)
    model = HistogramClassifier("dirichlet").fit(X[:400], y[:400])
    assert isinstance(model.features_, DirichletMap)
    assert model.score(X[400:], y[400:]) > 0.9
    model.save(tmp_path / "a.model")
    loaded = chimap.load(tmp_path / "a.model")
    assert loaded.kernel_ == model.kernel_
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_bad_input(kind, monkeypatch):
    monkeypatch.setattr("chimap.papers.dirichlet._BLOCK_NUMBERS", 50)
    X = histograms(9)
    psi = DirichletMap().fit(kind(X))
    for value, message in ((-0.5, "Negative"), (np.nan, "NaN"), (np.inf, "infinity")):
        wrong = X.copy()
        wrong[6, 4] = value
        for call in (DirichletMap().fit, psi.transform):
            with pytest.raises(DataError, match=f"{message}") as error:
                call(kind(wrong))
            assert "row 6, column 4" in str(error.value)
    wrong = X.copy()
    wrong[7] = 1e308
    for call in (DirichletMap().fit, psi.transform):
        with pytest.raises(DataError, match="X, row 7: its bins sum to more than a float64"):
            call(kind(wrong))
    single = np.full((9, 12), 3e37, np.float32)
    with pytest.raises(DataError, match="X, row 0: its bins sum to more than a float32"):
        psi.transform(kind(single))
    with pytest.raises(DataError, match="n_samples = 1"):
        DirichletMap().fit(kind(X[:1]))
    with pytest.raises(DataError, match="all rows are equal"):
        DirichletMap().fit(kind(np.ones((3, 2))))
    with pytest.raises(DataError, match="is expecting 5 features"):
        DirichletMap(DirichletKernel(np.ones(5), 0.1)).fit(kind(X))
    with pytest.raises(ValueError, match="DirichletMap takes the kernel 'dirichlet'; got 'chi2'"):
        DirichletMap(chi2).fit(X)
