"""Lazy frames, relations, data sets and loaders as batches, and what is refused with a remedy."""

import io

import numpy as np
import pytest
import scipy.sparse as sp

from chimap._arrays import to_dense
from chimap._validation import DataError
from chimap.estimators import HistogramClassifier
from chimap.readers import open_source

from .ecosystems import IDS, NAMES
from .small_sources import COUNTS, LABELS, N_FEATURES, N_ROWS


def columns(ids=True):
    first = {"sample": IDS} if ids else {}
    return first | {name: COUNTS[:, j].tolist() for j, name in enumerate(NAMES)} | {"label": LABELS.tolist()}


def lazy_frame(data=None):
    return pytest.importorskip("polars").LazyFrame(data or columns())


def relation(data=None):
    duckdb, table = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow").table(data or columns())
    return duckdb.connect().from_arrow(table)


def hugging_face(data=None):
    return pytest.importorskip("datasets").Dataset.from_dict(data or columns())


def hugging_face_iterable(data=None):
    return hugging_face(data).to_iterable_dataset()


def pyarrow_dataset(data=None):
    dataset, table = (pytest.importorskip("pyarrow.dataset"), pytest.importorskip("pyarrow").table(data or columns()))
    return dataset.dataset(table)


TABLES = [lazy_frame, relation, hugging_face, hugging_face_iterable, pyarrow_dataset]


def rows_of(source):
    return np.concatenate([to_dense(chunk.X) for chunk in source.chunks(50)])


@pytest.mark.parametrize("make", TABLES)
def test_rows_labels_ids_and_names(make):
    source = open_source(make())
    np.testing.assert_array_equal(rows_of(source), COUNTS)
    np.testing.assert_array_equal(rows_of(source), COUNTS)
    np.testing.assert_array_equal(source.labels(), LABELS)
    assert source.column_names == tuple(NAMES)
    assert source.row_ids.tolist() == IDS


def test_a_column_of_lists():
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"histogram": COUNTS.tolist(), "kind": [f"k{y}" for y in LABELS]})
    source = open_source(data, "kind")
    np.testing.assert_array_equal(rows_of(source), COUNTS)
    assert source.labels().tolist() == [f"k{y}" for y in LABELS]
    assert source.n_features == N_FEATURES


def test_decimals_are_numbers():
    duckdb = pytest.importorskip("duckdb")
    source = open_source(duckdb.connect().sql("select range * 1.5 as a, range % 2 as y from range(10)"))
    np.testing.assert_array_equal(rows_of(source)[:, 0], 1.5 * np.arange(10))


@pytest.mark.parametrize(
    ("data", "labels", "message"),
    [
        ({"a": [1.0, None], "y": [0, 1]}, None, "LazyFrame, batch 0, row 1: null in column 'a'"),
        ({"a": [1.0, 2.0], "b": ["u", "v"]}, None, "'b' is .*string.* leave it out with exclude="),
        ({"a": [1.0, 2.0]}, "kind", "no column 'kind' for labels; there are a"),
        ({"a": [1.0, 2.0], "y": [None, None]}, None, "every label is missing"),
        ({"a": [1.0, float("nan")], "b": [1, 2], "y": [0, 1]}, None, "LazyFrame, row 1, column 'a': NaN"),
        ({"no": [1, 2, 3], "b": [1, 2, 2], "y": [0, 1, 1]}, None, "column, 'no', counts the rows"),
        ({"a": [[1.0, 2.0], [1.0]], "y": [0, 1]}, None, "LazyFrame, batch 0, row 1: 1 values in 'a', expected 2"),
    ],
)
def test_tables_that_do_not_fit(data, labels, message):
    polars = pytest.importorskip("polars")
    with pytest.raises(DataError, match=message):
        open_source(polars.LazyFrame(data), labels)


@pytest.mark.parametrize("make", TABLES)
def test_the_table_that_was_fitted_is_predicted_and_its_other_columns_are_ignored(make):
    more = {"donor": [f"d{i % 3}" for i in range(N_ROWS)], "site": [f"s{y}" for y in LABELS]}
    table = make(columns() | more)
    source = open_source(table, "site", exclude="donor,label")
    assert source.column_names == tuple(NAMES)
    model = HistogramClassifier("chi2", random_state=0).fit_source(source)
    outputs = model.predict_source(source)
    np.testing.assert_array_equal(model.predict(table), model.labels_of(outputs))
    np.testing.assert_array_equal(model.predict_proba(table), model.probabilities_of(outputs))
    assert len(model.explain(table).contributions) == N_ROWS
    assert open_source(table, "site", like=model).column_names == tuple(NAMES)


@pytest.mark.parametrize("make", TABLES)
def test_columns_are_chosen_before_their_types_are_checked(make):
    plain = columns() | {"donor": [f"d{i % 3}" for i in range(N_ROWS)]}
    for choice in ({"exclude": "donor"}, {"aside": "donor"}, {"columns": ",".join(NAMES)}, {"columns": NAMES}):
        source = open_source(make(plain), "label", **choice)
        assert (source.column_names, source.row_ids.tolist()) == (tuple(NAMES), IDS)
        np.testing.assert_array_equal(rows_of(source), COUNTS)
    assert open_source(make(plain), "label", aside="donor").column("donor").tolist() == plain["donor"]
    first = NAMES[0]
    named = open_source(make(plain), "label", id="sample", columns=first)
    assert (named.column_names, named.row_ids.tolist()) == ((first,), IDS)
    with pytest.raises(DataError, match="comes twice"):
        open_source(make(plain), "label", id="donor")
    with pytest.raises(DataError, match="no column 'nothing'"):
        open_source(make(plain), "label", columns="nothing")


def test_text_that_repeats_does_not_name_the_rows():
    polars = pytest.importorskip("polars")
    table = polars.LazyFrame({"site": ["u", "v", "u"], "a": [1, 2, 4], "y": [0, 1, 1]})
    with pytest.raises(DataError, match=r"'site' is .*string"):
        open_source(table)
    assert open_source(table, exclude="site").row_ids is None
    with pytest.raises(DataError, match="column 'site', row 1: no id"):
        open_source(polars.LazyFrame({"site": ["u", None], "a": [1, 2]}), id="site")


def test_class_labels_are_their_names():
    datasets = pytest.importorskip("datasets")
    features = {"a": datasets.Value("float32"), "label": datasets.ClassLabel(names=["cat", "dog", "hen"])}
    data = datasets.Dataset.from_dict({"a": [1, 2, 3, 5], "label": [2, 0, -1, 1]}, features=datasets.Features(features))
    for table in (data, data.to_iterable_dataset()):
        source = open_source(table)
        assert source.labels().tolist() == ["hen", "cat", "dog"]
        assert source.n_left_out == 1  # -1 stands for no label
    model = HistogramClassifier("chi2", random_state=0).fit(data, "label")
    assert model.classes_.tolist() == ["cat", "dog", "hen"]


def test_rows_without_a_label_are_left_out_and_told(monkeypatch):
    polars = pytest.importorskip("polars")
    monkeypatch.setattr("chimap.readers.batches.BATCH", 2)
    data = {"a": [1.0, 2.0, 4.0, 3.0, 5.0], "b": [1.0] * 5, "kind": ["u", "v", None, None, "u"]}
    source = open_source(polars.LazyFrame(data), "kind")
    assert source.labels().tolist() == ["u", "v", "u"]
    assert any("2 of 5 rows have no label and are left out" in note for note in source.notes)
    np.testing.assert_array_equal(rows_of(source)[:, 0], [1, 2, 5])
    model = HistogramClassifier("chi2", random_state=0).fit(polars.LazyFrame(data), "kind")
    assert (model.n_rows_, len(model.predict(polars.LazyFrame(data)))) == (3, 5)


@pytest.mark.parametrize("make", TABLES)
def test_a_bin_that_may_not_be_negative_is_named(make):
    plain = columns()
    model = HistogramClassifier("chi2", random_state=0).fit(make(plain), "label")
    wrong = plain | {NAMES[2]: [*plain[NAMES[2]][:4], -1, *plain[NAMES[2]][5:]]}
    for use in (model.predict, lambda table: HistogramClassifier("chi2").fit(table, "label")):
        with pytest.raises(DataError, match=f"row 4, column '{NAMES[2]}': -1"):
            use(make(wrong))


def test_a_scanner_of_pyarrow():
    source = open_source(pyarrow_dataset().scanner(batch_size=30))
    np.testing.assert_array_equal(rows_of(source), COUNTS)
    np.testing.assert_array_equal(source.labels(), LABELS)


def test_lists_beside_other_columns_are_the_bins():
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict(
        {"histogram": COUNTS.tolist(), "kind": [f"k{y}" for y in LABELS], "depth": COUNTS.sum(1).tolist()}
    )
    source = open_source(data, "kind")
    np.testing.assert_array_equal(rows_of(source), COUNTS)
    assert any("depth set aside" in note for note in source.notes)
    model = HistogramClassifier("chi2", random_state=0).fit(data, "kind")
    assert model.predict(data).shape == (N_ROWS,)


def loader(shuffle=False, labels=True):
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor(COUNTS), torch.tensor(LABELS)][: 1 + labels]
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*tensors), 20, shuffle=shuffle)


def test_a_loader_of_torch():
    source = open_source(loader())
    np.testing.assert_array_equal(rows_of(source), COUNTS)
    np.testing.assert_array_equal(source.labels(), LABELS)
    assert open_source(loader(labels=False)).labels() is None
    with pytest.raises(DataError, match="shuffle=False"):
        open_source(loader(shuffle=True))


def test_an_estimator_takes_them():
    frame = lazy_frame()
    model = HistogramClassifier("chi2", random_state=0).fit(frame, "label")
    np.testing.assert_array_equal(
        model.predict(frame), HistogramClassifier("chi2", random_state=0).fit(COUNTS, LABELS).predict(COUNTS)
    )


def test_what_is_not_read_says_the_call_that_makes_it_so():
    pyarrow, datasets = pytest.importorskip("pyarrow"), pytest.importorskip("datasets")
    torch = pytest.importorskip("torch")
    reader = pyarrow.table({"a": [1.0]}).to_reader()
    for given, remedy in (
        ((row for row in COUNTS), "give the function that makes it: lambda"),
        ({"a": [1, 2]}, r"pandas\.DataFrame"),
        (reader, r"reader\.read_all\(\)"),
        (datasets.DatasetDict({"train": hugging_face()}), r"dataset\['train'\]"),
        (torch.utils.data.TensorDataset(torch.ones(2, 2)), r"torch\.utils\.data\.DataLoader"),
        (io.BytesIO(b"1,2"), "give the path of the file"),
    ):
        with pytest.raises(DataError, match=remedy):
            open_source(given)
        with pytest.raises(DataError, match=remedy):
            HistogramClassifier("exp-chi2").fit(given, LABELS)


def test_arrays_that_are_dictionaries_are_arrays():
    np.testing.assert_array_equal(rows_of(open_source(sp.dok_matrix(COUNTS.astype(float)))), COUNTS)


def test_all_rows_come_once(monkeypatch):
    monkeypatch.setattr("chimap.readers.batches.BATCH", 10)
    for make in TABLES:
        assert rows_of(open_source(make())).shape == (N_ROWS, N_FEATURES)


@pytest.mark.parametrize("use", ["labels", "column"])
def test_lists_that_dask_has_written_as_text_are_refused(use):
    frames, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    table = pd.DataFrame(
        {"a": np.arange(6.0) ** 2, "b": 1.0, "kinds": [["a", "b"], ["a"]] * 3, "kind": ["(x", "[0"] * 3}
    )
    frame = frames.from_pandas(table, npartitions=2)
    assert open_source(frame, "kind", aside="kinds").labels().tolist() == ["(x", "[0"] * 3
    with pytest.raises(DataError, match=r"column 'kinds': \"\['a'.* is a list that Dask has written as text"):
        open_source(frame, "kinds" if use == "labels" else "kind", aside=["kind", "kinds"]).column("kinds")
