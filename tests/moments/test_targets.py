"""Targets kept as classes are the matrix of signs that they stand for, in all that moments say."""

import numpy as np
import pytest

from chimap import Moments
from chimap.moments import BatchProduct, OneVersusAll
from chimap.moments.targets import filled, sums_of, sums_with, weighted

from .cases import assert_same, assert_says


def classes_and_rows(n_rows, n_classes, dtype, seed=0):
    rng = np.random.default_rng(seed)
    Z = (rng.standard_normal((n_rows, 7)) + 2).astype(dtype)
    return rng.integers(0, n_classes, n_rows), Z


@pytest.mark.parametrize("n_classes", [2, 3, 40])
def test_the_matrix(n_classes):
    classes, _ = classes_and_rows(30, n_classes, np.float64)
    coded = OneVersusAll(classes, n_classes)
    signs = np.where(classes[:, None] == np.arange(n_classes), 1.0, -1.0)
    np.testing.assert_array_equal(coded, signs)
    np.testing.assert_array_equal(coded[3:9], signs[3:9])
    np.testing.assert_array_equal(coded[signs[:, 0] > 0], signs[signs[:, 0] > 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_rows", "n_classes"), [(300, 3), (50, 40), (1, 5), (0, 4)])
def test_moments_are_those_of_the_matrix(n_rows, n_classes, dtype):
    classes, Z = classes_and_rows(n_rows, n_classes, dtype)
    shift = Z.mean(axis=0).astype(np.float64) if n_rows else np.zeros(7)
    shift = shift.astype(dtype).astype(np.float64)
    coded, matrix = (Moments(7, n_classes, shift, np.zeros(n_classes)) for _ in range(2))
    targets = OneVersusAll(classes, n_classes)
    for moments, Y in ((coded, targets), (matrix, np.asarray(targets))):
        product = BatchProduct(7, np.dtype(dtype))
        moments.add_shifted(Z - shift.astype(dtype), Y, product)
        product.move_to(moments.features)
    rtol = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_array_equal(coded.target_squares, matrix.target_squares)
    np.testing.assert_array_equal(coded.target_sum, matrix.target_sum)
    if n_rows > 1:
        assert_same(coded, matrix, rtol)
        assert_says(coded, Z, np.asarray(targets), rtol)


@pytest.mark.parametrize("n_classes", [2, 3, 40])
def test_sums_are_those_of_the_matrix(n_classes):
    classes, _ = classes_and_rows(30, n_classes, np.float64)
    coded = OneVersusAll(classes, n_classes)
    for found, expected in zip(sums_of(coded), sums_of(np.asarray(coded)), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("scales", [None, np.array([0.5, 2.0, 3.0])])
def test_missing_entries_add_nothing(scales):
    Z = np.array([[1.0, 2.0], [3.0, 5.0], [-1.0, 4.0]])
    Y = np.array([[2.0, np.nan], [np.nan, np.nan], [1.0, 3.0]])
    there, s = np.nan_to_num(Y), np.ones(3) if scales is None else scales
    np.testing.assert_array_equal(filled(Y), there)
    assert filled(there) is there
    total, cross = sums_with(Z, Y, scales)
    np.testing.assert_allclose(total, s @ Z, rtol=1e-14)
    np.testing.assert_allclose(cross, (s[:, None] * there).T @ Z, rtol=1e-14)
    for found, expected in zip(sums_of(weighted(Y, scales)), (s @ there, s @ np.square(there)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
