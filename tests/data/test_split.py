"""A split depends on the seed, on the number of rows, and on which of them are of one class, and on nothing else."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from chimap._arrays import to_dense
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.data.split import (
    drawn_for_test,
    held_out_groups,
    held_out_rows,
    held_out_structures,
    split_by,
    split_source,
)

N = 10_000
INDEX = np.arange(N, dtype=np.float64)[:, None]


@pytest.fixture(params=["dense", "sparse"])
def source(request):
    return ArraySource(INDEX if request.param == "dense" else sp.csr_matrix(INDEX), np.arange(N))


def rows_of(part, chunk_rows=777):
    return np.concatenate([to_dense(chunk.X)[:, 0] for chunk in part.chunks(chunk_rows)])


def test_parts_are_complementary_and_exact(source):
    train, test = split_source(source, 0.2, seed=5)
    np.testing.assert_array_equal(np.sort(np.concatenate([rows_of(train), rows_of(test)])), INDEX[:, 0])
    for part in (train, test):
        rows = rows_of(part)
        assert part.n_rows == rows.size
        np.testing.assert_array_equal(part.labels(), rows)
        np.testing.assert_array_equal(np.diff(rows) > 0, True)
    assert test.n_rows == 0.2 * N


@pytest.mark.parametrize("chunk_rows", [1, 3, 4096, 4097, N])
def test_chunk_borders_do_not_matter(source, chunk_rows):
    if chunk_rows < 10:
        source = ArraySource(source.take(np.arange(300)))
    for part in split_source(source, 0.03, seed=5):
        chunks = list(part.chunks(chunk_rows))
        assert [c.start for c in chunks] == list(range(0, part.n_rows, chunk_rows))
        np.testing.assert_array_equal(np.concatenate([to_dense(c.X)[:, 0] for c in chunks]), rows_of(part))


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=8),
    fraction=st.sampled_from([0.05, 0.2, 1 / 3, 0.5, 0.9]),
    seed=st.integers(0, 9),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_of_every_class_its_share_is_held_out_and_of_all_rows_exactly_theirs(sizes, fraction, seed):
    classes = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    is_test = held_out_rows(classes.size, fraction, seed, classes)
    assert is_test.sum() == np.floor(fraction * classes.size + 0.5)
    assert (held_out_rows(classes.size, fraction, seed)).sum() == is_test.sum()
    exact = np.array(sizes) * is_test.sum() / classes.size
    held_out = np.bincount(classes[is_test], minlength=len(sizes))
    assert (np.abs(held_out - exact) < 1).all()
    # largest remainders: who was rounded up is no nearer to the whole number below than who was rounded down
    rest = np.round(exact - np.floor(exact), 9)
    up = held_out > np.floor(exact)
    assert not up.any() or up.all() or rest[up].min() >= rest[~up].max()
    names = np.array([f"class {9 - k}" for k in classes])
    np.testing.assert_array_equal(held_out_rows(classes.size, fraction, seed, names), is_test)


def test_every_row_is_as_likely_to_be_held_out():
    classes = np.repeat(["a", "b", "c"], [4, 6, 8])
    drawn = np.array([held_out_rows(18, 0.25, seed, classes) for seed in range(600)])
    assert set(drawn.sum(axis=1)) == {5}
    for name, share in (("a", 1 / 4), ("b", 1 / 3), ("c", 1 / 4)):
        assert np.abs(drawn.mean(axis=0)[classes == name] - share).max() < 0.08
    assert len({row.tobytes() for row in drawn}) > 300


def test_rows_of_older_files_are_those_of_the_draw_of_each_row():
    test = split_by(ArraySource(INDEX), drawn_for_test(0, N, 0.25, 9))[1]
    keys = [np.random.SeedSequence(9, spawn_key=(0x5B117, block)) for block in range(3)]
    draws = np.concatenate([np.random.default_rng(key).random(4096) for key in keys])[:N]
    np.testing.assert_array_equal(rows_of(test), np.flatnonzero(draws < 0.25))


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_rows_drawn_from_the_same_seed_do_not_tell_their_part(seed):
    X = np.random.default_rng(seed).random((4000, 1))
    groups = np.random.default_rng(seed).permutation(4000)
    assert abs(X[split_source(ArraySource(X), 0.2, seed)[1].places].mean() - 0.5) < 0.05
    assert abs(split_source(ArraySource(X), 0.2, seed, groups)[1].places.mean() / 2000 - 1) < 0.1


def test_take_reaches_across_blocks(source):
    train = split_source(source, 0.4, seed=2)[0]
    rows = np.unique(np.random.default_rng(0).integers(train.n_rows, size=200))
    np.testing.assert_array_equal(to_dense(train.take(rows))[:, 0], rows_of(train)[rows])


def test_fingerprints_differ(source):
    parts = [*split_source(source, 0.2, 0), *split_source(source, 0.2, 1), *split_source(source, 0.3, 0)]
    prints = [source.fingerprint(), *(part.fingerprint() for part in parts)]
    assert all(a != b for i, a in enumerate(prints) for b in prints[:i])


def test_parts_can_be_split_again(source):
    train, _ = split_source(source, 0.2, 0)
    fit, validate = split_source(train, 0.5, 1)
    np.testing.assert_array_equal(np.sort(np.concatenate([rows_of(fit), rows_of(validate)])), rows_of(train))


def test_bad_arguments(source):
    for fraction in (0, 1, -0.1, "half", np.nan):
        with pytest.raises(ValueError, match="test_fraction must be between 0 and 1"):
            split_source(source, fraction, 0)
    for seed in (-1, 0.5, None):
        with pytest.raises(ValueError, match="seed must be a whole number >= 0"):
            split_source(source, 0.5, seed)
    with pytest.raises(DataError, match=r"array, test part: no rows \(test_fraction=1e-09 of 10000 rows\)"):
        split_source(source, 1e-9, 0)


@pytest.mark.parametrize("fraction", [0.01, 0.3, 0.9])
def test_whole_groups_are_held_out_and_two_are_left(source, fraction):
    groups = np.sort(np.random.default_rng(0).integers(17, size=N)).astype(str)
    train, test = split_source(source, fraction, 4, groups)
    assert not {*groups[train.places]} & {*groups[test.places]}
    assert len({*groups[train.places]}) >= 2
    assert train.n_rows + test.n_rows == N
    if fraction == 0.3:
        assert 0.2 * N < test.n_rows < 0.4 * N
    again = split_source(source, fraction, 4, groups.astype(object))[1]
    np.testing.assert_array_equal(again.places, test.places)
    assert again.fingerprint() == test.fingerprint()
    assert split_source(source, fraction, 5, groups)[1].fingerprint() != test.fingerprint()


def test_groups_that_are_too_few_are_refused(source):
    with pytest.raises(DataError, match=r"array: 2 groups \(a, b\), but holding one out must leave two"):
        split_source(source, 0.3, 0, np.repeat(["a", "b"], N // 2))


def test_given_parts_read_as_drawn_ones(source):
    is_test = np.random.default_rng(1).random(N) < 0.1
    train, test = split_by(source, is_test)
    np.testing.assert_array_equal(rows_of(test), np.flatnonzero(is_test))
    np.testing.assert_array_equal(rows_of(test.other), rows_of(train))
    np.testing.assert_array_equal(test.places_in_file(), test.places)
    assert train.fingerprint() != test.fingerprint()
    with pytest.raises(DataError, match="test part: no rows"):
        split_by(source, np.zeros(N, bool))


@pytest.mark.parametrize("seed", range(5))
def test_large_structures_stay_in_training(seed):
    sizes = np.concatenate([[600, 250], np.random.default_rng(seed).integers(1, 12, 150)])
    groups = np.repeat(np.arange(sizes.size), sizes)
    groups = groups[np.random.default_rng(seed).permutation(groups.size)]
    is_test = held_out_structures(groups, 0.2, seed, "rows")
    assert {*groups[is_test]}.isdisjoint(groups[~is_test])
    assert {0, 1}.isdisjoint(groups[is_test])
    assert 0.17 < is_test.mean() < 0.23
    np.testing.assert_array_equal(is_test, held_out_structures(groups, 0.2, seed, "rows"))
    assert (is_test != held_out_structures(groups, 0.2, seed + 1, "rows")).any()


@pytest.mark.parametrize("sizes", [[5, 5, 5, 5], [40, 40, 1, 1, 1], [50, 30, 1]])
def test_large_structures_are_held_out_where_there_are_few_others(sizes):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    for seed in range(5):
        expected = held_out_groups(groups, 0.3, seed, "rows")
        np.testing.assert_array_equal(held_out_structures(groups, 0.3, seed, "rows"), expected)
