"""Bins in a tree: sums over the clades of every rank, what they are called, and what new rows bring."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import chimap.data.table
from chimap import HistogramClassifier, open_source
from chimap._validation import DataError
from chimap.data.clade_sums import CladeSums, over_ranks, summed_as
from chimap.models.predict import outputs_of_source
from chimap.models.schema import RowSchema
from chimap.race.candidates import kernels_worth_trying
from chimap.race.traits import SampleTraits

NAMES = (
    "k__A|p__B|g__D|s__D_one",
    "k__A|p__B|g__D|s__D_two",
    "k__A|p__C|g__E|s__E_one",
    "k__A|p__C|g__F|s__F_one",
    "k__A|p__C|g__F|s__F_two",
)
X = np.array([[1.0, 2.0, 4.0, 8.0, 16.0], [32.0, 0.0, 0.0, 64.0, 0.0]])
SUMS = {
    "phylum::k__A|p__B": [3, 32],
    "phylum::k__A|p__C": [28, 64],
    "genus::k__A|p__B|g__D": [3, 32],
    "genus::k__A|p__C|g__E": [4, 0],
    "genus::k__A|p__C|g__F": [24, 64],
}


def table(names=NAMES, values=X):
    return pd.DataFrame(np.asarray(values), columns=list(names))


def columns_of(source):
    rows = source.take(np.arange(source.n_rows))
    rows = rows.toarray() if sp.issparse(rows) else rows
    return {name: values.tolist() for name, values in zip(source.column_names, rows.T, strict=True)}


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_each_rank_is_a_block_of_sums_and_the_leaves_stay(kind):
    whole = chimap.data.ArraySource(kind(X.astype(np.uint8)), column_names=NAMES)
    view = over_ranks(whole)
    assert columns_of(view) == {**SUMS, **{f"species::{name}": X[:, i].tolist() for i, name in enumerate(NAMES)}}
    assert "2 of rank phylum, 3 of rank genus, 5 of rank species" in view.notes[-1]
    assert "left out: kingdom." in view.notes[-1]
    chunks = [chunk.X for chunk in view.chunks(1)]
    assert all(sp.issparse(chunk) == view.is_sparse for chunk in chunks)
    assert sum(chunk.sum() for chunk in chunks) == 3 * X.sum()
    assert view.fingerprint()["clades"] != CladeSums(whole, {"genus::x": [0]}).fingerprint()["clades"]


def test_counts_of_clades_above_others_are_sums_where_metaphlan_joins_steps():
    with_sums = [*NAMES, "k__A|p__B", "k__A", "age"]
    source = open_source(table(with_sums, np.column_stack([X, X[:, :3]])), rank="all")
    assert {name: values for name, values in columns_of(source).items() if "species" not in name} == SUMS
    # a feature of QIIME that could not be told further holds none of those below its clade
    names = ["k__A; p__B; g__D", "k__A; p__B; g__", "k__A; p__C; g__D"]
    found = columns_of(open_source(table(names, X[:, :3]), rank="all"))
    assert found["phylum::k__A|p__B"] == [3, 32]
    assert found["genus::k__A|p__B|g__D"] == [1, 32]
    assert found["genus::k__A|p__C|g__D"] == [4, 0]  # the same name elsewhere in the tree is another clade
    assert len(found) == 4


def test_ranks_that_divide_alike_are_taken_once_and_a_single_clade_is_refused():
    names = ["k__A|p__B|c__B1|g__D", "k__A|p__C|c__C1|g__E", "k__A|p__C|c__C1|g__F"]
    found = columns_of(open_source(table(names, X[:, :3]), rank="all"))
    assert [name.partition("::")[0] for name in found] == ["phylum"] * 2 + ["genus"] * 3
    with pytest.raises(DataError, match="all bins are of one clade"):
        open_source(table(["k__A|p__B"], X[:, :1]), rank="all")
    with pytest.raises(DataError, match=r"named like k__Bacteria\|p__Firmicutes\|g__Dorea.*as 'a' is not"):
        open_source(table("abcde"), rank="all")
    found = columns_of(open_source(table(["D_0__A;D_1__B", "D_0__A;D_1__C"], X[:, :2]), rank="all"))
    assert [*found] == ["rank D_1::D_0__A|D_1__B", "rank D_1::D_0__A|D_1__C"]


def test_unseen_leaves_of_new_rows_count_in_the_clades_above_them():
    names = open_source(table(), rank="all").column_names
    new = ["k__A|p__C|g__F|s__F_one", "k__A|p__B|g__D|s__D_new", "k__A|p__Z|g__Z|s__Z_new", "age"]
    view = summed_as(chimap.data.ArraySource(X[:, :4], column_names=new), names)
    assert columns_of(view) == {
        "phylum::k__A|p__C": [1, 32],
        "phylum::k__A|p__B": [2, 0],
        "genus::k__A|p__C|g__F": [1, 32],
        "genus::k__A|p__B|g__D": [2, 0],
        "species::k__A|p__C|g__F|s__F_one": [1, 32],
    }
    assert view.notes[-1].endswith("1 bin unknown to the fitted model counts in the clades above it.")
    schema = RowSchema("HistogramClassifier", len(names), names)
    assert columns_of(open_source(table(), like=schema)) == columns_of(open_source(table(), rank="all"))
    with pytest.raises(DataError, match="no clade of rank genus and species that the model knows; it was fitted"):
        open_source(table(["k__A|p__B", "k__A|p__C"], X[:, :2]), like=schema)
    with pytest.raises(DataError, match="no clade of rank phylum and genus and species"):
        open_source(table([name.replace("k__A", "k__Z") for name in NAMES]), like=schema)


def microbes(n=60):
    rng = np.random.default_rng(0)
    shares = rng.lognormal(-4, 2, (n, 40)) * (rng.random((n, 40)) < 0.6)
    y = np.arange(n) % 2
    shares[:, :8] *= 1 + 9 * y[:, None]
    counts = rng.poisson(4000 * shares / shares.sum(axis=1, keepdims=True))
    names = [f"k__A|p__P{i // 20}|g__G{i // 4}|s__S{i}" for i in range(40)]
    return table(names, counts), y


def test_a_model_of_all_ranks_predicts_from_the_leaves_alone():
    counts, y = microbes()
    source = open_source(counts, labels=y, rank="all")
    model = HistogramClassifier("minmax", normalize="l1", blocks={"g": "genus::*", "s": "species::*"}, alpha=0.01)
    model.fit_source(source)
    expected = outputs_of_source(model.fitted, source)
    shuffled = counts[counts.columns[::-1]].assign(age=3)
    for rows in (counts, shuffled):
        np.testing.assert_allclose(outputs_of_source(model.fitted, open_source(rows, like=model)), expected, rtol=1e-6)
    with pytest.raises(DataError, match=r"bins are sums over ranks.*fit on rank='s__'"):
        model.depth(open_source(counts, like=model))
    with pytest.raises(DataError, match="bins are sums over ranks"):
        HistogramClassifier(depth_robust=True).fit_source(source)


def test_ranks_enter_a_race_alone_together_and_without_each():
    source = open_source(microbes()[0], rank="all")
    rows, names = source.take(np.arange(source.n_rows)), source.column_names
    blocks = chimap.data.table.declared_blocks(names)
    few = [spec for spec in kernels_worth_trying(SampleTraits.of(rows, 2, True, blocks)) if spec.blocks]
    assert [spec.title.removeprefix("minmax, log-z rows, ") for spec in few] == [
        "species + genus",
        "species",
        "species + genus + phylum",
        "genus",
        "phylum",
        "genus + phylum",
        "species + phylum",
    ]
    assert [len(columns) for columns in few[2].blocks.values()] == [40, 10, 2]
    many = [spec for spec in kernels_worth_trying(SampleTraits.of(rows, 2, False, blocks)) if spec.blocks]
    assert [spec.title.partition("rows, ")[2] for spec in many] == [
        "species + genus",
        "species",
        "species + genus + phylum",
    ]
    # what rows are like is told by the lowest rank, since all others repeat its counts
    shares = rows / rows[:, :2].sum(axis=1, keepdims=True)
    assert SampleTraits.of(shares, 2, True, blocks).has_shares
    molecules = {name: np.arange(3 * i, 3 * i + 3) for i, name in enumerate(("morgan", "pair"))}
    assert SampleTraits.of(rows[:, :6], 2, True, molecules).ranks is None
