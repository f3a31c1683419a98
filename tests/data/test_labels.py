"""Labels in memory: their types, and those that are large."""

from __future__ import annotations

import numpy as np
import pytest

from chimap._validation import DataError
from chimap.data import labels
from chimap.data.labels import check_labels, clean_labels, clean_targets, task_column


def test_whole_numbers_without_a_sign():
    largest = np.iinfo(np.int64).max
    found = clean_labels(np.array([0, largest], np.uint64), 2, "y")
    assert found.dtype == np.int64
    assert found.tolist() == [0, largest]
    with pytest.raises(DataError, match="y, row 1: 9223372036854775808 does not fit in 64 bits"):
        clean_labels(np.array([0, largest + 1], np.uint64), 2, "y")


@pytest.mark.parametrize(("limit", "kind"), [(4 * 9 * 3 - 1, "O"), (4 * 9 * 3, "U")])
def test_long_words_are_kept_as_they_are_where_an_array_of_fixed_width_is_large(limit, kind, monkeypatch):
    monkeypatch.setattr(labels, "WIDE_BYTES", limit)
    words = np.array(["gut", "xylophone", "skin"], object)
    found = clean_labels(words, 3, "y")
    assert found.dtype.kind == kind
    assert found.tolist() == words.tolist()


def test_objects_are_numbers_or_text():
    assert clean_labels(np.array([1, 2.5, True], object), 3, "y").tolist() == [1, 2.5, 1]
    with pytest.raises(DataError, match=r"y: .* that exceeds 64 bits\. Labels that exceed 64 bits must be text"):
        clean_labels(np.array([1, 2**70], object), 2, "y")
    with pytest.raises(DataError, match=r"y, row 1: 2\. Labels must be all text or all numbers"):
        clean_labels(np.array(["a", 2], object), 2, "y")


def test_labels_of_several_tasks():
    found = clean_targets([["1", None], [0, " "], [2.5, 3]], 2, "y")
    np.testing.assert_array_equal(found, [[1, np.nan], [0, np.nan], [2.5, 3]])
    assert task_column(np.ma.MaskedArray([1, 2], [False, True]), "y")[0] == 1
    for wrong in (np.zeros((3, 3)), np.zeros(3), np.zeros((3, 1))):
        with pytest.raises(DataError, match=r"y: expected labels of 2 tasks, \(rows, 2\), got shape"):
            clean_targets(wrong, 2, "y")
    with pytest.raises(DataError, match="y, row 2, task 1: inf"):
        clean_targets([[1, 0], [np.nan, 1], [0, np.inf], [np.inf, 0]], 2, "y")
    with pytest.raises(DataError, match="y, row 1, task 0: 'cat'"):
        clean_targets(np.array([[1, 0], ["cat", 1]], object), 2, "y")


@pytest.mark.parametrize("y", [[[1], [0]], np.array([["a"], ["b"]]), np.array([["a"], ["b"]], object)])
def test_a_single_column_is_one_axis(y):
    assert check_labels(y, 2, "y").shape == (2,)


def test_a_row_without_a_label_is_named():
    with pytest.raises(DataError, match="y, row 2: no label"):
        check_labels(["a", "b", None, ""], 4, "y")
    masked = clean_labels(["a", "b", None, ""], 4, "y")
    assert np.ma.getmaskarray(masked).tolist() == [False, False, True, True]
