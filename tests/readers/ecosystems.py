"""The small matrix in the kinds of files of other ecosystems, each written by that ecosystem's library."""

import gzip
import json
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from chimap.readers import open_source

from .small_sources import COUNTS, LABELS, N_FEATURES, N_ROWS

IDS = [f"row {i}" for i in range(N_ROWS)]
NAMES = [f"bin {j}" for j in range(N_FEATURES)]


def anndata_object(X=COUNTS, **layers):
    """An AnnData object: labels, and their names as categories, in ``obs``."""
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    words = pandas.Categorical(np.where(LABELS > 0, "tree", "fish"))
    obs = pandas.DataFrame({"label": LABELS, "cell_type": words}, index=IDS)
    return anndata.AnnData(X, obs, pandas.DataFrame(index=NAMES), layers=layers)


def h5ad(folder, X=COUNTS, member="", **options):
    anndata_object(X).write_h5ad(folder / "cells.h5ad", **options)
    return open_source(f"{folder}/cells.h5ad{member}")


def h5ad_layer(folder, member):
    """Layers and ``raw`` beside an X of other numbers."""
    data = anndata_object(sp.csr_matrix(COUNTS.astype(np.float32)))
    data.raw = data.copy()
    data.layers["counts"] = sp.csc_matrix(COUNTS.astype(np.int64))
    data.layers["dense"] = COUNTS.astype(float)
    data.X = data.X * 3
    data.write_h5ad(folder / "cells.h5ad")
    return open_source(f"{folder}/cells.h5ad::{member}")


def anndata_zarr(folder, X, version=2):
    anndata = pytest.importorskip("anndata")
    before = anndata.settings.zarr_write_format
    anndata.settings.zarr_write_format = version
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what anndata and zarr will do one day
            anndata_object(X).write_zarr(folder / "cells.zarr")
    finally:
        anndata.settings.zarr_write_format = before
    return open_source(folder / "cells.zarr")


def tenx_folder(folder, packed=True, features="features", order=None):
    """The folder as Cell Ranger writes it: features are rows, cells columns, entries cell by cell."""
    home = folder / "filtered_feature_bc_matrix"
    home.mkdir()
    entries = sp.coo_matrix(COUNTS.T.astype(np.int64))
    places = np.lexsort((entries.row, entries.col)) if order is None else order.permutation(entries.nnz)
    shuffled = sp.coo_matrix((entries.data[places], (entries.row[places], entries.col[places])), entries.shape)
    scipy.io.mmwrite(home / "matrix.mtx", shuffled)
    (home / "barcodes.tsv").write_text("".join(f"{name}\n" for name in IDS))
    lines = [f"ENSG{j:03}\t{name}\tGene Expression\n" for j, name in enumerate(NAMES)]
    (home / f"{features}.tsv").write_text("".join(lines))
    for path in [*home.iterdir()] if packed else []:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    return open_source(home, LABELS)


def tenx_hdf5(folder, version=3):
    """The arrays of Cell Ranger's file: features by cells, by columns."""
    h5py = pytest.importorskip("h5py")
    X = sp.csc_matrix(COUNTS.T.astype(np.int32))
    with h5py.File(folder / "counts.h5", "w") as file:
        group = file.create_group("matrix" if version == 3 else "GRCh38")
        group["barcodes"] = np.array(IDS, "S")
        group["shape"] = X.shape
        for part in ("data", "indices", "indptr"):
            group.create_dataset(part, data=getattr(X, part), chunks=(50,), compression="gzip")
        ids = np.array([f"ENSG{j:03}" for j in range(N_FEATURES)], "S")
        names = np.array(NAMES, "S")
        if version == 3:
            group["features/id"], group["features/name"] = ids, names
            group["features/feature_type"] = np.array(["Gene Expression"] * N_FEATURES, "S")
        else:
            group["genes"], group["gene_names"] = ids, names
    return open_source(folder / "counts.h5", LABELS)


def biom_table():
    biom = pytest.importorskip("biom")
    return biom.Table(sp.csr_matrix(COUNTS.T.astype(float)), NAMES, IDS, type="OTU table")


def biom_hdf5(folder):
    h5py = pytest.importorskip("h5py")
    table = biom_table()
    with h5py.File(folder / "table.biom", "w") as file:
        table.to_hdf5(file, "a test")
    return open_source(folder / "table.biom", LABELS)


def biom_json(folder, dense=False):
    text = biom_table().to_json("a test")
    if dense:
        parts = json.loads(text)
        parts |= {"matrix_type": "dense", "data": COUNTS.T.tolist()}
        text = json.dumps(parts)
    (folder / "table.biom").write_text(text)
    return open_source(folder / "table.biom", LABELS)


def biom_text(folder, name="table.tsv", taxonomy=False):
    text = biom_table().to_tsv() + "\n"
    if taxonomy:
        heading, *lines = text.splitlines()[1:]
        with_taxa = [heading + "\ttaxonomy", *(f"{line}\tk__Bacteria; p__{line[:5]}" for line in lines)]
        text = text.splitlines()[0] + "\n" + "\n".join(with_taxa) + "\n"
    (folder / name).write_text(text)
    return open_source(folder / name, LABELS)


CSR, CSC = sp.csr_matrix(COUNTS.astype(np.float32)), sp.csc_matrix(COUNTS.astype(np.float32))

ECOSYSTEMS = {
    "h5ad, CSR": partial(h5ad, X=CSR),
    "h5ad, CSR, gzip": partial(h5ad, X=CSR, compression="gzip"),
    "h5ad, CSC": partial(h5ad, X=CSC),
    "h5ad, dense": partial(h5ad, X=COUNTS.astype(np.float64)),
    "h5ad, layer CSC": partial(h5ad_layer, member="layers/counts"),
    "h5ad, layer dense": partial(h5ad_layer, member="layers/dense"),
    "h5ad, raw": partial(h5ad_layer, member="raw/X"),
    "AnnData, Zarr 2": partial(anndata_zarr, X=CSR),
    "AnnData, Zarr 3, CSC": partial(anndata_zarr, X=CSC, version=3),
    "AnnData object": lambda folder: open_source(anndata_object(CSR)),
    "10x folder": tenx_folder,
    "10x folder, version 2": partial(tenx_folder, packed=False, features="genes"),
    "10x folder, shuffled": lambda folder: tenx_folder(folder, order=np.random.default_rng(0)),
    "10x h5": tenx_hdf5,
    "10x h5, version 2": partial(tenx_hdf5, version=2),
    "BIOM 2": biom_hdf5,
    "BIOM 1": biom_json,
    "BIOM 1, dense": partial(biom_json, dense=True),
    "BIOM text": biom_text,
    "BIOM text, taxonomy": partial(biom_text, taxonomy=True, name="table.txt"),
    "BIOM object": lambda folder: open_source(biom_table(), LABELS),
}
