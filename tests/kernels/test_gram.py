"""Gram matrices, distances and diagonals of blocks of rows against the definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import additive_chi2_kernel, chi2_kernel

from chimap import Exponential, chi2
from chimap._threads import threads
from chimap.kernels import CATALOGUE

from ..histograms import DTYPES, SPARSE_KINDS, histograms, signed_histograms
from .definitions import VARIANTS, gram, squared_distance, variant_name

TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}
KINDS = {"dense": np.asarray, "sparse": sp.csr_matrix}

all_variants = pytest.mark.parametrize("kernel", VARIANTS, ids=variant_name)


def rows_for(kernel, n_rows=23, seed=0):
    make = signed_histograms if kernel.is_signed else histograms
    X = make(n_rows, 17, seed)
    X[3] = 0
    return X


@all_variants
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_against_the_definition(kernel, dtype, kind):
    X, Y = rows_for(kernel).astype(dtype), rows_for(kernel, 9, seed=1).astype(dtype)
    left, right, tolerance = KINDS[kind](X), KINDS[kind](Y), TOLERANCE[dtype]
    for found, expected in (
        (kernel(left, right), gram(kernel, X, Y)),
        (kernel.distance(left, right), squared_distance(kernel, X, Y)),
        (kernel(left), gram(kernel, X, X)),
        (kernel.diagonal(left), np.diagonal(gram(kernel, X, X))),
    ):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@all_variants
@pytest.mark.parametrize("kind", KINDS)
def test_laws_of_a_kernel(kernel, kind):
    X = KINDS[kind](rows_for(kernel))
    K, D, own = kernel(X), kernel.distance(X), kernel.diagonal(X)
    np.testing.assert_allclose(K, K.T, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(np.diagonal(K), own, rtol=1e-13)
    np.testing.assert_allclose(D, own[:, None] + own[None, :] - 2 * K, atol=1e-13)
    assert D.min() >= 0
    assert np.abs(np.diagonal(D)).max() < 1e-28
    assert np.linalg.eigvalsh(K).min() > -1e-13 * own.max()


@pytest.mark.covering(1)
@all_variants
@pytest.mark.parametrize("kind", SPARSE_KINDS)
def test_every_kind_of_sparse_rows(kernel, kind):
    X, Y = rows_for(kernel), rows_for(kernel, 9, seed=1)
    make = SPARSE_KINDS[kind]
    np.testing.assert_allclose(kernel(make(X), make(Y)), kernel(X, Y), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(kernel.distance(make(X), Y), kernel.distance(X, Y), rtol=1e-11, atol=1e-15)


@all_variants
def test_same_on_any_number_of_threads(kernel):
    # rows enough that slices of them go to a pool
    X, Y = rows_for(kernel, 200), rows_for(kernel, 700, seed=1)
    for kind in KINDS.values():
        with threads(1):
            alone = kernel(kind(X), kind(Y)), kernel.distance(kind(X), kind(Y))
        with threads(3):
            together = kernel(kind(X), kind(Y)), kernel.distance(kind(X), kind(Y))
        np.testing.assert_array_equal(alone, together)


def test_integers_booleans_and_half_floats():
    X = np.random.default_rng(0).integers(0, 5, (6, 8))
    expected = gram(chi2, X, X)
    for dtype in (np.int8, np.uint8, np.int64, np.uint16):
        for rows in (X.astype(dtype), sp.csr_matrix(X.astype(dtype))):
            K = chi2(rows)
            assert K.dtype == np.float64
            np.testing.assert_allclose(K, expected, 1e-14)
    np.testing.assert_allclose(chi2(X > 2), gram(chi2, X > 2, X > 2), 1e-14)
    np.testing.assert_allclose(chi2(sp.csr_matrix(X > 2)), gram(chi2, X > 2, X > 2), 1e-14)
    assert chi2(X.astype(np.float16)).dtype == np.float32
    np.testing.assert_allclose(chi2(X.tolist()), expected, 1e-14)


def test_different_dtypes_and_kinds_meet():
    X, Y = histograms(5), histograms(7, seed=1)
    K = chi2(X.astype(np.float32), Y)
    assert K.dtype == np.float64
    np.testing.assert_allclose(K, gram(chi2, X, Y), 1e-6)
    np.testing.assert_allclose(chi2(sp.csr_matrix(X), Y), gram(chi2, X, Y), 1e-13)
    np.testing.assert_allclose(chi2(X, sp.csr_matrix(Y)), gram(chi2, X, Y), 1e-13)
    np.testing.assert_allclose(chi2(np.asfortranarray(X), Y[::2]), gram(chi2, X, Y[::2]), 1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_and_no_bins(kind):
    make = KINDS[kind]
    assert chi2(make(np.zeros((0, 3))), make(np.ones((2, 3)))).shape == (0, 2)
    assert chi2(make(np.ones((2, 3))), make(np.zeros((0, 3)))).shape == (2, 0)
    np.testing.assert_array_equal(chi2(make(np.zeros((2, 0)))), np.zeros((2, 2)))


def test_agrees_with_scikit_learn():
    X, Y = histograms(20), histograms(15, seed=1)
    np.testing.assert_allclose(chi2.distance(X, Y), -additive_chi2_kernel(X, Y), rtol=1e-12)
    np.testing.assert_allclose(Exponential(chi2, 0.7)(X, Y), chi2_kernel(X, Y, gamma=0.7), rtol=1e-12)


def test_input_is_left_as_it_was():
    X = signed_histograms()
    for rows in (X.copy(), sp.csr_matrix(X)):
        before = rows.copy()
        chi2.signed()(rows), chi2.signed().distance(rows), chi2.signed().diagonal(rows)
        assert (abs(rows - before)).max() == 0


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("kernel", CATALOGUE.values(), ids=CATALOGUE)
def test_a_kernel_without_a_compiled_formula_is_evaluated_by_its_signature(kernel, gamma):
    compiled = kernel.with_gamma(gamma)
    plain = replace(compiled, form=None)
    X, Y = histograms(30), histograms(17, seed=1)
    for mine, other in ((plain, compiled), (plain.signed(), compiled.signed())):
        rows, columns = (signed_histograms(30), signed_histograms(17, seed=1)) if mine.is_signed else (X, Y)
        for kind in (np.asarray, sp.csr_matrix):
            np.testing.assert_allclose(mine(kind(rows), kind(columns)), other(rows, columns), rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(
                mine.distance(kind(rows), kind(columns)), other.distance(rows, columns), rtol=1e-9, atol=1e-12
            )
    assert plain(X.astype(np.float32)).dtype == np.float32
