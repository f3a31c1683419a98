"""Targets kept as classes are the matrix of signs that they stand for, in all that moments say."""

import pickle

import numpy as np
import pytest

from chimap import Moments
from chimap._validation import DataError
from chimap.moments import (
    BatchProduct,
    FoldMoments,
    OneVersusAll,
    RowWeights,
    WeightedTargets,
    rows_by_weight,
    split,
    weighted,
)
from chimap.moments.targets import filled, sums_of, sums_with

from .cases import assert_same, assert_says, moments_of, rows


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


Z, Y = rows()
TIMES = np.random.default_rng(0).integers(1, 5, 200)
REPEATED = np.repeat(np.arange(200), TIMES)


@pytest.mark.parametrize("batches", [1, 7])
def test_integer_weights_are_repeated_rows(batches):
    moments = Moments(7, 2)
    for part in np.array_split(np.arange(200), batches):
        assert moments.update(Z[part], Y[part], TIMES[part]) is moments
    assert_same(moments, moments_of(Z[REPEATED], Y[REPEATED]), 1e-10)
    assert (moments.n_rows, moments.count) == (200, TIMES.sum())


def test_the_monoid():
    whole = Moments(7, 2).update(Z, Y, TIMES)
    parts = [Moments(7, 2).update(Z[i::3], Y[i::3], TIMES[i::3]) for i in range(3)]
    merged = parts[0] + parts[1] + parts[2]
    assert_same(merged, whole, 1e-10)
    rest = merged - parts[1]
    assert_same(rest, parts[0] + parts[2], 1e-9)
    assert rest.n_rows == 200 - len(Z[1::3])
    assert (whole - whole).count == 0
    with pytest.raises(DataError, match="cannot take 200 rows out of 67"):
        parts[0].subtract(whole)


def test_files_and_processes(tmp_path):
    moments = Moments(7, 2).update(Z, Y, TIMES / 7)
    moments.save(tmp_path / "a.moments")
    for again in (Moments.load(tmp_path / "a.moments"), pickle.loads(pickle.dumps(moments))):
        assert_same(again, moments)
        assert again.n_rows == 200


def test_small_weights_keep_the_means():
    moments = Moments(7, 2).update(Z, Y, TIMES * 1e-6)
    assert moments.count < 1
    expected = np.average(Z, axis=0, weights=TIMES)
    np.testing.assert_allclose(moments.mean, expected, rtol=1e-9)
    np.testing.assert_allclose(moments.covariance(), np.cov(Z.T, aweights=TIMES, ddof=0), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_targets_kept_as_classes(n_classes):
    classes = np.random.default_rng(1).integers(0, n_classes, 200)
    coded = OneVersusAll(classes, n_classes)
    found = []
    for targets in (coded, np.asarray(coded)):
        folds = FoldMoments(1, 7, n_classes, np.zeros(7), np.zeros(n_classes), np.dtype(float))
        folds.add_shifted(0, Z.copy(), weighted(targets, TIMES.astype(float)))
        folds.release_buffers()
        found.append(folds.whole())
    assert_same(*found, 1e-12)
    assert_same(found[0], moments_of(Z[REPEATED], np.asarray(coded)[REPEATED]), 1e-10)


def test_targets_with_weights_are_taken_apart_and_put_together():
    targets = weighted(Y, TIMES)
    assert isinstance(targets, WeightedTargets)
    assert targets.shape == Y.shape
    np.testing.assert_array_equal(targets, Y)
    plain, weights = split(targets[3:9])
    np.testing.assert_array_equal(plain, Y[3:9])
    np.testing.assert_array_equal(weights, TIMES[3:9])
    assert weighted(Y, None) is Y
    assert split(Y) == (Y, None) if Y is None else split(Y)[1] is None


def test_weights_by_place():
    weights = RowWeights(TIMES, first=100)
    np.testing.assert_array_equal(weights(103, 4), TIMES[3:7])
    assert RowWeights()(103, 4) is None


@pytest.mark.parametrize("n", [1, 50, 200, 1000])
def test_rows_drawn_by_weight(n):
    weights = np.random.default_rng(3).random(200) ** 4
    drawn = rows_by_weight(weights, n, seed=1)
    assert drawn.size == n
    assert np.all(np.diff(drawn) >= 0)
    times = np.bincount(drawn, minlength=200)
    shares = n * weights / weights.sum()
    assert np.all((times >= np.floor(shares)) & (times <= np.ceil(shares)))
    np.testing.assert_array_equal(rows_by_weight(np.full(200, 0.1), 200, seed=n), np.arange(200))
    np.testing.assert_array_equal(rows_by_weight(TIMES, int(TIMES.sum()), seed=n), REPEATED)


@pytest.mark.parametrize(
    "weights", [np.ones(199), np.zeros(200), -np.ones(200), np.full(200, np.nan), np.ones((200, 1))]
)
def test_bad_weights_change_nothing(weights):
    moments = moments_of(Z, Y)
    with pytest.raises(DataError, match="sample_weight must be one finite number above 0 for each of the 200"):
        moments.update(Z, Y, weights)
    assert_same(moments, moments_of(Z, Y), rtol=0)


def test_a_step_that_rounds_to_the_end_is_of_the_last_row(monkeypatch):
    class Last:
        def random(self):
            return np.nextafter(1.0, 0.0)  # which, and 2, is 3 to rounding

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Last())
    np.testing.assert_array_equal(rows_by_weight(np.ones(3), 3, seed=0), [0, 2, 2])
