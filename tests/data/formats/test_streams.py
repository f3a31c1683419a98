"""Lazy frames, relations, data sets and loaders as batches, and what is refused with a remedy."""

import io

import numpy as np
import pytest
import scipy.sparse as sp

from chimap._arrays import to_dense
from chimap._validation import DataError
from chimap.data import open_source
from chimap.estimators import HistogramClassifier

from ..small_sources import COUNTS, LABELS, N_FEATURES, N_ROWS
from .ecosystems import IDS, NAMES


def columns(ids=True):
    first = {"sample": IDS} if ids else {}
    return first | {name: COUNTS[:, j].tolist() for j, name in enumerate(NAMES)} | {"label": LABELS.tolist()}


def lazy_frame():
    return pytest.importorskip("polars").LazyFrame(columns())


def relation():
    duckdb, table = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow").table(columns())
    return duckdb.connect().from_arrow(table)


def hugging_face():
    return pytest.importorskip("datasets").Dataset.from_dict(columns())


def hugging_face_iterable():
    return hugging_face().to_iterable_dataset()


def pyarrow_dataset():
    dataset, table = pytest.importorskip("pyarrow.dataset"), pytest.importorskip("pyarrow").table(columns())
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
        ({"a": [1.0, None], "y": [0, 1]}, None, "LazyFrame, batch 0: nulls in column 'a'"),
        ({"a": [1.0, 2.0], "b": ["u", "v"]}, None, "'b' is .*string.* Select the columns first"),
        ({"a": [1.0, 2.0]}, "kind", "no column 'kind' for labels; there are a"),
        ({"a": [1.0, 2.0], "y": [None, 1]}, None, "labels 'y' are missing in some rows"),
        ({"a": [[1.0, 2.0], [1.0]], "y": [0, 1]}, None, "lists of different lengths in 'a'"),
    ],
)
def test_tables_that_do_not_fit(data, labels, message):
    polars = pytest.importorskip("polars")
    with pytest.raises(DataError, match=message):
        open_source(polars.LazyFrame(data), labels)


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
    monkeypatch.setattr("chimap.data.formats.streams.BATCH", 10)
    for make in TABLES:
        assert rows_of(open_source(make())).shape == (N_ROWS, N_FEATURES)
