"""Lineages of BIOM tables: the taxonomy in the metadata of observations, where ids are none."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from chimap import HistogramClassifier, load, open_source
from chimap._validation import DataError

biom = pytest.importorskip("biom")
h5py = pytest.importorskip("h5py")

LISTS = [
    ["k__Bacteria", "p__Firmicutes", "g__Dorea", "s__"],
    ["k__Bacteria", "p__Firmicutes", "g__Dorea", "s__longicatena"],
    ["k__Bacteria", "p__Firmicutes", "g__Roseburia", "s__"],
    ["k__Bacteria", "p__Bacteroidetes", "g__Prevotella", "s__copri"],
    ["Unassigned", "", "", ""],
]
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(20.0, (24, 5)).astype(float)
COUNTS[::2, 3] += 40
Y = np.tile(["sick", "well"], 12)
GENERA = {
    "genus::k__Bacteria|p__Firmicutes|g__Dorea": COUNTS[:, 0] + COUNTS[:, 1],
    "genus::k__Bacteria|p__Firmicutes|g__Roseburia": COUNTS[:, 2],
    "genus::k__Bacteria|p__Bacteroidetes|g__Prevotella": COUNTS[:, 3],
}


def table(taxonomies=LISTS, ids=None, counts=COUNTS):
    ids = ids or [f"OTU{i}" for i in range(len(taxonomies))]
    metadata = [{"taxonomy": each} for each in taxonomies]
    return biom.Table(counts.T, ids, [f"s{i}" for i in range(len(counts))], metadata)


def hdf5(folder, made):
    with h5py.File(folder / "table.biom", "w") as file:
        made.to_hdf5(file, "a test")
    return folder / "table.biom"


def json_file(folder, made):
    path = folder / "table.biom"
    path.write_text(made.to_json("a test"))
    return path


FORMS = {"json": json_file, "hdf5": hdf5, "object": lambda folder, made: made}


def columns_of(source):
    rows = source.take(np.arange(source.n_rows))
    rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
    return dict(zip(source.column_names, rows.T, strict=True))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("joined", [False, True], ids=["lists", "texts"])
def test_observations_are_summed_over_a_rank(tmp_path, form, joined):
    made = table(["; ".join(each) for each in LISTS] if joined else LISTS)
    source = open_source(FORMS[form](tmp_path, made), Y, rank="genus")
    found = columns_of(source)
    assert found.keys() == GENERA.keys()
    for name, values in GENERA.items():
        np.testing.assert_array_equal(found[name], values)
    assert "3 of rank genus. 1 bin that no such clade holds, left out" in source.notes[-1]
    every = open_source(FORMS[form](tmp_path, made), Y, rank="all")
    assert {name.partition("::")[0] for name in every.column_names} == {"phylum", "genus", "species"}
    plain = open_source(FORMS[form](tmp_path, made), Y)
    assert plain.column_names == tuple(f"OTU{i}" for i in range(5))


def test_models_of_a_rank_sum_new_tables_and_take_depth(tmp_path):
    model = HistogramClassifier("chi2", normalize="l1", alpha=0.1).fit_source(open_source(table(), Y, rank="g__"))
    model.save(tmp_path / "genera.model")
    again = load(tmp_path / "genera.model")
    others = table(LISTS[::-1], ids=["a", "b", "c", "d", "e"], counts=COUNTS[:, ::-1])
    expected = model.predict(np.column_stack([*GENERA.values()]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (again.predict(others) == expected).all()
    assert (again.predict(open_source(hdf5(tmp_path, others), like=again)) == expected).all()
    assert model.depth(others).totals.tolist() == COUNTS[:, :4].sum(axis=1).tolist()


def test_steps_without_prefixes_are_ranks_in_their_order():
    plain = [["Bacteria", "Firmicutes", "Clostridia", "Clostridiales", "Lachnospiraceae", "Dorea"]] * 2
    plain += [["Bacteria", "Firmicutes", "Clostridia", "Clostridiales", "Lachnospiraceae", "Roseburia"]]
    source = open_source(table(plain, counts=COUNTS[:, :3]), Y, rank="genus")
    assert [name.rpartition("|")[2] for name in source.column_names] == ["g__Dorea", "g__Roseburia"]


def test_what_has_no_such_rank_is_said():
    with pytest.raises(DataError, match="no clade of rank='family'; lineages have kingdom, phylum, genus, species"):
        open_source(table(), Y, rank="family")
    with pytest.raises(DataError, match="rank='k__': all bins are of one clade"):
        open_source(table(), Y, rank="k__")
    with pytest.raises(DataError, match="no column is named like k__Bacteria"):
        open_source(table([None] * 5), Y, rank="genus")


def test_ids_that_are_lineages_stay():
    ids = ["; ".join(each[:3]) + f"; s__{i}" for i, each in enumerate(LISTS[:4])]
    source = open_source(table(LISTS[:4], ids=ids, counts=COUNTS[:, :4]), Y)
    assert source.lineages is None
    assert source.column_names == tuple(ids)
