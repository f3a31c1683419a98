from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import Exponential, chi2, intersection
from chimap._validation import DataError
from chimap.kernels import CATALOGUE

from ..histograms import DTYPES, histograms


@pytest.mark.parametrize("kernel", CATALOGUE.values(), ids=CATALOGUE)
def test_is_the_exponential_of_the_distance(kernel):
    X, Y = histograms(8), histograms(5, seed=1)
    exponential = Exponential(kernel, 1.5)
    np.testing.assert_allclose(exponential(X, Y), np.exp(-1.5 * kernel.distance(X, Y)), 1e-14)
    np.testing.assert_allclose(exponential.distance(X, Y), 2 - 2 * exponential(X, Y), rtol=1e-12)
    np.testing.assert_array_equal(exponential.diagonal(X), np.ones(8))
    np.testing.assert_array_equal(np.diagonal(exponential(X)), np.ones(8))
    assert np.linalg.eigvalsh(exponential(X)).min() > 0
    assert exponential.name == f"exp-{kernel.name}"


def test_distance_of_close_rows():
    x = histograms(1)
    y = x * (1 + 1e-9)
    expected = 2 * 1.5 * chi2.distance(x, y)
    np.testing.assert_allclose(Exponential(chi2, 1.5).distance(x, y), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_mean_gamma_is_that_of_the_pairs(kind):
    X = histograms(40)
    pairs = np.triu_indices(40, 1)
    expected = 1 / chi2.distance(X)[pairs].mean()
    fitted = Exponential(chi2).fitted(kind(X))
    np.testing.assert_allclose(fitted.gamma, expected, 1e-12)
    assert fitted.fitted(histograms(seed=1)) is fitted
    np.testing.assert_allclose(Exponential(chi2)(kind(X)), fitted(kind(X)), 1e-14)


def test_mean_gamma_of_many_rows_is_drawn_by_the_seed():
    X = histograms(1500, 5)
    first, again, other = (Exponential(chi2).fitted(X, random_state=s).gamma for s in (3, 3, 4))
    assert first == again != other
    np.testing.assert_allclose(first, other, rtol=0.03)


def test_mean_gamma_of_rows_that_do_not_vary():
    with pytest.raises(DataError, match="all sampled rows are equal"):
        Exponential(chi2).fitted(np.ones((5, 3)))
    assert Exponential(chi2).fitted(np.ones((1, 3))).gamma == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_stays_and_far_rows_give_zero(dtype):
    X = np.array([[1e20, 0], [0, 1e20]], dtype)
    K = Exponential(intersection, 1.0)(X)
    assert K.dtype == dtype
    np.testing.assert_array_equal(K, np.eye(2))


@pytest.mark.parametrize("gamma", [0, -1.0, np.nan, np.inf, "median", True, None])
def test_gamma_that_is_no_positive_number(gamma):
    with pytest.raises(ValueError, match=r"gamma .* must be a positive number"):
        Exponential(chi2, gamma)


def test_takes_additive_kernels_only():
    with pytest.raises(ValueError, match="takes an additive kernel such as chi2"):
        Exponential(Exponential(chi2, 1.0), 1.0)


@pytest.mark.parametrize("n_rows", [5, 8, 9, 12])
def test_mean_distance_does_not_depend_on_blocks(n_rows, monkeypatch):
    rows = histograms(n_rows)
    D = chi2.distance(rows)
    monkeypatch.setattr("chimap.kernels.exponential.GAMMA_BLOCK", 4)
    gamma = Exponential(chi2).fitted(rows).gamma
    assert gamma == pytest.approx(n_rows * (n_rows - 1) / D.sum())
