"""What a kernel refuses, and the row and column that it names."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import Exponential, chi2
from chimap._validation import DataError
from chimap.kernels import CATALOGUE, as_kernel, names

from ..histograms import histograms

KINDS = {"dense": np.asarray, "sparse": sp.csr_matrix}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("kernel", [chi2, Exponential(chi2, 1.0)], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize(("value", "message"), [(-0.5, "Negative"), (np.nan, "NaN"), (np.inf, "infinity")])
def test_bad_bins_are_named(kind, kernel, value, message):
    X, Y = histograms(9), histograms(9)
    Y[6, 4] = value
    for call in (kernel, kernel.distance):
        with pytest.raises(DataError, match=f"{message}(.|\n)*|Y, row 6, column 4") as error:
            call(kind(X), kind(Y))
        assert "Y, row 6, column 4" in str(error.value)
        assert message in str(error.value)
        with pytest.raises(DataError, match="X, row 6, column 4"):
            call(kind(Y))


@pytest.mark.parametrize(("value", "message"), [(-0.5, "Negative"), (np.nan, "NaN"), (np.inf, "infinity")])
def test_bad_bins_of_many_rows_are_named(value, message):
    X = np.ones((9000, 120), np.float32)  # of several blocks for each thread
    X[7400, 4] = value
    with pytest.raises(DataError, match="X, row 7400, column 4") as error:
        chi2(X, X[:1])
    assert message in str(error.value)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_signed_kernels_take_negative_bins_and_no_others(kind):
    X = -histograms(9)
    np.testing.assert_allclose(chi2.signed()(kind(X)), chi2(-X), 1e-13)
    for value in (np.nan, -np.inf):
        X[2, 3] = value
        with pytest.raises(DataError, match="row 2, column 3"):
            chi2.signed()(kind(X))


def test_widths_that_differ():
    with pytest.raises(DataError, match="X has 12 bins and Y has 5"):
        chi2(histograms(), histograms(n_bins=5))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), "1 axes"),
        (np.ones((2, 2, 2)), "3 axes"),
        (np.ones((2, 2)) * 1j, "complex128"),
        (np.array([["a", "b"]]), "real numbers"),
        (np.array([[1, None]], dtype=object), "row 0, column 1"),
        (sp.csr_matrix(np.ones((2, 2)) * 1j), "complex128"),
    ],
)
def test_what_is_no_matrix_of_numbers(X, message):
    with pytest.raises(DataError, match=message):
        chi2(X)


def test_names():
    assert [as_kernel(name).name for name in CATALOGUE] == list(CATALOGUE)
    assert as_kernel("Jensen-Shannon") is CATALOGUE["jensen_shannon"]
    assert as_kernel("EXP_jensen_shannon", 2.0) == Exponential(CATALOGUE["jensen_shannon"], 2.0)
    assert as_kernel(chi2) is chi2
    assert [as_kernel(name).name for name in names()] == names()
    for name in ("chi", "exp-", "exp-exp-chi2", None, 3):
        with pytest.raises(ValueError, match=r"kernel must be one of chi2, .*exp-chi2"):
            as_kernel(name)


@pytest.mark.parametrize("gamma", [0, -1, np.nan, "mean", True])
def test_degree_of_homogeneity(gamma):
    with pytest.raises(ValueError, match="gamma must be a positive number"):
        chi2.with_gamma(gamma)
