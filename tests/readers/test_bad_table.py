"""Every kind of file against every kind of damage: one table. Each is refused with the file, and what to do.

What a single reader does with places inside of a file is in ``test_bad_files.py`` and in ``formats/``.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from chimap._validation import DataError
from chimap.readers import MorganCounts, WordCounts, open_source

from . import ecosystems
from .ecosystems import IDS, NAMES
from .small_sources import COUNTS, LABELS, N_ROWS

SITES = np.where(LABELS > 0, "tree", "fish")
SPARSE = sp.csr_matrix(COUNTS.astype(np.float32))


def frame(ids=IDS):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(COUNTS.astype(float), columns=NAMES)
    table.insert(0, "sample", ids)
    return table.assign(site=SITES)


def text_table(folder):
    frame().to_csv(folder / "rows.csv", index=False)


def tab_table(folder):
    frame().to_csv(folder / "rows.tsv", index=False, sep="\t")


def parquet(folder):
    pytest.importorskip("pyarrow")
    frame().to_parquet(folder / "rows.parquet", index=False)


def feather(folder):
    pytest.importorskip("pyarrow")
    frame().to_feather(folder / "rows.feather")


def npz(folder):
    np.savez(folder / "rows.npz", X=COUNTS, y=LABELS, ids=np.array(IDS))


def npy(folder):
    np.save(folder / "rows.npy", COUNTS)


def hdf5(folder):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "rows.h5", "w") as file:
        file["X"], file["y"], file["ids"] = COUNTS, LABELS, np.array(IDS, "S")


def zarr(folder):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(folder / "rows.zarr"), mode="w", zarr_format=2)
    group["X"], group["y"] = COUNTS.astype(float), LABELS


def matrix_market(folder):
    scipy.io.mmwrite(folder / "rows.mtx", sp.csr_matrix(COUNTS))


def svmlight(folder):
    from sklearn.datasets import dump_svmlight_file

    dump_svmlight_file(COUNTS.astype(float), LABELS, str(folder / "rows.svm"))


def lines_of_json(folder):
    records = [
        {"id": one, "counts": {name: int(count) for name, count in zip(NAMES, row, strict=True) if count}}
        for one, row in zip(IDS, COUNTS, strict=True)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def texts(folder):
    posts = [f"word{i % 7} and {SITES[i]}" for i in range(N_ROWS)]
    fields = frame()[["sample", "site"]].assign(post=posts)[["sample", "post", "site"]]
    fields.to_csv(folder / "posts.csv", index=False)


def molecules(folder):
    pytest.importorskip("rdkit")
    smiles = [("CCO", "c1ccccc1", "CC(=O)O")[i % 3] for i in range(N_ROWS)]
    fields = frame()[["sample", "site"]].assign(mol=smiles)[["sample", "mol", "site"]]
    fields.to_csv(folder / "mols.csv", index=False)


# what writes each kind, the file that is opened, and the one in it that is damaged
KINDS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "csv": (text_table, "rows.csv", ""),
    "tsv": (tab_table, "rows.tsv", ""),
    "parquet": (parquet, "rows.parquet", ""),
    "feather": (feather, "rows.feather", ""),
    "npz": (npz, "rows.npz", ""),
    "npy": (npy, "rows.npy", ""),
    "hdf5": (hdf5, "rows.h5", ""),
    "zarr": (zarr, "rows.zarr", "X/0.0"),
    "h5ad": (lambda folder: ecosystems.h5ad(folder, SPARSE), "cells.h5ad", ""),
    "AnnData zarr": (lambda folder: ecosystems.anndata_zarr(folder, SPARSE), "cells.zarr", "X/data/0"),
    "10x folder": (ecosystems.tenx_folder, "filtered_feature_bc_matrix", "matrix.mtx.gz"),
    "10x h5": (ecosystems.tenx_hdf5, "counts.h5", ""),
    "biom 2": (ecosystems.biom_hdf5, "table.biom", ""),
    "biom 1": (ecosystems.biom_json, "table.biom", ""),
    "biom text": (ecosystems.biom_text, "table.tsv", ""),
    "mtx": (matrix_market, "rows.mtx", ""),
    "svmlight": (svmlight, "rows.svm", ""),
    "jsonl": (lines_of_json, "rows.jsonl", ""),
    "text": (texts, "posts.csv", ""),
    "smiles": (molecules, "mols.csv", ""),
}
READINGS = {"text": WordCounts("post"), "smiles": MorganCounts("mol")}
WITH_IDS = [kind for kind in KINDS if kind not in ("npy", "zarr", "mtx", "svmlight")]
REMEDY = r"(?i)copy|write|mend|correct|save|use numpy|take |remove|make |name |leave |give |lines 'label column:value'"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with one file of each kind, made when it is first asked for."""
    home, made = tmp_path_factory.mktemp("kinds"), {}

    def of(kind):
        if kind not in made:
            made[kind] = home / kind
            made[kind].mkdir()
            KINDS[kind][0](made[kind])
        return made[kind]

    return of


@pytest.fixture
def copied(whole, tmp_path):
    """Copies of a kind's file: (what is opened, what is damaged)."""

    def of(kind):
        shutil.copytree(whole(kind), tmp_path / "copy")
        path = tmp_path / "copy" / KINDS[kind][1]
        return path, path / KINDS[kind][2] if KINDS[kind][2] else path

    return of


def read(kind, path, labels=None, **more):
    """All rows of a file."""
    if kind in READINGS:
        more["reading"] = READINGS[kind]
    elif kind in ("csv", "tsv", "parquet", "feather") and labels != "site":
        more["aside"] = "site"
    source = open_source(str(path), labels, **more)
    source.labels()
    return source, list(source.chunks(64))


def refused(kind, path, *given, **more):
    """The message, which names the file and says what to do."""
    with pytest.raises(DataError) as caught:
        read(kind, path, *given, **more)
    message = str(caught.value)
    assert Path(str(path).split("::")[0]).name in message
    assert re.search(REMEDY, message), message
    return message


every_kind = pytest.mark.parametrize("kind", list(KINDS))


@every_kind
def test_the_whole_file_is_read(kind, copied):
    source, chunks = read(kind, copied(kind)[0])
    assert sum(chunk.X.shape[0] for chunk in chunks) == N_ROWS
    assert (source.row_ids is not None) == (kind in WITH_IDS)


@every_kind
def test_a_file_that_is_cut_off(kind, copied):
    path, damaged = copied(kind)
    content = damaged.read_bytes()
    end = int(0.6 * len(content))
    if kind in ("csv", "tsv", "text", "smiles"):  # within the first field of a line
        end = content.index(b"\n", end) + 4
    damaged.write_bytes(content[:end])
    refused(kind, path)


@every_kind
def test_a_file_of_another_kind(kind, copied):
    path, damaged = copied(kind)
    damaged.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4)
    refused(kind, path)


@every_kind
def test_a_member_that_is_not_there(kind, copied):
    message = refused(kind, f"{copied(kind)[0]}::nope")
    there = {"npz": "X, y, ids", "hdf5": "X, ids, y", "zarr": "X, y", "h5ad": "X", "10x h5": "matrix"}
    assert "'::nope' out" in message or there.get(kind, "X" if "zarr" in kind else "sample, bin 0") in message


@every_kind
def test_labels_that_are_not_there(kind, copied):
    message = refused(kind, copied(kind)[0], "nope")
    listed = {"npz": "X, y, ids", "hdf5": "X, ids, y", "zarr": "X, y", "text": "sample, post, site"}
    listed |= {"smiles": "sample, mol, site", "h5ad": "cell_type, label", "AnnData zarr": "cell_type, label"}
    listed |= dict.fromkeys(("csv", "tsv", "parquet", "feather"), "bin 11, site")
    listed |= {"jsonl": "id, counts"}
    beside = "metadata.tsv::nope" if kind in WITH_IDS else "one value per row"
    assert listed.get(kind, beside) in message


@every_kind
def test_labels_that_match_no_row(kind, copied, tmp_path):
    table = tmp_path / "meta.tsv"
    table.write_text("id\tsite\n" + "".join(f"x{i}\t{i % 2}\n" for i in range(N_ROWS)))
    message = refused(kind, copied(kind)[0], f"{table}::site")
    wanted = "none of its 137 ids, such as 'x0', is an id of" if kind in WITH_IDS else "have no ids"
    assert wanted in message


def doubled(kind, path):
    """The id of row 3 given to row 5, too."""
    if kind in ("csv", "tsv", "jsonl", "biom 1", "biom text", "text", "smiles"):
        path.write_text(path.read_text().replace("row 5", "row 3", 1))
    elif kind == "10x folder":
        import gzip

        at = path / "barcodes.tsv.gz"
        at.write_bytes(gzip.compress(gzip.decompress(at.read_bytes()).replace(b"row 5", b"row 3", 1)))
    elif kind in ("h5ad", "10x h5", "biom 2", "hdf5"):
        import h5py

        place = {"h5ad": "obs/_index", "10x h5": "matrix/barcodes", "biom 2": "sample/ids", "hdf5": "ids"}[kind]
        with h5py.File(path, "r+") as file:
            file[place][5] = file[place][3]
    elif kind == "AnnData zarr":
        import zarr

        ids = zarr.open_group(str(path))["obs/_index"]
        values = ids[:]
        values[5] = values[3]
        ids[:] = values
    else:
        ids = [*IDS[:5], IDS[3], *IDS[6:]]
        if kind == "npz":
            np.savez(path, X=COUNTS, y=LABELS, ids=np.array(ids))
        else:
            getattr(frame(ids), f"to_{kind}")(path)


@pytest.mark.parametrize("kind", WITH_IDS)
def test_ids_that_come_twice(kind, copied, tmp_path):
    path, _ = copied(kind)
    doubled(kind, path)
    table = tmp_path / "meta.tsv"
    table.write_text("id\tsite\n" + "".join(f"{name}\ttree\n" for name in IDS))
    names = {"npz": "ids", "hdf5": "ids"}
    more = {"id": names.get(kind, "sample")} if kind in ("npz", "hdf5", "text", "smiles") else {}
    message = refused(kind, path, f"{table}::site", **more)
    assert "row 3" in message
    assert "twice" in message
