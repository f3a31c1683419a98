from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import save_file

from chimap import Moments
from chimap._validation import DataError

from .cases import assert_same, assert_says, moments_of, rows


@pytest.mark.parametrize("n_features", [1, 7, 257])
@pytest.mark.parametrize("batches", [1, 3, 200])
def test_batches(n_features, batches):
    Z, Y = rows(400, n_features)
    moments = Moments(n_features, 2)
    for z, y in zip(np.array_split(Z, batches), np.array_split(Y, batches), strict=True):
        assert moments.update(z, y) is moments
    assert_says(moments, Z, Y)


def test_sparse_integer_and_one_target():
    Z, Y = rows()
    Z = np.round(Z) * (Z > 3)
    assert_says(moments_of(sp.csr_matrix(Z), Y), Z, Y)
    assert_says(Moments(7, 2).update(Z.astype(int), Y), Z, Y)
    assert_says(Moments(7, 1).update(Z, Y[:, 0]), Z, Y[:, :1])


def test_float32_batches_are_summed_in_float64():
    Z, Y = rows(20_000)
    Z = Z.astype(np.float32)
    moments = Moments(7, 2)
    for z, y in zip(np.array_split(Z, 100), np.array_split(Y, 100), strict=True):
        moments.update(z, y)
    assert moments.features.flat.dtype == moments.feature_sum.dtype == np.float64
    assert_says(moments, Z, Y, rtol=2e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_that_dominate(dtype):
    """Means ten thousand times the spread: the digits of the scatter are kept."""
    Z, Y = rows(300)
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0) + 1e4
    Y = Y + 1e4
    Z = Z.astype(dtype)
    rtol = 1e-9 if dtype == np.float64 else 1e-5
    assert_says(moments_of(Z, Y), Z, Y, rtol)
    # batches about points of their own, merged and taken apart again
    a, b, c = (moments_of(Z[i::3], Y[i::3]) for i in range(3))
    assert not np.array_equal(a.shift, b.shift)
    assert_says(a + b + c, Z, Y, rtol)
    assert_says((a + b + c) - b, np.vstack([Z[0::3], Z[2::3]]), np.vstack([Y[0::3], Y[2::3]]), rtol)


def test_given_shift_changes_nothing():
    Z, Y = rows()
    plain = moments_of(Z, Y)
    shifted = moments_of(Z, Y, shift=Z[0], target_shift=Y[0])
    np.testing.assert_array_equal(shifted.shift, Z[0])
    assert_same(shifted, plain)
    assert_same(plain + shifted, shifted + plain)


def test_empty():
    empty = Moments(7, 2)
    assert empty.count == 0
    assert not empty.mean.any()
    assert not empty.covariance().any()
    Z, Y = rows()
    assert empty.update(Z[:0], Y[:0]).count == 0
    assert empty.shift is None
    assert_says(empty.update(Z, Y), Z, Y)


def test_scatter_in_place():
    Z, Y = rows(n_features=300)
    moments = moments_of(Z, Y)
    square = np.full((300, 300), np.nan)
    moments.scatter_into(square)
    np.testing.assert_allclose(np.triu(square), np.triu(moments.covariance() * moments.count), atol=1e-9)


@pytest.mark.parametrize("is_empty", [False, True])
def test_files(tmp_path, is_empty):
    Z, Y = rows(n_features=300)
    moments = Moments(300, 2) if is_empty else moments_of(Z, Y)
    path = tmp_path / "part.moments"
    moments.save(path)
    again = Moments.load(path)
    for name in ("count", "n_features", "n_targets"):
        assert getattr(again, name) == getattr(moments, name)
    np.testing.assert_array_equal(again.features.flat, moments.features.flat)
    for name in ("feature_sum", "target_sum", "cross", "target_squares"):
        np.testing.assert_array_equal(getattr(again, name), getattr(moments, name))
    # and it goes on from there
    assert_same(again.update(Z, Y), moments.copy().update(Z, Y))
    assert [p.name for p in tmp_path.iterdir()] == ["part.moments"]


def test_files_that_are_not_moments(tmp_path):
    Z, Y = rows()
    path = tmp_path / "part.moments"
    moments_of(Z, Y).save(path)
    whole = path.read_bytes()
    for size in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match="cut off or damaged"):
            Moments.load(path)
    path.write_text("rows,of,text\n" * 50)
    with pytest.raises(DataError, match="not a chimap file"):
        Moments.load(path)
    save_file({"a": np.zeros(3)}, path)
    with pytest.raises(DataError, match="not one of chimap"):
        Moments.load(path)
    with pytest.raises(FileNotFoundError, match="no such file"):
        Moments.load(tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        moments_of(Z, Y).save(tmp_path / "absent" / "part.moments")


@pytest.mark.parametrize(
    ("Z", "Y", "message"),
    [
        (np.ones((3, 6)), np.ones((3, 2)), r"Z of 7 features and Y of 2 targets.*\(3, 6\)"),
        (np.ones((3, 7)), np.ones((4, 2)), r"\(3, 7\) and Y \(4, 2\)"),
        (np.ones((3, 7)), np.ones(3), "2 targets"),
        (np.where(np.eye(3, 7, 2), np.nan, 1), np.ones((3, 2)), "Z, row 0, column 2: nan"),
        (np.ones((3, 7)), np.where(np.eye(3, 2), np.inf, 1), "Y, row 0, column 0: inf"),
    ],
)
def test_bad_rows_change_nothing(Z, Y, message):
    moments = moments_of(*rows())
    before = moments.copy()
    with pytest.raises(DataError, match=message):
        moments.update(Z, Y)
    assert_same(moments, before, rtol=0)


def test_what_does_not_merge():
    moments = moments_of(*rows())
    for other in (moments_of(*rows(n_features=6)), moments_of(*rows(n_targets=1))):
        with pytest.raises(DataError, match="do not merge"):
            moments.merge(other)
    with pytest.raises(DataError, match="cannot take 201 rows out of 200"):
        moments.subtract(moments_of(*rows(201)))


def test_how_moments_travel():
    Z, Y = rows(50, 40, 2)
    full = moments_of(Z, Y)
    assert sys.getsizeof(full) >= full.features.flat.nbytes
    assert_same(pickle.loads(pickle.dumps(full)), full)
    empty = pickle.dumps(full.fresh())
    assert len(empty) < 2000  # no zeros
    np.testing.assert_array_equal(pickle.loads(empty).shift, full.shift)
    assert_same(pickle.loads(empty).merge(full), full)


def test_without_targets_there_are_no_shifts_of_targets():
    bare = moments_of(*rows()).without_targets()
    assert [shift.shape for shift in bare.shifts] == [(7,), (0,)]
    assert bare.target_mean.shape == (0,)
