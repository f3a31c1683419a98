"""What every map keeps to, whatever the kernel."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

from chimap._threads import threads
from chimap._validation import DataError

from ..histograms import DTYPES, SPARSE_KINDS, histograms, relative_error, signed_histograms
from .cases import NEVER_ABOVE_THE_KERNEL, error_limits, every_map, terms_of

GAMMAS = (0.5, 1.0, 2.0)
ROUNDING = {np.float32: 1e-6, np.float64: 1e-14}


def error(psi, X):
    Z = psi.fit_transform(X)
    return relative_error(Z @ Z.T, psi.kernel_(X))


@pytest.mark.slow
@every_map
@pytest.mark.parametrize("gamma", GAMMAS)
def test_error_falls_with_the_terms(make, kernel, gamma):
    kernel, X = kernel.with_gamma(gamma), histograms(60, empty=0.1)
    errors = [error(make(kernel, n), X) for n in terms_of(make)]
    floor, limit = error_limits(make, kernel)
    for worse, better in pairwise(errors):
        assert better < 0.9 * worse or better < floor
    assert errors[-1] < limit


@pytest.mark.covering(2)
@every_map
@pytest.mark.parametrize("gamma", GAMMAS)
def test_signed_map_is_the_sign_times_the_map_of_magnitudes(make, kernel, gamma):
    kernel, X = kernel.with_gamma(gamma), signed_histograms(60)
    plain, signed = make(kernel, 3).fit(np.abs(X)), make(kernel.signed(), 3).fit(X)
    expected = plain.transform(np.abs(X)).reshape(60, 3, 12) * np.sign(X)[:, None, :]
    for rows in (X, sp.csr_matrix(X)):
        Z = signed.transform(rows)
        Z = Z.toarray() if sp.issparse(Z) else Z
        np.testing.assert_allclose(Z.reshape(60, 3, 12), expected, rtol=1e-12, atol=1e-14)
    assert error(make(kernel.signed(), 5), X) < 0.2


@pytest.mark.covering(2)
@every_map
@pytest.mark.parametrize("dtype", DTYPES)
def test_sparse_as_dense(make, kernel, dtype):
    """Of every kind of sparse rows; that maps can be fitted on each of them is a law of all transformers."""
    X = histograms().astype(dtype)
    X[4] = 0
    psi = make(kernel, 3).fit(sp.csr_matrix(X))
    dense = psi.transform(X)
    np.testing.assert_allclose(dense, make(kernel, 3).fit(X).transform(X), rtol=1e-5, atol=1e-7)
    for kind in SPARSE_KINDS.values():
        sparse = psi.transform(kind(X))
        assert sp.issparse(sparse)
        assert sparse.format == "csr"
        assert sparse.shape == dense.shape
        assert sparse.dtype == dense.dtype == dtype
        sparse.check_format(full_check=True)
        assert sparse.has_sorted_indices
        np.testing.assert_allclose(sparse.toarray(), dense, rtol=ROUNDING[dtype])


@every_map
def test_columns_are_blocks_by_term(make, kernel):
    X = histograms()
    psi = make(kernel, 3).fit(X)
    Z = psi.transform(X)
    assert Z.shape == (30, 36)
    alone = np.zeros_like(X)
    alone[:, 5] = X[:, 5]
    columns = np.flatnonzero(np.abs(psi.transform(alone)).max(axis=0))
    assert set(columns) <= {5, 17, 29}
    np.testing.assert_allclose(psi.transform(alone)[:, [5, 17, 29]], Z[:, [5, 17, 29]], rtol=1e-14)
    names = psi.get_feature_names_out()
    assert names.tolist() == [f"x{i}_term{q}" for q in range(3) for i in range(12)]
    assert psi.get_feature_names_out([f"word {i}" for i in range(12)])[17] == "word 5_term1"


@every_map
def test_dtypes(make, kernel):
    counts = np.random.default_rng(0).integers(0, 9, (20, 6))
    psi = make(kernel, 3).fit(counts)
    exact = psi.transform(counts.astype(np.float64))
    assert exact.dtype == np.float64
    for rows in (counts, counts.astype(np.uint8), sp.csr_matrix(counts)):
        Z = psi.transform(rows)
        assert Z.dtype == np.float64
        np.testing.assert_allclose(Z.toarray() if sp.issparse(Z) else Z, exact, rtol=1e-12)
    single = psi.transform(counts.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, exact, rtol=1e-4, atol=1e-5)
    assert np.all(psi.transform(counts > 3).reshape(20, 3, 6)[:, 0] >= 0)


@every_map
def test_kernel_is_the_one_asked_for(make, kernel):
    variant = kernel.with_gamma(0.5).signed()
    assert make(variant, 3).fit(signed_histograms()).kernel_ == variant
    assert make(kernel.name, 3).fit(histograms()).kernel_ == kernel


@every_map
def test_zero_is_zero(make, kernel):
    for variant in (kernel, kernel.with_gamma(0.5), kernel.with_gamma(2.0), kernel.signed()):
        psi = make(variant, 3).fit(histograms())
        for dtype in DTYPES:
            assert np.all(psi.transform(np.zeros((2, 12), dtype)) == 0)
            assert np.all(psi.transform(-np.zeros((2, 12), dtype)) == 0)


@every_map
@pytest.mark.parametrize(
    "X",
    [np.zeros((4, 3)), np.full((5, 2), 0.5), np.c_[np.full(5, 0.2), np.arange(5.0)], np.ones((1, 1))],
    ids=["zeros", "one value", "constant column", "one entry"],
)
def test_samples_that_say_little(make, kernel, X):
    for rows in (X, sp.csr_matrix(X), X.astype(np.float32)):
        psi = make(kernel, 5).fit(rows)
        Z = psi.transform(rows)
        Z = Z.toarray() if sp.issparse(Z) else Z
        assert np.isfinite(Z).all()
        if X.any():
            assert relative_error(Z @ Z.T, kernel(X)) < 0.2
        else:
            assert not Z.any()
        assert np.isfinite(psi.transform(np.full((1, X.shape[1]), 0.7))).all()


@pytest.mark.covering(2)
@every_map
@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_outside_the_fitted_range_are_finite(make, kernel, gamma, dtype):
    psi = make(kernel.with_gamma(gamma), 3).fit(histograms().astype(dtype))
    low, high = (1e-300, 1e30) if dtype == np.float64 else (1e-37, 1e15)
    x = np.geomspace(low, high, 500, dtype=dtype).reshape(-1, 1) * np.ones(12, dtype)
    assert np.isfinite(psi.transform(x)).all()
    x[:] = np.finfo(dtype).smallest_subnormal
    assert np.isfinite(psi.transform(x)).all()


@pytest.mark.covering(2)
@every_map
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_magnitudes_near_the_largest_number_are_refused_by_place(make, kernel, dtype, kind):
    X, limits = histograms(), np.finfo(dtype)
    row, column = np.unravel_index(np.argmax(X), X.shape)
    with pytest.raises(DataError, match=rf"row {row}, column {column}: .* overflow.*Scale the rows down"):
        make(kernel, 3).fit(kind((X / X.max() * (limits.max / 2**9)).astype(dtype)))
    for largest in (limits.max / 2**12, limits.tiny * 2**12, limits.tiny / 2**6):
        rows = (X / X.max() * largest).astype(dtype)
        assert np.isfinite(make(kernel, 3).fit(kind(rows)).transform(rows)).all()


@every_map
def test_rows_do_not_depend_on_each_other_nor_on_threads(make, kernel):
    X = histograms(3000, 40)
    psi = make(kernel, 3).fit(X)
    with threads(1):
        Z, S = psi.transform(X), psi.transform(sp.csr_matrix(X))
    with threads(3):
        np.testing.assert_array_equal(psi.transform(X), Z)
        assert (psi.transform(sp.csr_matrix(X)) != S).nnz == 0
    np.testing.assert_allclose(psi.transform(X[1234:1237]), Z[1234:1237], rtol=1e-14, atol=1e-16)


@pytest.mark.covering(2)
@every_map
@pytest.mark.parametrize("dtype", DTYPES)
def test_into_memory_that_is_there(make, kernel, dtype):
    X = histograms().astype(dtype)
    psi = make(kernel, 3).fit(X)
    Z, shift = psi.transform(X), np.linspace(-1, 1, 36)
    for rows in (X, sp.csr_matrix(X)):
        out = np.full((30, 36), np.nan, dtype)
        psi.features_into(rows, out)
        np.testing.assert_allclose(out, Z, rtol=ROUNDING[dtype])
        psi.features_into(rows, out, shift)
        np.testing.assert_allclose(out, Z - shift.astype(dtype), rtol=1e-5, atol=1e-6)


@every_map
def test_copies(make, kernel):
    X = histograms()
    psi = make(kernel, 3).fit(X)
    again = pickle.loads(pickle.dumps(psi))
    np.testing.assert_array_equal(again.transform(X), psi.transform(X))
    fresh = clone(psi)
    assert not hasattr(fresh, "kernel_")
    np.testing.assert_array_equal(fresh.fit(X).transform(X), psi.transform(X))
    np.testing.assert_array_equal(psi.fit(2 * X).transform(2 * X), make(kernel, 3).fit_transform(2 * X))


@every_map
@pytest.mark.parametrize("fewer", [False, True])
def test_a_number_of_terms_that_is_set_after_the_fit_waits_for_the_next(make, kernel, fewer):
    """Or, of maps that learn nothing that depends on it, holds at once; never features that nobody has written."""
    X = histograms(20)
    first, then = (5, 3) if fewer else (3, 5)
    psi = make(kernel, first).fit(X)
    before = psi.transform(X)
    psi.set_params(n_terms=then)
    after = psi.transform(X)
    expected = before if after.shape == before.shape else make(kernel, then).fit_transform(X)
    np.testing.assert_allclose(after, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.slow
@every_map
@given(x=arrays(np.float64, (3, 4), elements=st.just(0.0) | st.floats(1e-30, 1e6)))
def test_any_histogram(make, kernel, x):
    """Finite features that never promise more than the kernel has, on the sample that they were fitted on."""
    psi = make(kernel, 3)
    Z = psi.fit_transform(x)
    assert np.isfinite(Z).all()
    S = psi.transform(sp.csr_matrix(x))
    np.testing.assert_allclose(S.toarray(), Z, rtol=1e-12)
    if make in NEVER_ABOVE_THE_KERNEL:
        own = kernel.diagonal(x)
        assert np.all((Z * Z).sum(axis=1) <= own * (1 + 1e-6) + 1e-12 * own.max())
