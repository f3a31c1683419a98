"""Labels in memory: their types, and those that are large."""

from __future__ import annotations

import numpy as np
import pytest

from chimap._validation import DataError
from chimap.data import labels
from chimap.data.labels import check_labels, clean_labels


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


@pytest.mark.parametrize("y", [[[1], [0]], np.array([["a"], ["b"]]), np.array([["a"], ["b"]], object)])
def test_a_single_column_is_one_axis(y):
    assert check_labels(y, 2, "y").shape == (2,)


def test_a_row_without_a_label_is_named():
    with pytest.raises(DataError, match="y, row 2: no label"):
        check_labels(["a", "b", None, ""], 4, "y")
    masked = clean_labels(["a", "b", None, ""], 4, "y")
    assert np.ma.getmaskarray(masked).tolist() == [False, False, True, True]
