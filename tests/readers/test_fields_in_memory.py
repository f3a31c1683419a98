"""Fields of objects in memory: data frames and data sets with a column of text, and sequences of texts."""

import re

import numpy as np
import pytest

from chimap import HistogramClassifier
from chimap._validation import DataError
from chimap.data import DataWarning
from chimap.readers import NamedCounts, WordCounts, open_source

pandas = pytest.importorskip("pandas")

TEXTS = ["the red fox", "a lazy hen sleeps", "fox and hen", "the barn of the lazy fox"] * 10
KINDS = ["fox", "hen", "fox", "hen"] * 10
FRAME = pandas.DataFrame({"id": [f"text {i}" for i in range(40)], "review": TEXTS, "kind": KINDS})


def polars():
    return pytest.importorskip("polars").DataFrame(FRAME.to_dict("list"))


def arrow():
    return pytest.importorskip("pyarrow").Table.from_pandas(FRAME)


TABLES = {
    "pandas": lambda: FRAME,
    "polars": polars,
    "Arrow": arrow,
    "LazyFrame": lambda: polars().lazy(),
    "duckdb": lambda: pytest.importorskip("duckdb").from_arrow(arrow()),
    "datasets": lambda: pytest.importorskip("datasets").Dataset.from_dict(FRAME.to_dict("list")),
}
SEQUENCES = {
    "list": lambda: TEXTS,
    "tuple": lambda: tuple(TEXTS),
    "array": lambda: np.array(TEXTS),
    "array of objects": lambda: np.array(TEXTS, dtype=object),
    "pandas": lambda: FRAME["review"],
    "pandas, nullable": lambda: FRAME["review"].astype("string"),
    "polars": lambda: polars()["review"],
    "Arrow": lambda: arrow()["review"],
    "datasets": lambda: TABLES["datasets"]()["review"],
}


@pytest.fixture(scope="module")
def model():
    source = open_source(FRAME, "kind", reading=WordCounts("review"))
    return HistogramClassifier("chi2", features="additive").fit_source(source)


@pytest.mark.parametrize("kind", TABLES)
def test_the_column_of_a_table_is_read(kind, model):
    source = open_source(TABLES[kind](), "kind", reading=WordCounts("review"))
    from_list = WordCounts("review").source(TEXTS)
    assert source.column_names == from_list.column_names
    np.testing.assert_array_equal(source.take(np.arange(40)).toarray(), from_list.take(np.arange(40)).toarray())
    assert source.labels().tolist() == KINDS
    assert source.row_ids.tolist() == FRAME["id"].tolist()
    assert source.fingerprint() == open_source(TABLES[kind](), "kind", reading=WordCounts("review")).fingerprint()
    np.testing.assert_array_equal(model.predict(TABLES[kind]()), model.predict(TEXTS))
    assert open_source(TABLES[kind](), "kind", like=model).column_names == from_list.column_names


@pytest.mark.parametrize("kind", SEQUENCES)
def test_models_of_text_take_any_sequence_of_texts(kind, model):
    texts = SEQUENCES[kind]()
    np.testing.assert_array_equal(model.predict(texts), model.predict(TEXTS))
    np.testing.assert_array_equal(model.compile().predict(texts), model.compile().predict(TEXTS))
    assert model.explain(texts).contributions.shape == model.explain(TEXTS).contributions.shape


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("a red fox", r"X is a single text, 'a red fox'; expected a list of them"),
        ([], "list: no records"),
        (FRAME[["id"]], "DataFrame: no column 'review'; there are id"),
        (FRAME[["review", "review"]], "DataFrame: two columns are called 'review'"),
    ],
)
def test_what_is_no_sequence_of_texts_is_refused(X, message, model):
    with pytest.raises(DataError, match=message):
        model.predict(X)
    with pytest.raises(DataError, match=message):
        model.explain(X)


@pytest.mark.parametrize(
    ("X", "blank", "reason"),
    [
        ([None, "fox"], 0, "list: 1 of 2 records cannot be read: record 0 (no text)"),
        (["fox", 3], 1, "record 1 (it is 3, expected text)"),
        (FRAME["review"].where(FRAME.index != 3), 3, "Series: 1 of 40 records cannot be read: record 3 (no text)"),
    ],
)
def test_records_that_cannot_be_read_have_no_answer(X, blank, reason, model):
    with pytest.warns(DataWarning, match=re.escape(reason)):
        answers = model.predict(X)
    assert [row for row, answer in enumerate(answers.tolist()) if answer is None] == [blank]
    with pytest.warns(DataWarning, match="They have no prediction"):
        probabilities = model.predict_proba(X)
    assert np.flatnonzero(np.isnan(probabilities).any(axis=1)).tolist() == [blank]
    with pytest.warns(DataWarning):
        assert not model.predict_set(X)[blank].any()
    others = np.delete(np.arange(len(answers)), blank)
    rest = [text for text in X if isinstance(text, str)]
    assert answers[others].tolist() == model.predict(rest).tolist()


def test_records_that_cannot_be_read_are_left_out_of_scores(model):
    texts = [None, *TEXTS, 3]
    kinds = ["hen", *KINDS, "fox"]
    with pytest.warns(DataWarning, match=r"2 of 42 records cannot be read: record 0 .*They are left out"):
        assert model.score(texts, kinds) == model.score(TEXTS, KINDS)
    weights = np.arange(42.0)
    with pytest.warns(DataWarning):
        assert model.score(texts, kinds, weights) == model.score(TEXTS, KINDS, weights[1:-1])
    with pytest.raises(ValueError, match=r"labels|samples|inconsistent"):
        model.score(texts, kinds[:-1])


def test_rows_of_counts_are_still_rows(model):
    counts = WordCounts("review", tuple(model.feature_names_in_)).source(TEXTS).take(np.arange(40)).toarray()
    expected = model.predict(TEXTS)
    frame = pandas.DataFrame(counts, columns=model.feature_names_in_)
    np.testing.assert_array_equal(model.predict(frame), expected)
    with pytest.warns(UserWarning, match="valid feature names"):
        np.testing.assert_array_equal(model.predict(counts.tolist()), expected)


def test_objects_without_fields_are_refused():
    for wrong in (np.eye(3), FRAME.to_numpy(), 3):
        with pytest.raises(DataError, match=r"holds no fields 'text'\. Give a data frame with this column, a list"):
            open_source(wrong, reading=WordCounts())


def test_labels_in_another_order_are_refused():
    with pytest.raises(DataError, match="the same index in another order"):
        open_source(FRAME, FRAME["kind"].iloc[::-1], reading=WordCounts("review"))


def test_counts_by_name_in_a_column():
    counts = [{"fox": 1, "hen": 2}, {"fox": 3}] * 5
    frame = pandas.DataFrame({"counts": counts, "y": [0, 1] * 5})
    source = open_source(frame, reading=NamedCounts())
    assert source.labels().tolist() == [0, 1] * 5
    model = HistogramClassifier("chi2", features="additive").fit_source(source)
    np.testing.assert_array_equal(model.predict(frame["counts"]), model.predict(frame))
    bins = pandas.DataFrame([[1.0, 2.0], [3.0, 0.0]], columns=["fox", "hen"])
    np.testing.assert_array_equal(model.predict(bins), model.predict(counts[:2]))


def test_the_index_of_pandas_names_the_rows():
    names = [f"row {i}" for i in range(40)]
    frame = FRAME[["review", "kind"]].set_axis(names)
    assert open_source(frame, "kind", reading=WordCounts("review")).row_ids.tolist() == names
    assert open_source(frame["review"], KINDS, reading=WordCounts()).row_ids.tolist() == names
    assert open_source(FRAME["review"], KINDS, reading=WordCounts()).row_ids is None
    by_column = open_source(frame.assign(id=FRAME["id"].to_numpy()), "kind", reading=WordCounts("review"))
    assert by_column.row_ids.tolist() == FRAME["id"].tolist()


@pytest.mark.parametrize("mark", [None, np.nan, "?"])
def test_missing_labels_of_a_frame(mark):
    frame = FRAME.assign(kind=[mark, *KINDS[1:]])
    source = open_source(frame, "kind", reading=WordCounts("review"), missing="?")
    assert source.n_left_out == 1
    assert source.labels().tolist() == KINDS[1:]


@pytest.mark.parametrize("kind", ["pandas", "polars", "Arrow"])
def test_several_columns_of_labels_beside_the_text(kind):
    table = FRAME.assign(task_a=np.arange(40) % 2, task_b=[np.nan, *np.arange(39) % 3])
    table = {
        "pandas": lambda: table,
        "polars": lambda: pytest.importorskip("polars").from_pandas(table),
        "Arrow": lambda: pytest.importorskip("pyarrow").Table.from_pandas(table),
    }[kind]()
    source = open_source(table, "task_*", reading=WordCounts("review"))
    assert source.task_names == ("task_a", "task_b")
    assert source.labels()[:3].tolist()[1:] == [[1, 0], [0, 1]]
    assert np.isnan(source.labels()[0, 1])
    assert "task_a" not in source.column_names


def test_a_column_beside_the_text_is_read_again():
    source = open_source(FRAME, "kind", reading=WordCounts("review"), aside="id")
    assert source.column("id").tolist() == FRAME["id"].tolist()
