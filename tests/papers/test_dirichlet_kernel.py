"""The Dirichlet kernel against golden values, explicit inverses and the maximum of the likelihood."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma, polygamma
from scipy.stats import beta as beta_distribution
from scipy.stats import dirichlet

from chimap import DirichletKernel
from chimap._validation import DataError
from chimap.kernels import as_kernel
from chimap.papers.dirichlet import DirichletWhitening, LogStatistics, _excess

from ..golden import RELATIVE, golden
from ..histograms import SPARSE_KINDS, histograms

BETAS = {
    "tiny": np.array([0.01, 0.003, 0.02]),
    "mixed": np.array([1e-2, 0.3, 4.0, 50.0]),
    "even": np.full(40, 0.7),
    "large": np.array([3e3, 1e3, 2e4]),
    "huge": np.geomspace(1e7, 1e9, 5),
}


def fisher_information(beta):
    return np.diag(polygamma(1, beta)) - polygamma(1, beta.sum())


@pytest.mark.parametrize("dtype", RELATIVE)
@pytest.mark.parametrize("case", [0, 1])
def test_golden(case, dtype):
    case = golden("dirichlet")["cases"][case]
    kernel = DirichletKernel(case["beta"], case["offset"])
    X, expected = np.array(case["points"], dtype), np.array(case["kernel"])
    for rows in (X, 8 * X, sp.csr_matrix(X)):
        found = kernel(rows)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=RELATIVE[dtype])
        np.testing.assert_allclose(kernel.diagonal(rows), np.diagonal(expected), rtol=RELATIVE[dtype])
    np.testing.assert_allclose(kernel.whitening.mean, case["mean"], rtol=1e-13)
    np.testing.assert_allclose(fisher_information(np.array(case["beta"])), case["fisher_information"], 1e-12)


@pytest.mark.parametrize("beta", [b for name, b in BETAS.items() if name != "huge"], ids=lambda b: str(b[0]))
def test_whitening_is_a_root_of_the_inverse(beta):
    G, w, eye = fisher_information(beta), DirichletWhitening.of(beta), np.eye(beta.size)
    A = (eye + w.common * np.outer(w.scale, w.scale)) @ np.diag(w.scale)
    # the reference loses as many digits as G is ill-conditioned
    np.testing.assert_allclose(A @ G @ A.T, eye, atol=1e-13 * np.linalg.cond(G))
    np.testing.assert_allclose(w.solve(G @ np.arange(beta.size)), np.arange(beta.size), atol=1e-9)


def test_whitening_of_concentrated_distributions_keeps_its_digits():
    """For large beta, G is diag(1/beta) + diag(1/(2 beta^2)) - (1/b + 1/(2b^2)) 11': 1 - t |u|^2 -> (d-1)/(2b)."""
    beta = BETAS["huge"]
    w = DirichletWhitening.of(beta)
    t = 1 / beta.sum() + 0.5 / beta.sum() ** 2
    assert t / w.coupling == pytest.approx((beta.size - 1) / (2 * beta.sum()), rel=1e-6)


@pytest.mark.parametrize("beta", BETAS.values(), ids=BETAS)
def test_likelihood_has_its_maximum_at_the_fitted_beta(beta):
    X = np.random.default_rng(0).dirichlet(beta, size=400)
    X = X[X.sum(axis=1) > 0]
    kernel = DirichletKernel().fitted(X)
    found = np.array(kernel.beta)
    slope = LogStatistics.of(X).log_means(kernel.offset) - digamma(found) + digamma(found.sum())
    np.testing.assert_allclose(slope, 0, atol=1e-12)
    if beta is not BETAS["tiny"]:  # where most draws are below the smallest number, and count as zeros
        np.testing.assert_allclose(found, beta, rtol=0.25)


def test_fit_against_the_density_of_scipy():
    X = np.random.default_rng(1).dirichlet([0.7, 1.9, 0.4], size=60)
    found = np.array(DirichletKernel().fitted(X).beta)

    def likelihood(beta):
        return sum(dirichlet.logpdf(row / row.sum(), beta) for row in X)

    best = likelihood(found)
    for i in range(3):
        for factor in (0.98, 1.02):
            assert likelihood(found * np.where(np.arange(3) == i, factor, 1)) < best


@given(
    seed=st.integers(0, 2**32 - 1),
    spread=st.floats(-2, 4),
    d=st.integers(2, 30),
    n=st.integers(2, 40),
    empty=st.sampled_from([0.0, 0.5]),
)
def test_any_sample_has_a_fit(seed, spread, d, n, empty):
    rng = np.random.default_rng(seed)
    X = rng.gamma(10.0**spread, size=(n, d)) * (rng.random((n, d)) >= empty)
    X[X.sum(axis=1) == 0, 0] = 1
    if np.unique(X / X.sum(axis=1, keepdims=True), axis=0).shape[0] == 1:
        return
    kernel = DirichletKernel().fitted(X)
    beta = np.array(kernel.beta)
    slope = LogStatistics.of(X).log_means(kernel.offset) - digamma(beta) + digamma(beta.sum())
    # G^-1 slope is what a further step would change
    assert np.abs(DirichletWhitening.of(beta).solve(slope) / beta).max() < 1e-6
    assert np.isfinite(kernel(X)).all()


@pytest.mark.parametrize("kind", SPARSE_KINDS)
def test_sparse_rows_and_scales(kind):
    X = histograms()
    kernel = DirichletKernel().fitted(X)
    again = DirichletKernel().fitted(SPARSE_KINDS[kind](7 * X))
    np.testing.assert_allclose(again.beta, kernel.beta, rtol=1e-10)
    assert again.offset == pytest.approx(kernel.offset)
    np.testing.assert_allclose(kernel(SPARSE_KINDS[kind](X)), kernel(X), rtol=1e-10)


def test_zeros_count_as_the_offset():
    X = np.array([[0.5, 0.5, 0.0], [0.2, 0.7, 0.1], [0.0, 0.6, 0.4]])
    filled = np.where(X == 0, 0.05, X)
    expected = np.log(filled / filled.sum(axis=1, keepdims=True)).mean(axis=0)
    for rows in (X, sp.csr_matrix(X)):
        np.testing.assert_allclose(LogStatistics.of(rows).log_means(0.05), expected, rtol=1e-14)
    kernel = DirichletKernel(offset=0.05)
    np.testing.assert_allclose(kernel.fitted(X).beta, kernel.fitted(filled).beta, rtol=1e-10)


def test_statistics_do_not_depend_on_blocks(monkeypatch):
    X = histograms()
    whole = LogStatistics.of(X)
    monkeypatch.setattr("chimap.papers.dirichlet._BLOCK_NUMBERS", 50)
    parts = LogStatistics.of(X)
    for name in vars(whole):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-12)


def test_automatic_offset():
    X = np.random.default_rng(0).dirichlet(np.full(8, 0.9), size=200)
    kernel = DirichletKernel().fitted(X)
    b = sum(kernel.beta)
    assert kernel.offset == pytest.approx(beta_distribution(b / 8, b - b / 8).ppf(0.25))
    assert DirichletKernel(offset=1e-3).fitted(X).offset == 1e-3
    np.testing.assert_allclose(DirichletKernel(offset=1e-3).fitted(X).beta, kernel.beta, rtol=1e-10)
    assert DirichletKernel(kernel.beta).fitted(X).offset == pytest.approx(kernel.offset)
    assert kernel.fitted(X[:3]) is kernel
    # with zeros, which count as the offset: the quantile of what is fitted with them
    X[np.random.default_rng(1).random(X.shape) < 0.2] = 0
    kernel = DirichletKernel().fitted(X)
    b = sum(kernel.beta)
    assert kernel.offset == pytest.approx(beta_distribution(b / 8, b - b / 8).ppf(0.25), rel=2e-3)
    assert kernel.beta == pytest.approx(DirichletKernel(offset=kernel.offset).fitted(X).beta)
    # mostly empty bins: the quantile of the distribution lies far below what the data resolve
    counts = np.random.default_rng(0).multinomial(20, np.full(200, 1 / 200), size=50)
    assert DirichletKernel().fitted(counts).offset == pytest.approx(0.5 / 20)
    assert DirichletKernel(np.full(200, 1e-3)).fitted(counts).offset == pytest.approx(0.5 / 20)


def test_columns_that_say_nothing():
    """A bin that is always empty, or always the same, has a beta of its own like every other."""
    X = np.random.default_rng(0).dirichlet(np.ones(4), size=100) * 0.5
    X = np.c_[X, np.zeros(100), np.full(100, 0.5)]
    kernel = DirichletKernel().fitted(X)
    assert np.all(np.array(kernel.beta) > 0)
    assert np.isfinite(kernel(X)).all()
    np.testing.assert_allclose(kernel.distance(X[:, [1, 0, 2, 3, 4, 5]], X).diagonal() >= 0, True)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_empty_rows(kind):
    X = histograms(9)
    kernel = DirichletKernel().fitted(kind(X))
    with_empty = np.insert(X, 4, 0, axis=0)
    again = DirichletKernel().fitted(kind(with_empty))
    np.testing.assert_allclose(again.beta, kernel.beta, rtol=1e-12)
    y = np.log(kernel.offset) - kernel.whitening.mean
    expected = y @ np.linalg.solve(fisher_information(np.array(kernel.beta)), y)
    assert kernel.diagonal(kind(with_empty))[4] == pytest.approx(expected)


def test_is_a_kernel():
    X, Y = histograms(20), histograms(9, seed=1)
    kernel = DirichletKernel().fitted(X)
    K = kernel(X, Y)
    np.testing.assert_allclose(kernel(Y, X), K.T, rtol=1e-12)
    assert np.linalg.eigvalsh(kernel(X)).min() > -1e-9
    own, others = kernel.diagonal(X), kernel.diagonal(Y)
    np.testing.assert_allclose(kernel.distance(X, Y), own[:, None] + others - 2 * K, rtol=1e-9, atol=1e-9)
    close = X * (1 + 1e-9 * np.random.default_rng(0).random(X.shape))
    distances = kernel.distance(X, close).diagonal()
    assert np.all((distances > 0) & (distances < 1e-13))
    np.testing.assert_array_equal(DirichletKernel()(X, Y), K)
    assert as_kernel("dirichlet") == DirichletKernel()
    assert kernel(X.astype(np.float32)).dtype == np.float32
    assert kernel((1000 * X).astype(int)).dtype == np.float64


def test_bad_parameters():
    for beta in ("mean", [1.0], [1.0, 0.0], [1.0, np.nan], [[1.0, 2.0]], None, [1, "a"], [True, True]):
        with pytest.raises(ValueError, match="beta must be 'auto' or at least two positive numbers"):
            DirichletKernel(beta)
    for offset in (0, -1e-3, np.inf, "mean", None):
        with pytest.raises(ValueError, match="offset"):
            DirichletKernel(offset=offset)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_bad_rows(kind):
    X = histograms(9)
    given = DirichletKernel(np.ones(12), 1e-3)
    for value, message in ((-0.5, "Negative"), (np.nan, "NaN"), (np.inf, "infinity")):
        wrong = X.copy()
        wrong[6, 4] = value
        for call in (DirichletKernel().fitted, DirichletKernel(), given):
            with pytest.raises(DataError, match=message) as error:
                call(kind(wrong))
            assert "row 6, column 4" in str(error.value)
    wrong = X.copy()
    wrong[3] = 1e308
    for call in (DirichletKernel().fitted, given, given.diagonal):
        with pytest.raises(DataError, match=r"X, row 3: its bins sum to more than a float64 holds"):
            call(kind(wrong))
    with pytest.raises(DataError, match="Y, row 3"):
        given(X, kind(wrong))
    wrong[1:] = 0
    with pytest.raises(DataError, match=r"two non-empty rows .* n_samples = 1"):
        DirichletKernel().fitted(kind(wrong))
    with pytest.raises(DataError, match="n_samples = 1"):
        DirichletKernel().fitted(kind(X[:1]))
    with pytest.raises(DataError, match="n_features = 1"):
        DirichletKernel().fitted(kind(X[:, :1]))
    with pytest.raises(DataError, match="all rows are equal"):
        DirichletKernel().fitted(kind(np.outer([1, 2, 3, 0.1], X[0]).astype(np.float32)))
    with pytest.raises(DataError, match="12 features as input"):
        given(kind(X[:, :5]))


def test_the_series_of_trigamma_has_all_its_digits():
    """x - 1/trigamma(x) by mpmath, with 40 digits; the series takes over at 16."""
    expected = [0.49462925681731324701, 0.49462960255216635774, 0.4957294860701596449, 0.49831668147291720143]
    np.testing.assert_allclose(_excess([15.999, 16, 20, 50]), expected, rtol=1e-13)
