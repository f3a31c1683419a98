"""Files that are not read, and the call that turns each into one that is."""

import gzip
import re
import sqlite3
from contextlib import closing

import numpy as np
import pytest
import scipy.io.arff

from chimap._validation import DataError
from chimap.readers import MorganCounts, open_source
from chimap.readers.remedies import FILES

pandas = pytest.importorskip("pandas")

FRAME = pandas.DataFrame({"a": [1.5, 0.0, 2.0], "b": [0.5, 1.0, 3.0], "kind": ["fox", "hen", "fox"]})


def excel(path):
    pytest.importorskip("openpyxl")
    FRAME.to_excel(path, index=False)


def orc(path):
    pytest.importorskip("pyarrow.orc")
    FRAME.to_orc(path, index=False)


def avro(path):
    pytest.importorskip("polars").DataFrame(FRAME.to_dict("list")).write_avro(path)


def arff(path):
    rows = "\n".join(f"{a},{b}" for a, b in zip(FRAME["a"], FRAME["b"], strict=True))
    path.write_text(f"@RELATION rows\n@ATTRIBUTE a NUMERIC\n@ATTRIBUTE b NUMERIC\n@DATA\n{rows}\n")


def sqlite(path):
    with closing(sqlite3.connect(path)) as connection:
        FRAME.to_sql("rows", connection, index=False)


def matlab(path):
    scipy.io.savemat(path, {"X": FRAME[["a", "b"]].to_numpy()})


WRITERS = {
    ".xlsx": excel,
    ".json": FRAME.to_json,
    ".pkl": FRAME.to_pickle,
    ".dta": lambda path: FRAME.to_stata(path, write_index=False),
    ".orc": orc,
    ".avro": avro,
    ".arff": arff,
    ".mat": matlab,
    ".sqlite": sqlite,
}


def remedy_in(message, remedy):
    """Return the call in a message, which must hold it."""
    assert remedy in message
    return re.split(r", (?:and|with|or|if) ", remedy)[0]


@pytest.mark.parametrize("ending", WRITERS)
def test_the_call_that_is_named_makes_a_file_that_is_read(ending, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"table{ending}"
    WRITERS[ending](path)
    with pytest.raises(DataError, match=rf"table\{ending}: this kind of file is not read as it is") as caught:
        open_source(path)
    call = remedy_in(str(caught.value), FILES[ending].replace("FILE", str(path))).replace("TABLE", "rows")
    names = {"pandas": pandas, "numpy": np, "scipy": scipy, "sqlite3": sqlite3}
    if "polars" in call:
        names["polars"] = pytest.importorskip("polars")
    exec(call, names)
    has_kind = ending not in (".mat", ".arff")
    source = open_source(tmp_path / ("rows.npy" if ending == ".mat" else "rows.parquet"), "kind" if has_kind else None)
    np.testing.assert_array_equal(next(source.chunks(9)).X, FRAME[["a", "b"]])


def test_molecules_in_a_list_of_smiles(tmp_path, monkeypatch):
    pytest.importorskip("rdkit")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "all.smi").write_text("CCO ethanol\nc1ccccc1\tbenzene\n")
    with pytest.raises(DataError, match=r"reading=MoleculeBlocks\('smiles'\)") as caught:
        open_source(tmp_path / "all.smi")
    exec(remedy_in(str(caught.value), FILES[".smi"].replace("FILE", str(tmp_path / "all.smi"))), {"pandas": pandas})
    source = open_source(tmp_path / "rows.csv", reading=MorganCounts("smiles"))
    assert source.row_ids.tolist() == ["ethanol", "benzene"]


@pytest.mark.parametrize("ending", [".loom", ".qzv", ".h5mu", ".rds", ".rdata", ".sdf", ".zip", ".xz"])
def test_other_endings_have_a_remedy_too(ending, tmp_path):
    path = tmp_path / f"rows{ending}"
    path.write_bytes(b"rows")
    with pytest.raises(DataError, match=re.escape(FILES[ending].replace("FILE", str(path)))):
        open_source(path)


@pytest.mark.parametrize("name", ["rows.h5ad.gz", "rows.biom.gz", "rows.parquet.gz", "rows.npy.gz"])
def test_files_that_are_packed_as_a_whole_are_to_be_unpacked(name, tmp_path):
    (tmp_path / name).write_bytes(gzip.compress(b"rows"))
    with pytest.raises(DataError, match=rf"not read as it is.*: gunzip .*{name}"):
        open_source(tmp_path / name)
