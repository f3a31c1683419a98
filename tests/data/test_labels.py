"""Labels in memory: their types, and those that are large."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from chimap import open_source
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


TYPED = {
    "a category": pd.Categorical(["a", "b", None, "a"]),
    "numbers as categories": pd.Categorical([1, 2, None, 1]),
    "true and false": pd.array([True, False, None, True], "boolean"),
    "whole numbers": pd.array([1, 2, None, 1], "Int64"),
    "fractions": pd.array([1.5, 2, None, 1], "Float64"),
    "days": pd.to_datetime(["2024-01-01", "2024-01-02", None, "2024-01-01"]),
    "times": pd.to_datetime(["2024-01-01 10:00", "2024-01-02 00:30", None, "2024-01-01 10:00"]).tz_localize("UTC"),
    "months": pd.PeriodIndex(["2024-01", "2024-02", None, "2024-01"], freq="M"),
    "durations": pd.to_timedelta([1, 2, None, 1], unit="D"),
    "dates of Python": np.array([date(2024, 1, 1), date(2024, 1, 2), None, date(2024, 1, 1)], object),
    "decimals": np.array([Decimal("1.5"), Decimal("2"), None, Decimal("1.5")], object),
}


@pytest.mark.parametrize("kind", TYPED)
def test_typed_columns_of_a_frame_have_the_names_of_a_text_file(kind, tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 3.0], "b": [2.0, 2.0, 0.0, 1.0], "kind": TYPED[kind]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    typed, text = open_source(frame, "kind"), open_source(tmp_path / "rows.csv", "kind")
    assert typed.n_left_out == text.n_left_out == 1
    assert [*map(str, typed.labels())] == [*map(str, text.labels())]
    if kind not in ("months", "durations", "times", "numbers as categories"):  # which polars lacks or writes otherwise
        labels = open_source(pl.from_pandas(frame), "kind").labels()
        assert [str(label).removesuffix(" 00:00:00") for label in labels] == [*map(str, text.labels())]


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
