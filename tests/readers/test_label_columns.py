"""Labels of several tasks by the names of their columns, in every kind of data that has such names."""

import json

import numpy as np
import pandas as pd
import pytest

from chimap import HistogramClassifier
from chimap._validation import DataError
from chimap.readers import open_source

N = 60
X = np.random.default_rng(0).dirichlet(np.ones(4), N)
NAMES = ("a", "b", "c", "d")
IDS = [f"r{i}" for i in range(N)]
T1, T2 = (X[:, 0] > 0.2) * 1.0, (X[:, 1] > 0.2) * 1.0
T2[3] = np.nan
TASKS = np.column_stack([T1, T2])


def frame():
    return pd.DataFrame(X, columns=NAMES).assign(t1=T1, t2=T2, donor=[f"d{i % 3}" for i in range(N)])


def cells():
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame({"t1": T1, "t2": T2, "a": "text"}, index=IDS)  # a is the name of a bin, too
    return anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=list(NAMES)))


def lazy_frame(folder):
    return pytest.importorskip("polars").LazyFrame(frame().replace(np.nan, None)), {"exclude": "donor"}


def relation(folder):
    return pytest.importorskip("duckdb").connect().from_df(frame()), {"exclude": "donor"}


def data_frame(folder):
    return frame(), {"exclude": "donor"}


def parquet(folder):
    frame().to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet", {"exclude": "donor"}


def object_of_cells(folder):
    return cells(), {}


def file_of_cells(folder):
    cells().write_h5ad(folder / "cells.h5ad")
    return folder / "cells.h5ad", {}


def json_lines(folder):
    labels = zip(IDS, T1, T2, X, strict=True)
    records = [
        {"id": id, "counts": dict(zip(NAMES, row, strict=True)), "t1": t1, "t2": None if t2 != t2 else t2}
        for id, t1, t2, row in labels
    ]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, records)))
    return folder / "rows.jsonl", {}


MAKERS = [lazy_frame, relation, data_frame, parquet, object_of_cells, file_of_cells, json_lines]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("words", ["t1,t2", "t?"])
def test_several_columns_are_several_tasks(make, words, tmp_path):
    data, choice = make(tmp_path)
    source = open_source(data, words, **choice)
    np.testing.assert_array_equal(source.labels(), TASKS)
    assert (source.task_names, source.column_names) == (("t1", "t2"), NAMES)
    chunk = next(source.chunks(N))
    np.testing.assert_allclose(chunk.X.toarray() if hasattr(chunk.X, "toarray") else chunk.X, X)


@pytest.mark.parametrize("make", MAKERS)
def test_a_name_that_is_not_there(make, tmp_path):
    data, choice = make(tmp_path)
    with pytest.raises(DataError, match=r"no column 'nothing'.*'t1'"):
        open_source(data, "t1,nothing", **choice)


@pytest.mark.parametrize("name", ["meta.tsv", "meta.csv", "meta.parquet"])
@pytest.mark.parametrize("words", ["t1,t2", "t*"])
def test_several_columns_of_a_table_joined_by_ids(name, words, tmp_path):
    table = pd.DataFrame({"id": IDS, "t1": T1, "t2": T2, "site": "gut"}).iloc[::-1].iloc[:-5]
    path = tmp_path / name
    if name.endswith("parquet"):
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, sep="\t" if name.endswith("tsv") else ",", index=False)
    data, _ = file_of_cells(tmp_path)
    source = open_source(data, f"{path}::{words}")
    np.testing.assert_array_equal(source.labels(), TASKS[5:])
    assert (source.task_names, source.row_ids.tolist()) == (("t1", "t2"), IDS[5:])
    with pytest.raises(DataError, match="no column 'nothing'"):
        open_source(data, f"{path}::t1,nothing")
    with pytest.raises(DataError, match=r"column 'site'.*must be numbers"):
        open_source(data, f"{path}::t1,site")


@pytest.mark.parametrize("make", [lazy_frame, object_of_cells, data_frame])
def test_fit_and_score_take_the_names(make, tmp_path):
    data, choice = make(tmp_path)
    model = HistogramClassifier("chi2", random_state=0).fit_source(open_source(data, "t1,t2", **choice))
    right = ((model.predict(X) == TASKS) | np.isnan(TASKS)).all(axis=1).mean()
    assert model.score(data, "t1,t2") == right
