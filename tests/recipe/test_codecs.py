"""What codecs learn of labels, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from chimap._validation import DataError
from chimap.recipe.codecs import ClassCodec, RealCodec, SeveralCodec, TaskCodec, check_varies, checked_batch, is_matrix

RNG = np.random.default_rng(0)
GAPS = np.where(RNG.random((60, 3)) < 0.2, np.nan, RNG.standard_normal((60, 3)) * [1, 9, 0.1] + [0, 50, -3])


def test_several_targets_are_encoded_with_mean_0_and_deviation_1():
    codec = SeveralCodec.of(GAPS)
    np.testing.assert_allclose(codec.units, np.nanstd(GAPS, axis=0))
    encoded = codec.encode(GAPS)
    np.testing.assert_allclose(np.nanmean(encoded, axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(encoded, axis=0), 1)
    np.testing.assert_allclose((encoded + codec.shift) * codec.units, GAPS)
    assert SeveralCodec.of(np.column_stack([np.ones(9), np.arange(9.0)])).units[0] == 1  # a constant keeps its units


@pytest.mark.parametrize("rare", [0, 1])
@pytest.mark.parametrize(
    ("n_rare", "n_drawn", "fewest", "expected"),
    [
        (4, 20, 2, True),
        (4, 20, 0.5, False),
        (20, 20, 9, True),
        (26, 20, 9, False),
        (4, 1000, 5, True),
        (4, 1000, 4, False),
    ],
)
def test_rare_labels_are_few_in_a_draw_and_in_all(rare, n_rare, n_drawn, fewest, expected):
    """Of 100 rows: fewer than ``fewest`` among those drawn, and fewer than half of what half of all would be."""
    y = np.full(100, 1 - rare)
    y[:n_rare] = rare
    is_rare = np.where(y == rare, expected, False)
    np.testing.assert_array_equal(ClassCodec(np.array([0, 1])).rare(y, n_drawn, fewest), is_rare)
    both = np.column_stack([y, np.arange(100) % 2]).astype(float)
    np.testing.assert_array_equal(TaskCodec.of(both).rare(both, n_drawn, fewest), is_rare)


def test_targets_that_are_numbers_are_never_rare():
    assert not RealCodec.of(GAPS[:, 0][~np.isnan(GAPS[:, 0])]).rare(np.arange(9), 3, 5).any()
    assert not SeveralCodec.of(GAPS).rare(GAPS, 3, 50).any()


@pytest.mark.parametrize(
    ("shape", "expected"), [((5,), False), ((5, 1), False), ((5, 2), True), ((5, 3), True), ((1, 2), True)]
)
def test_a_matrix_has_two_columns_or_more(shape, expected):
    assert is_matrix(np.zeros(shape)) == is_matrix(np.zeros(shape).tolist()) == expected


def test_targets_that_are_all_the_same():
    check_varies(np.array([3.0]))  # of one row, nothing can be said
    check_varies(np.array([3.0, 4.0]))
    with pytest.raises(DataError, match="every target is 3,"):
        check_varies(np.array([3.0, 3.0]))
    with pytest.raises(DataError, match="every target is 3, nan,"):
        check_varies(np.array([[3.0, np.nan], [3.0, np.nan]]))


def test_batches_have_the_tasks_of_the_first():
    pairs = np.array([[0.0, 1.0], [1.0, np.nan]])
    assert checked_batch(pairs, None).shape == (2, 2)
    assert checked_batch(pairs, TaskCodec(2, True)).shape == (2, 2)
    assert checked_batch([0, 1], ClassCodec(np.array([0, 1]))) == [0, 1]
    with pytest.raises(DataError, match=r"y has 1 task\(s\), but the batches before have 2"):
        checked_batch([0, 1], TaskCodec(2, False))
    with pytest.raises(DataError, match="y has 2 tasks, but the batches before have one label"):
        checked_batch(pairs, ClassCodec(np.array([0, 1])))
