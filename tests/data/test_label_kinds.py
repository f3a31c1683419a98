"""What labels are, text or numbers, and how both are compared."""

import numpy as np
import pytest

from chimap import HistogramClassifier, open_source
from chimap._validation import DataError
from chimap.data import ArraySource, labels
from chimap.data.label_kinds import (
    alike,
    as_targets,
    check_binary,
    is_real,
    is_text,
    known_labels,
    label_type,
    places_among,
    stands_for_missing,
    texts_of,
    why_text,
)
from chimap.data.labelled import with_numbers
from chimap.data.labels import LabelColumn
from chimap.readers.row_file import RowFile

from ..readers.small_sources import COUNTS, LABELS, N_ROWS


@pytest.mark.parametrize(
    "words",
    [
        ["0", "-7", "12"],
        ["0.50", "-0.00", "0.00", "3."],
        [".5", "-.25"],
        ["1e-05", "1E+16", "2"],
        ["-0", "1"],
        [],
        ["1.5e3", "-1.0E-5"],
        ["9223372036854775807", "-9223372036854775808"],
    ],
)
def test_words_that_print_numbers(words):
    assert why_text(words) is None


@pytest.mark.parametrize(
    ("words", "word", "reason"),
    [
        (["1", "007"], "007", "would be 7 as a number"),
        (["1", "00"], "00", "would be 0 as a number"),
        (["1", "+1"], "+1", "would be 1 as a number"),
        (["1E5"], "1E5", "would be 100000.0 as a number"),
        (["01.5"], "01.5", "would be 1.5 as a number"),
        (["1_000"], "1_000", "is no finite number"),
        (["١"], "١", "would be 1 as a number"),  # a digit of Arabic
        (["1", "cat"], "cat", "is no finite number"),
        (["1", "inf"], "inf", "is no finite number"),
        (["1.1", "1.10"], "1.10", "would be the same number as '1.1'"),
        (["1.0", "1"], "1", "would be the same number as '1.0'"),
        (["0", "-0.0", "0.0"], "0.0", "would be the same number as '0'"),
        (["9223372036854775808"], "9223372036854775808", "does not fit in 64 bits"),
        (["0.5", "9007199254740993"], "9007199254740993", "would be rounded to 9007199254740992"),
    ],
)
def test_words_that_make_a_column_text(words, word, reason):
    assert why_text(words) == (word, reason)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.array(["a"]), "text"),
        (np.array(["a"], object), "text"),
        (np.array([b"a"]), "text"),
        (np.array(["a"], np.dtypes.StringDType()), "text"),
        (np.array([True]), "true or false"),
        (np.array([1, 2], np.uint8), "whole numbers"),
        (np.array([1.0]), "numbers"),
    ],
)
def test_kinds(values, kind):
    assert label_type(values) == kind
    assert is_text(values) == (kind == "text")
    assert not is_real(values)


def test_text_of_each_kind():
    assert texts_of(np.array([b"a", b"\xc3\xa9"])).tolist() == ["a", "é"]
    assert texts_of(np.array([1.0, 2.0, -3.0])).tolist() == ["1", "2", "-3"]
    assert texts_of(np.array([0.1, 2.0])).tolist() == ["0.1", "2.0"]
    assert texts_of(np.array([True, False])).tolist() == ["True", "False"]
    assert texts_of(np.array([7, 7.0, 7.5, "007", b"x"], object)).tolist() == ["7", "7", "7.5", "007", "x"]
    assert texts_of(np.array([2.0**53, 1.0])).tolist() == ["9007199254740992.0", "1.0"]  # it may be rounded
    assert texts_of(np.array([2.0**53 - 1, 1.0])).tolist() == ["9007199254740991", "1"]
    assert is_real(np.array([0.5, 1.0]))


def test_places_among_classes_in_any_order():
    classes = np.array(["skin", "gut", "10", "9"])
    assert places_among(np.array(["9", "gut", "no", "zz", ""]), classes).tolist() == [3, 1, -1, -1, -1]
    assert places_among(np.array([9, 10, 1]), classes).tolist() == [3, 2, -1]
    assert places_among(np.array(["10", "9", "09"]), np.array([9, 10])).tolist() == [1, 0, -1]
    assert places_among(np.array([9.0, 9.5]), np.array([9, 10])).tolist() == [0, -1]
    assert places_among(np.array(["True", "true"]), np.array([False, True])).tolist() == [1, -1]


def test_known_labels_name_the_row_of_the_file():
    classes = np.array(["a", "b"], object)
    assert known_labels(np.array(["b", "a"]), classes, "y").tolist() == ["b", "a"]
    with pytest.raises(DataError, match=r"y, row 7: label c is not among the 2 classes of the model \(a, b\)\. 2 rows"):
        known_labels(np.array(["a", "c", "d"]), classes, "y", np.array([5, 7, 9]))
    with pytest.raises(DataError, match=r"row 1: label 3 \(whole numbers\) is not among .*\(a, b; text\)"):
        known_labels(np.array([3, 3])[[0, 1]], classes, "y", np.array([1, 2]))
    with pytest.raises(DataError, match=r"\(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \.\.\.\)"):
        known_labels(np.array([99]), np.arange(11), "y")


def test_alike_leaves_what_can_be_compared():
    numbers, text = np.array([1, 2]), np.array(["1", "02"])
    assert alike(numbers, numbers * 1.0)[1].dtype == np.float64
    assert [values.tolist() for values in alike(numbers, text)] == [["1", "2"], ["1", "02"]]


def test_targets_from_text():
    assert as_targets(np.array(["1e3", "007"]), "y").tolist() == [1000, 7]
    with pytest.raises(DataError, match="y, row 0: label 'nan'"):
        as_targets(np.array(["nan", "1"]), "y")
    assert as_targets(np.array([True]), "y").dtype == bool
    with pytest.raises(DataError, match="y, row 4: label 'cat'"):
        as_targets(np.array(["1", "cat"]), "y", np.array([3, 4]))
    view = with_numbers(ArraySource(np.eye(2), ["1", "2.5"]))
    assert view.labels().tolist() == [1, 2.5]
    assert next(view.chunks(2)).y.tolist() == [1, 2.5]
    assert (view.has_object_labels, view.task_names) == (False, None)
    plain = ArraySource(np.eye(2), [1, 2])
    assert with_numbers(plain) is plain


def test_labels_of_tasks_are_0_and_1():
    check_binary(np.array([[0, 1, np.nan], [1, 0, 1]]), "y")
    for bad in (2.0, -1.0, 0.5):
        with pytest.raises(DataError, match=rf"y: .*row 1, task 0 has {bad:g}"):
            check_binary(np.array([[0, 1], [bad, 0]]), "y")


# --- columns of so many numbers that their words are not kept


@pytest.fixture
def few_words(monkeypatch):
    monkeypatch.setattr(labels, "_MOST_WORDS_OF_NUMBERS", 3)


def read(*batches, **settings):
    labels = LabelColumn("rows.csv, column 'y'", **{"as_text": False, **settings})
    for batch in batches:
        labels.add_texts(batch)
    return labels.finish()


@pytest.mark.usefixtures("few_words")
def test_many_numbers_are_read_as_few_are():
    y = read(["1", "2", "9007199254740993", "-4", ""], ["nan", "5", "007"])
    assert y.dtype == np.int64
    assert y.tolist() == [1, 2, 9007199254740993, -4, None, None, 5, 7]
    y = read(["1", "2.5", "3", "4"], ["5", ""], missing="4")
    assert y.tolist() == [1, 2.5, 3, None, 5, None]
    words = read(["a", "b", "c", "d", "1"], ["e"])
    assert words.tolist() == ["a", "b", "c", "d", "1", "e"]
    assert read(["1", "2", "3", "4", "5"], ["06"], as_text=True).tolist() == ["1", "2", "3", "4", "5", "06"]


@pytest.mark.usefixtures("few_words")
@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (["5", "cat"], "row 6: 'cat' among numbers such as '1'"),
        (["5", "inf"], r"row 6: inf is no finite number"),
        (["18446744073709551616"], "row 5: 18446744073709551616 does not fit in 64 bits"),
    ],
)
def test_what_is_no_number_after_many_is_refused(batch, message):
    with pytest.raises(DataError, match=message):
        read(["1", "2", "3", "4", "4"], batch)


def test_blanks_around_a_word_are_no_part_of_it():
    for as_text in (True, False):
        assert read([" a", "a", "  "], as_text=as_text).tolist() == ["a", "a", None]
    assert read(["nan", "NaN"]).mask.all()
    assert read(["nan", "gut"]).tolist() == ["nan", "gut"]


@pytest.mark.parametrize("word", ["NA", " n/a", "#N/A", "Missing: lab stock", "not applicable", "?", "-", "<NA>"])
def test_words_that_stand_for_missing(word):
    assert stands_for_missing(word)


@pytest.mark.parametrize("word", ["", "not bad", "missing link", "nasal", "known", "0", "-1"])
def test_words_that_do_not(word):
    assert not stands_for_missing(word)


# --- labels that nobody needs


def test_rows_to_predict_from_svmlight_may_have_any_label(tmp_path):
    model = HistogramClassifier("chi2", alpha=1.0).fit(COUNTS, LABELS)
    lines = [" ".join(f"{j + 1}:{x:g}" for j, x in enumerate(row)) for row in COUNTS]
    words = ["?", "1,2", "nan", "-1"]
    (tmp_path / "rows.svm").write_text("".join(f"{words[i % 4]} {line} # 3:9\n" for i, line in enumerate(lines)))
    source = open_source(tmp_path / "rows.svm", like=model)
    assert source.labels() is None
    assert not source.has_labels
    expected = model.predict_source(ArraySource(COUNTS))  # sparse sums of float32 are in another order
    np.testing.assert_allclose(model.predict_source(source), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(DataError, match=r"line 1: label '\?'"):
        open_source(tmp_path / "rows.svm", like=model, with_labels=True)


def test_labels_are_read_where_they_are_named_or_asked_for():
    model = HistogramClassifier("chi2", alpha=1.0).fit(COUNTS, LABELS)

    def batches():
        yield COUNTS, LABELS

    assert open_source(batches).labels().tolist() == LABELS.tolist()
    assert open_source(batches, like=model).labels() is None
    assert open_source(batches, like=model, with_labels=True).labels().tolist() == LABELS.tolist()
    assert open_source(batches, with_labels=False).labels() is None
    assert open_source(COUNTS, LABELS, like=model).labels().tolist() == LABELS.tolist()
    assert open_source(COUNTS, LABELS, with_labels=False).labels() is None


@pytest.mark.parametrize("place", [-1, COUNTS.shape[1]])
def test_a_column_without_a_name_is_set_aside(tmp_path, place):
    pytest.importorskip("pyarrow")
    model = HistogramClassifier("chi2", alpha=1.0).fit(COUNTS, LABELS)
    lines = [",".join(map(str, [*row, "" if i % 3 else "x"])) for i, row in enumerate(COUNTS.tolist())]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    source = open_source(tmp_path / "rows.csv", place, like=model, with_labels=False)
    assert (source.n_rows, source.n_features) == COUNTS.shape
    np.testing.assert_allclose(model.predict_source(source), model.predict_source(ArraySource(COUNTS)))


def test_pieces_without_entries():
    file = RowFile(3, 4, 8, np.dtype(np.float32))
    none = np.zeros(0, np.int64)
    file.add(none, none, np.zeros(0))
    file.add(np.array([2]), np.array([1]), np.array([5.0]))
    file.add(none, none, np.zeros(0))
    file.finish()
    assert file.read(0, 3).toarray().tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 5, 0, 0]]


@pytest.mark.parametrize("zero", ["0\t0\t0", "0.0\t0.0\t0.0"])
def test_an_observation_that_no_sample_has(tmp_path, zero):
    (tmp_path / "table.tsv").write_text(f"#OTU ID\ta\tb\tc\notu1\t1\t0\t2\notu2\t{zero}\n")
    source = open_source(tmp_path / "table.tsv")
    assert next(source.chunks(3)).X.toarray().tolist() == [[1, 0], [0, 0], [2, 0]]


# --- weights and groups of rows with an index


def test_weights_and_groups_in_another_order_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        COUNTS, columns=[f"b{j}" for j in range(COUNTS.shape[1])], index=[f"s{i}" for i in range(N_ROWS)]
    )
    weights = pandas.Series(np.arange(N_ROWS) + 1.0, index=frame.index)
    groups = pandas.Series(np.arange(N_ROWS) // 4, index=frame.index)
    model = HistogramClassifier("chi2", alpha=1.0)
    fitted = model.fit(frame, LABELS, sample_weight=weights, groups=groups)
    source = open_source(frame, LABELS)
    calls = [
        lambda: model.fit(frame, LABELS, sample_weight=weights[::-1]),
        lambda: model.fit(frame, LABELS, groups=groups[::-1]),
        lambda: model.fit_source(source, sample_weight=weights[::-1]),
        lambda: model.fit_source(source, groups=groups[::-1]),
        lambda: model.partial_fit(frame, LABELS, classes=[-1, 1], sample_weight=weights[::-1]),
        lambda: fitted.score(frame, LABELS, weights[::-1]),
    ]
    for call in calls:
        with pytest.raises(
            DataError, match=r"(sample_weight|groups) have the same index in another order: row 0 is 's0'"
        ):
            call()
