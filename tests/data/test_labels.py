"""Labels in memory: their types, and those that are large."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from chimap import HistogramClassifier, LookupClassifier, OnlineIntersectionClassifier, open_source
from chimap._validation import DataError
from chimap.data import DataWarning, labels
from chimap.data.labels import LabelColumn, check_labels, clean_labels, clean_targets, task_column
from chimap.recipe.task import checked_groups


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
    if kind not in ("months", "numbers as categories"):  # which polars lacks
        labels = open_source(pl.from_pandas(frame), "kind").labels()
        assert [*map(str, labels)] == [*map(str, text.labels())]


TWICE = pd.to_datetime(["2024-10-27 00:30", "2024-10-27 01:30"] * 3, utc=True).tz_convert("Europe/Berlin")
TWICE_TEXT = ["2024-10-27 02:30:00+01:00", "2024-10-27 02:30:00+02:00"]  # when clocks are set back
MONTHS = pd.PeriodIndex(["2024-01", "2024-02"] * 3, freq="M")
KINDS = {
    "days": (pd.Series(pd.to_datetime(["2024-01-01", "2024-01-02"] * 3)), ["2024-01-01", "2024-01-02"]),
    "midnight and noon": (
        np.array(["2024-01-01T00", "2024-01-01T12"] * 3, "M8[s]"),
        ["2024-01-01", "2024-01-01 12:00:00"],
    ),
    "zone": (pd.Series(TWICE), TWICE_TEXT),
    "zone in an index": (TWICE, TWICE_TEXT),
    "zone in a list": ([*TWICE], TWICE_TEXT),
    "zone in categories": (pd.Series(TWICE, dtype="category"), TWICE_TEXT),
    "zone of polars": (pl.Series(TWICE.to_pydatetime().tolist()).dt.convert_time_zone("Europe/Berlin"), TWICE_TEXT),
    "zone of Arrow": (pa.array(TWICE), TWICE_TEXT),
    "zone in a dictionary": (pa.array(TWICE).dictionary_encode(), TWICE_TEXT),
    "months": (pd.Series(MONTHS), ["2024-01", "2024-02"]),
    "months in categories": (pd.Series(MONTHS, dtype="category"), ["2024-01", "2024-02"]),
    "intervals": (pd.Series(pd.cut([0.5, 1.5] * 3, [0, 1, 2])), ["(0, 1]", "(1, 2]"]),
    "durations": (np.array([90, 86400] * 3, "m8[s]"), ["0 days 00:01:30", "1 days"]),
    "durations of Python": (
        [timedelta(days=-1, microseconds=5), timedelta(2)] * 3,
        ["-1 days +00:00:00.000005", "2 days"],
    ),
    "words": (pd.Series(["a ", "b"] * 3, dtype="category"), ["a", "b"]),
    "decimals": ([Decimal("0.50"), Decimal(2)] * 3, ["0.5", "2.0"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_labels_and_groups_are_of_every_type_that_frames_have(kind):
    values, expected = KINDS[kind]
    assert sorted({*map(str, clean_labels(values, 6, "y"))}) == expected
    assert sorted({*checked_groups(values, 6)}) == [0, 1]
    if isinstance(values, pa.Array):
        frame = pa.table({"a": np.arange(6.0) ** 2, "b": np.ones(6), "kind": values})
    else:
        library = pl if isinstance(values, pl.Series) else pd
        frame = library.DataFrame({"a": np.arange(6.0) ** 2, "b": np.ones(6), "kind": values})
    assert sorted({*map(str, open_source(frame, "kind").labels())}) == expected
    assert sorted({*map(str, open_source(frame, aside="kind").column("kind"))}) == expected
    if kind != "decimals":  # which are targets
        model = HistogramClassifier("linear", alpha=1.0).fit(np.arange(12.0).reshape(6, 2), values)
        assert [*map(str, model.classes_)] == expected


@pytest.mark.parametrize("value", [["a", "b"], ("a",), {"a"}, {"a": 1}])
def test_a_label_is_a_single_value(value):
    labels = np.fromiter([value, value], dtype=object, count=2)
    with pytest.raises(DataError, match=r"y, row 0: (list|tuple|set|dict), .*a matrix of 0 and 1"):
        clean_labels(labels, 2, "y")


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


NOTHING = [None, None]
BATCHES = {
    "true and false": ([NOTHING, [True, False], np.ma.masked_all(1)], [None, None, True, False, None]),
    "whole numbers": ([np.array([1], np.int8), [True], NOTHING, np.array([2**53 + 1])], [1, 1, None, None, 2**53 + 1]),
    "whole numbers with a gap": ([[1.0], [np.nan, 3.0]], [1, None, 3]),
    "fractions": ([[1], [2.5, None]], [1.0, 2.5, None]),
    "text": ([np.array([np.nan]), [" a", ""], np.array([b"a"]), NOTHING], [None, "a", None, "a", None, None]),
}


@pytest.mark.parametrize("kind", BATCHES)
def test_batches_of_any_type_make_one_column(kind):
    batches, expected = BATCHES[kind]
    column = LabelColumn("y")
    for batch in batches:
        column.add(batch)
    assert column.n_rows == len(expected)
    found = column.finish().tolist()
    assert found == expected
    assert [*map(type, found)] == [*map(type, expected)]


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([["a", "b"], [None, 7]], "y, row 3: 7. Labels must be all text or all numbers"),
        ([[1, 2], ["", "a"]], "y, row 3: 'a'. Labels must be all text or all numbers"),
        ([[1], [2.0, np.inf]], "y, row 2: inf is no finite number"),
        ([[1], np.array([2, 2**64 - 1], np.uint64)], "y, row 2: 18446744073709551615 does not fit in 64 bits"),
        ([[1], np.array([1j])], "y: expected numbers or text, got dtype complex128"),
    ],
)
def test_a_batch_that_does_not_fit_names_the_row_of_the_column(batches, message):
    column = LabelColumn("y")
    column.add(batches[0])
    with pytest.raises(DataError, match=message):
        column.add(batches[1])


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


SPELT = ["T", "t ", " T", "N", "t", "N"] * 4
SPELT_READERS = {
    "array": lambda folder: (np.tile(np.arange(12.0).reshape(6, 2), (4, 1)), SPELT),
    "frame": lambda folder: (pd.DataFrame({"a": np.arange(24.0) ** 2, "b": 1.0, "site": SPELT}), "site"),
    "polars": lambda folder: (pl.DataFrame({"a": np.arange(24.0) ** 2, "b": np.ones(24), "site": SPELT}), "site"),
    "csv": lambda folder: (spelt_file(folder, "rows.csv", "to_csv", index=False), "site"),
    "parquet": lambda folder: (spelt_file(folder, "rows.parquet", "to_parquet"), "site"),
    "feather": lambda folder: (spelt_file(folder, "rows.feather", "to_feather"), "site"),
}


def spelt_file(folder, name, write, **options):
    getattr(SPELT_READERS["frame"](folder)[0], write)(folder / name, **options)
    return folder / name


@pytest.mark.parametrize("reader", SPELT_READERS)
def test_blanks_around_labels_make_no_class_and_case_gets_a_note(reader, tmp_path):
    data, labels = SPELT_READERS[reader](tmp_path)
    source = open_source(data, labels)
    assert sorted({*source.labels().tolist()}) == ["N", "T", "t"]
    (note,) = [note for note in source.notes if "differ in case" in note]
    assert "the labels 'T' (8 rows), 't' (8 rows)" in note


def test_arrays_get_the_notes_on_labels_and_groups_too():
    X = np.random.default_rng(0).poisson(3.0, (24, 3)).astype(float)
    with pytest.warns(DataWarning) as told:
        model = HistogramClassifier("linear", alpha=1.0).fit(X, SPELT, groups=["a", "A", "b", "c"] * 6)
    assert model.classes_.tolist() == ["N", "T", "t"]
    said = [str(warning.message) for warning in told]
    assert sum("the labels 'T' (8 rows), 't' (8 rows) differ" in text for text in said) == 1
    assert sum("the groups 'a' (6 rows), 'A' (6 rows) differ" in text for text in said) == 1


@pytest.mark.parametrize("estimator", [LookupClassifier, OnlineIntersectionClassifier])
def test_every_estimator_takes_a_word_without_the_blanks_around_it(estimator):
    X = np.random.default_rng(0).poisson(3.0, (24, 3)).astype(float)
    assert estimator().fit(X, SPELT).classes_.tolist() == ["N", "T", "t"]
    batches = OnlineIntersectionClassifier().partial_fit(X, SPELT, classes=["N ", "T", "t"])
    assert batches.partial_fit(X, SPELT, classes=["N", "T ", "t"]).classes_.tolist() == ["N", "T", "t"]
