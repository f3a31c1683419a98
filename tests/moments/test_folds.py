from __future__ import annotations

import sys

import numpy as np
import pytest

from chimap.moments import FoldMoments, fold_of_rows

from .cases import assert_same, moments_of, rows


@pytest.mark.parametrize("n_folds", [1, 2, 5, 7])
def test_folds_do_not_depend_on_the_chunks(n_folds):
    whole = fold_of_rows(0, 5000, n_folds, seed=3)
    for size in (1, 7, 1000, 1024, 4096):
        starts = range(0, 5000, size)
        parts = [fold_of_rows(s, min(size, 5000 - s), n_folds, seed=3) for s in starts]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert fold_of_rows(1024, 0, n_folds, seed=3).size == 0


@pytest.mark.parametrize("n_folds", [2, 3, 5, 10])
@pytest.mark.parametrize("n_rows", [2, 10, 23, 1024, 1030, 20_000])
def test_folds_are_of_equal_size(n_folds, n_rows):
    for seed in range(3):
        sizes = np.bincount(fold_of_rows(0, n_rows, n_folds, seed), minlength=n_folds)
        assert sizes.max() - sizes.min() <= 1 + n_rows // 1024
        assert np.all(sizes > 0) or n_rows < n_folds


def test_folds_are_random():
    first, again, other = (fold_of_rows(0, 5000, 5, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert abs(np.mean(first == other) - 0.2) < 0.03
    # nothing of the order of the rows is left in the folds
    for lag in (5, 7, 10, 1024):
        assert abs(np.mean(first[lag:] == first[:-lag]) - 0.2) < 0.03


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_of_folds(dtype):
    Z, Y = rows(300)
    Z = Z.astype(dtype)
    shift, target_shift = Z[0].astype(float), Y[0]
    folds = FoldMoments(3, 7, 2, shift, target_shift, np.dtype(dtype))
    assert folds.count == 0
    for fold in (0, 1, 2, 1):
        part = slice(100 * fold, 100 * fold + 50) if folds.count < 150 else slice(150, 200)
        buffer = folds.buffer(50)
        assert buffer.shape == (50, 7)
        assert buffer.dtype == dtype
        buffer[:] = Z[part] - shift.astype(dtype)
        folds.add_shifted(fold, buffer, Y[part] - target_shift)
        folds.release_buffers()
    assert folds.count == 200
    chosen = np.r_[0:50, 100:200, 200:250]
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    assert_same(folds.whole(), moments_of(Z[chosen], Y[chosen]), tolerance)
    assert_same(folds.folds[1], moments_of(Z[100:200], Y[100:200]), tolerance)
    single = FoldMoments(1, 7, 2, shift, target_shift, np.dtype(dtype))
    assert single.whole() is single.folds[0]


def test_no_rows_of_more_folds_than_a_block_holds():
    assert fold_of_rows(0, 0, 2000, seed=0).size == 0


def test_folds_count_the_memory_of_their_moments():
    folds = FoldMoments(3, 40, 2, np.zeros(40), np.zeros(2), np.dtype(float))
    assert sys.getsizeof(folds) >= 3 * folds.folds[0].features.flat.nbytes
