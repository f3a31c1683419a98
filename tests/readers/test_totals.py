"""Rows and columns that are the sum of the others: named and left out, by every reader, and never by accident."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from chimap import HistogramClassifier, open_source
from chimap._arrays import to_dense
from chimap.data import DataWarning
from chimap.data.totals import Margin, margin_of

BINS = [*"abcde"]
COUNTS = np.random.default_rng(0).poisson(9, (12, 5))
SITES = ["bog", "meadow"] * 6


def frame(margin, name):
    """A table with the sum of all rows, or of all columns, as one more, perhaps with a name that says so."""
    table = pd.DataFrame(COUNTS, columns=BINS, index=[f"s{row}" for row in range(12)])
    if margin == "column":
        table[name] = table.sum(axis=1)
    sites = [*SITES]
    if margin == "row":
        table.loc[name] = table.sum()
        sites.append(name)
    return table.assign(site=sites).rename_axis("id")


def saved(table, path):
    write = {".csv": "to_csv", ".parquet": "to_parquet", ".feather": "to_feather"}[path.suffix]
    table = table.reset_index() if path.suffix != ".parquet" else table
    getattr(table, write)(path, **({"index": False} if path.suffix == ".csv" else {}))
    return path, "site"


def transposed(table, folder):
    table.T.to_csv(folder / "table.tsv", sep="\t")
    return folder / "table.tsv", "site"


def biom_table(table, folder):
    biom = pytest.importorskip("biom")
    counts = table.drop(columns="site")
    made = biom.Table(counts.to_numpy().T, [*counts.columns], [*counts.index])
    made.add_metadata({name: {"site": site} for name, site in zip(table.index, table["site"], strict=True)})
    return made, "site"


def archive(table, folder):
    counts = table.drop(columns="site")
    np.savez(
        folder / "rows.npz",
        X=np.ascontiguousarray(counts),
        y=table["site"].to_numpy(str),
        feature_names=[*counts.columns],
    )
    return folder / "rows.npz", "::y"


READERS = {
    "csv": lambda table, folder: saved(table, folder / "rows.csv"),
    "parquet": lambda table, folder: saved(table, folder / "rows.parquet"),
    "feather": lambda table, folder: saved(table, folder / "rows.feather"),
    "samples as columns": transposed,
    "biom": biom_table,
    "npz": archive,
    "pandas": lambda table, folder: (table, "site"),
    "polars": lambda table, folder: (pl.from_pandas(table.reset_index()), "site"),
    "arrow": lambda table, folder: (pa.Table.from_pandas(table.reset_index()), "site"),
    "lazy": lambda table, folder: (pl.from_pandas(table.reset_index()).lazy(), "site"),
}


@pytest.mark.parametrize("name", ["Total", "s12"])
@pytest.mark.parametrize("margin", ["row", "column"])
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_leaves_a_total_out_and_says_so(reader, margin, name, tmp_path):
    source = open_source(*READERS[reader](frame(margin, name), tmp_path))
    np.testing.assert_array_equal(to_dense(source.take(np.arange(12))), COUNTS)
    assert source.labels().tolist() == SITES
    (note,) = [note for note in source.notes if "the sum of the others" in note]
    assert ("row 12" if margin == "row" else "column 5") in note
    assert "left out" in note


def test_rows_to_predict_keep_their_places_and_columns_that_were_chosen_stay(tmp_path):
    path, _ = saved(frame("row", "Total"), tmp_path / "rows.csv")
    for source in (open_source(path, "site", with_labels=False), open_source(path, aside="site")):
        assert source.n_rows == 13
        assert any("row 12 ('Total') is the sum of the others: its answer is not" in note for note in source.notes)
    path, _ = saved(frame("column", "Total"), tmp_path / "rows.csv")
    assert open_source(path, "site", columns=[*BINS, "Total"]).n_features == 6


def test_arrays_are_fitted_as_they_are_with_a_note():
    table = frame("row", "Total")
    with pytest.warns(DataWarning, match="array: row 12 is the sum of the others. If it is no sample"):
        model = HistogramClassifier("linear", alpha=1.0).fit(table[BINS].to_numpy(), table["site"])
    assert model.classes_.tolist() == ["Total", "bog", "meadow"]
    table = frame("column", "depth")
    with pytest.warns(DataWarning, match=r"column 5 \('depth'\) is the sum .* leave it out with exclude='depth'"):
        HistogramClassifier("linear", alpha=1.0).fit(table.drop(columns="site"), table["site"])


def test_a_mean_is_a_margin_by_its_name():
    rows = np.vstack([COUNTS, COUNTS.mean(axis=0)])
    names = [*map(str, range(12))]
    assert margin_of(rows, [*names, "Mittelwert"]) == Margin(12, "Mittelwert", "mean")
    assert margin_of(rows, [*names, "12"]) is None
    assert margin_of(rows + np.eye(13, 5), [*names, "mean"]) is None


def test_fractions_that_were_printed_add_up():
    shares = np.random.default_rng(0).dirichlet(np.ones(5), 12).round(4)
    assert margin_of(np.vstack([shares, shares.sum(axis=0)])) == Margin(12, None, "sum")


ACCIDENTS = {
    "one row": [[1, 2, 3, 4]],
    "two equal rows": [[5, 6, 7, 8]] * 2,
    "zeros": np.zeros((6, 4)),
    "three rows, one the sum of two": [[91, 22, 13, 54], [31, 42, 83, 64], [122, 64, 96, 118]],
    "a truth table": [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]],
    "few counts": [[1, 0, 2], [0, 1, 0], [1, 1, 0], [2, 2, 2]],
    "a series of dilutions": np.outer([1, 2, 3, 6], [100, 220, 37, 450]),
    "one bin": [[1000.5], [2000.25], [300.125], [3300.875]],
    "rows of one sum": np.random.default_rng(0).dirichlet(np.ones(5), 12),
    "one row and zeros": np.vstack([np.zeros((4, 5)), [[7, 8, 9, 10, 11]] * 2]),
    "rows alike": np.full((8, 5), 3.5),
}


@pytest.mark.parametrize("kind", ACCIDENTS)
def test_sums_by_accident_are_rows(kind):
    rows = np.asarray(ACCIDENTS[kind], dtype=float)
    assert margin_of(rows) is None
    assert open_source(rows, [0, 1] * (len(rows) // 2) + [0] * (len(rows) % 2)).n_rows == len(rows)


@pytest.mark.parametrize("n_others", [1, 2])
def test_the_name_of_a_total_needs_two_others(n_others):
    rows = np.vstack([COUNTS[:n_others], COUNTS[:n_others].sum(axis=0)])
    assert (margin_of(rows, [*"ab"[:n_others], "Summe:"]) is not None) == (n_others == 2)
    assert margin_of(rows + np.eye(n_others + 1, 5), [*"ab"[:n_others], "Total"]) is None
