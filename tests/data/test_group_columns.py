"""Columns that look like groups, and those that do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from chimap import open_source
from chimap._validation import DataError
from chimap.data.doubts import group_column, looks_like_groups
from tests.histograms import classes, signed_histograms, tracks

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("spread", [0.02, 0.3])
def test_rows_that_are_nearly_equal_are_a_group(make, spread):
    X, y, groups = tracks(spread=spread)
    assert looks_like_groups(make(X), groups, y)
    assert looks_like_groups(make(X), groups)
    assert looks_like_groups(make(X * RNG.uniform(1, 9, (y.size, 1))), groups, y)  # whatever their totals


def test_few_groups_a_class_are_told_where_rows_are_very_near():
    X, y, groups = tracks(9, 10, spread=0.02)
    assert looks_like_groups(X, groups, y)


def test_signed_rows():
    groups = np.repeat(np.arange(20), 5)
    X = signed_histograms(20, 10)[groups] + 1e-3 * RNG.standard_normal((100, 10))
    assert looks_like_groups(X, groups)
    assert not looks_like_groups(X, RNG.permutation(groups))


def test_columns_that_say_nothing_of_likeness_are_no_groups():
    X, y = classes(400)
    assert not looks_like_groups(X, RNG.integers(40, size=400), y)
    assert not looks_like_groups(X, y, y)  # the label itself
    assert not looks_like_groups(X, np.round(100 * X[:, 0]).astype(int), y)  # a measurement


def test_kinds_within_a_class_are_no_groups():
    X, kinds = classes(600, 30, n_classes=10)
    assert not looks_like_groups(X, kinds, kinds % 2)


def test_few_values_must_be_nearer_than_many():
    """Rows of one value are at .6 of the distance to others: enough for many values, and not for five."""
    X, _, groups = tracks(5, 12, spread=0.8)
    assert not looks_like_groups(X, groups)
    X, _, groups = tracks(20, 6, spread=0.6)
    assert looks_like_groups(X, groups)


def test_a_column_of_which_most_values_stand_alone_is_no_group():
    table, groups = frame()
    alone = np.where(np.arange(120) < 48, groups, 1000 + np.arange(120))  # eight groups of six, and 72 others
    assert group_column(open_source(table.assign(track=alone), "kind", aside="track")) is None
    half = np.where(np.arange(120) < 60, groups, 1000 + np.arange(120))
    assert group_column(open_source(table.assign(track=half), "kind", aside="track")) == "track"


def test_a_dense_kind_among_scattered_rows_is_no_group():
    """Its rows are nearest to each other, as most of all rows are by chance; the others are nearest to it."""
    scattered = np.abs(np.eye(30) + 0.3)
    X = np.vstack([1 + 1e-3 * RNG.random((70, 30)), scattered])
    assert not looks_like_groups(X, np.repeat([0, 1], [70, 30]))


@pytest.mark.parametrize("labels", [[f"n{i}" for i in range(120)], np.tile([0.25, 0.75], 60)])
def test_labels_that_are_no_classes_part_no_rows(labels):
    """Names of rows, and numbers: rows of a group that differ in them are compared all the same."""
    table, groups = frame()
    table["kind"] = np.repeat(labels[:1], 120) if len(set(labels)) == 1 else labels
    source = open_source(table.assign(track=groups), "kind", aside="track")
    assert group_column(source) == "track"


def test_rows_that_cannot_be_compared_are_left_to_the_fit():
    X, y, groups = tracks(10, 4)
    assert not looks_like_groups(np.where(X > 0.2, np.nan, X), groups, y)
    assert not looks_like_groups(X[:8], groups[:8], y[:8])
    assert not looks_like_groups(np.zeros((40, 3)), groups, y)


def frame(**more):
    X, y, groups = tracks(20, 6)
    return pd.DataFrame(X, columns=[f"b{i}" for i in range(12)]).assign(kind=y, **more), groups


@pytest.mark.parametrize("ending", ["csv", "parquet", "frame", "npz"])
@pytest.mark.parametrize("is_text", [False, True])
def test_a_column_that_is_set_aside_is_found(tmp_path, ending, is_text):
    table, groups = frame()
    table["depth"] = RNG.integers(30, size=len(table))
    table["track"] = [f"t{g}" for g in groups] if is_text else groups
    path = tmp_path / f"rows.{ending}"
    if ending == "csv":
        table.to_csv(path, index=False)
    elif ending == "parquet":
        table.to_parquet(path, index=False)
    elif ending == "npz":
        names = ["kind", "depth", "track"]
        np.savez(
            path,
            X=np.ascontiguousarray(table.drop(columns=names)),
            **{n: table[n].to_numpy().astype(str) for n in names},
        )
    source = open_source(
        table if ending == "frame" else path, "kind", exclude=None if ending == "npz" else "track,depth"
    )
    assert set(source.columns_aside) == {"depth", "track"}
    assert group_column(source) == "track"


def test_ids_that_repeat_are_groups(tmp_path):
    table, groups = frame()
    films = [f"t{g}" for g in groups]
    table.set_index(pd.Index(films)).to_csv(tmp_path / "rows.csv", index_label="Unnamed: 0")
    source = open_source(tmp_path / "rows.csv", "kind")
    assert source.columns_aside == ("Unnamed: 0",)
    assert group_column(source) == "Unnamed: 0"
    table.assign(film=films).to_csv(tmp_path / "films.csv", index=False)
    with pytest.raises(DataError, match=r"comes twice.*For a column of groups of rows, use groups"):
        open_source(tmp_path / "films.csv", "kind", id="film")


def test_unique_ids_and_columns_with_gaps_are_passed_over(tmp_path):
    table, groups = frame(name=[f"s{i}" for i in range(120)])
    table["track"] = np.where(np.arange(120) == 7, "", [f"t{g}" for g in groups])
    table.to_csv(tmp_path / "rows.csv", index=False)
    source = open_source(tmp_path / "rows.csv", "kind", exclude="name,track")
    assert group_column(source) is None


@pytest.mark.skipif(not DATA.exists(), reason="needs the shared data sets")
@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("hmp_otu_counts.npz", "y_site", "subject"),
        ("hiv_morgan_counts.npz", "y", None),
        ("newsgroups20_counts.npz", "y", None),
        ("caltech101_45_bow.npz", "y", None),
        ("mnist.npz::x_test", "y_test", None),
    ],
)
def test_shared_data(name, labels, expected):
    assert group_column(open_source(DATA / name, labels)) == expected


@pytest.mark.parametrize("rows_each", [5, 200, 1500, 2500])
def test_groups_of_any_number_of_rows_are_compared_with_each_other(rows_each):
    films = np.repeat(np.arange(8), rows_each)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((8, 12))[films] + 0.01 * rng.random((films.size, 12))).add_prefix("bin_")
    frame = frame.assign(film=films, species=rng.permutation(np.array(["cat", "dog"])[films % 2]))
    assert group_column(open_source(frame, "species", aside="film")) == "film"
    assert group_column(open_source(frame.assign(film=rng.permutation(films)), "species", aside="film")) is None
