"""Columns of the data that are no bins: groups of rows, parts of a split."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from chimap import open_source
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.data.split import split_source
from tests.histograms import tracks

X, y, groups = tracks(10, 4, 3)
NAMES = np.array([f"s{i}" for i in range(y.size)])
WORDS = np.array([f"t{g}" for g in groups])


def frame():
    return pd.DataFrame({"name": NAMES, **dict(zip("abc", X.T, strict=True)), "kind": y, "film": WORDS})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns")
    frame().to_csv(folder / "rows.csv", index=False)
    frame().to_parquet(folder / "rows.parquet", index=False)
    np.savez(folder / "rows.npz", X=X, y=y, film=groups)
    pd.DataFrame(X).assign(kind=y, film=groups).to_csv(folder / "plain.csv", index=False, header=False)
    shuffled = frame()[["name", "film"]].sample(frac=1, random_state=0)
    shuffled.to_csv(folder / "about.tsv", sep="\t", index=False)
    shuffled[5:].to_csv(folder / "short.tsv", sep="\t", index=False)
    frame().drop(columns=["film", "kind"]).to_csv(folder / "bare.csv", index=False)
    (folder / "films.txt").write_text("\n".join(WORDS))
    return folder


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "frame"])
def test_a_column_of_a_table_is_no_bin_and_is_read_by_name(folder, name):
    data = frame() if name == "frame" else folder / name
    source = open_source(data, "kind", aside="film", id="name")
    assert source.column_names == ("a", "b", "c")
    np.testing.assert_array_equal(source.column("film"), WORDS)
    np.testing.assert_array_equal(source.labels(), y)


def test_arrays_places_and_files(folder):
    np.testing.assert_array_equal(open_source(folder / "rows.npz").column("film"), groups)
    plain = open_source(folder / "plain.csv", "3", aside="4")
    assert plain.n_features == 3
    np.testing.assert_array_equal(plain.column("4"), groups)
    rows = open_source(folder / "rows.npz")
    np.testing.assert_array_equal(rows.column(str(folder / "films.txt")), WORDS)


def test_another_table_is_joined_by_id(folder):
    source = open_source(folder / "bare.csv", id="name")
    np.testing.assert_array_equal(source.column(f"{folder / 'about.tsv'}::film"), WORDS)
    with pytest.raises(DataError, match=r"bare\.csv, row \d+: no value in .*short\.tsv::film"):
        source.column(f"{folder / 'short.tsv'}::film")


def test_rows_that_are_left_out_or_split_off_keep_their_values(tmp_path):
    some = frame().astype({"kind": object})
    some.loc[::3, "kind"] = None
    some.to_csv(tmp_path / "rows.csv", index=False)
    source = open_source(tmp_path / "rows.csv", "kind", aside="film")
    assert source.n_rows < y.size
    np.testing.assert_array_equal(source.column("film"), WORDS[some["kind"].notna()])
    for part in split_source(source, 0.4, 0):
        np.testing.assert_array_equal(part.column("film"), source.column("film")[part.places])


def test_a_missing_value_names_its_row_in_the_file(tmp_path):
    some = frame().astype({"kind": object})
    some.loc[:3, "kind"] = None
    some.loc[[2, 7], "film"] = None
    some.to_csv(tmp_path / "rows.csv", index=False)
    source = open_source(tmp_path / "rows.csv", "kind", aside="film")
    with pytest.raises(DataError, match=r"rows\.csv, row 7: no value in 'film'"):
        source.column("film")


def test_columns_that_are_not_there(folder):
    with pytest.raises((DataError, FileNotFoundError), match="nothing"):
        open_source(folder / "rows.csv", "kind", aside="film").column("nothing")
    with pytest.raises(DataError, match="'film' names a column of a file, but these rows are not read from one"):
        ArraySource(X, y).column("film")


def test_workers_get_no_copy_of_what_was_opened(folder):
    source = open_source(folder / "rows.csv", "kind", aside="film")
    assert pickle.loads(pickle.dumps(source)).read_column is None


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_bin_may_be_called_y_beside_labels_of_several_tasks(tmp_path, ending):
    table = pd.DataFrame(
        {"x": X[:, 0], "y": X[:, 1], "task_a": 1.0 * (y > 0), "task_b": [*([np.nan] * 2), *(1.0 * (y[2:] > 1))]}
    )
    path = tmp_path / f"rows{ending}"
    table.to_csv(path, index=False) if ending == ".csv" else table.to_parquet(path)
    source = open_source(path, "task_*")
    assert source.column_names == ("x", "y")
    assert source.task_names == ("task_a", "task_b")
    assert np.allclose(np.concatenate([chunk.X for chunk in source.chunks(8)]), X[:, :2])
    assert np.array_equal(source.labels(), table[["task_a", "task_b"]], equal_nan=True)
