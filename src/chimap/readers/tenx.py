"""Counts of cells in the layouts of 10x Genomics: folders with ``matrix.mtx.gz``, and ``.h5`` files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from chimap._messages import shown
from chimap._types import Group, StoredArray
from chimap._unicode import composed_names
from chimap._validation import DataError
from chimap.data.labels import Labels
from chimap.readers.io.containers import Hdf5Container, children, is_group
from chimap.readers.io.files import (
    DataFile,
    StoredFiles,
    base_name,
    decompressed,
    existing_file,
    is_folder,
    names_in,
    plain_path,
    read_piece,
)
from chimap.readers.matrix_market import MatrixMarketSource
from chimap.readers.stored_matrices import CsrRows, Keyed, KeyedSource, checked_names

_MATRIX, _CELLS, _FEATURES = ("matrix.mtx",), ("barcodes.tsv",), ("features.tsv", "genes.tsv")

_REMEDY_FOR_CELLS = "If runs were joined, append the name of its run to each barcode."
_REMEDY_FOR_GENES = "Take the file that Cell Ranger wrote, or give each feature an id of its own."


class TenXFolderSource(MatrixMarketSource):
    """The cells of a folder with ``matrix.mtx``, ``barcodes.tsv`` and ``features.tsv`` (or ``genes.tsv``).

    The files may end in ``.gz``, and their names may begin with the name of the run, as in ``GSM1_matrix.mtx.gz``, if
    the folder holds a single run. Cells are rows, although the file has them as columns. The matrix is read into
    memory, see ``MatrixMarketSource``; the ``.h5`` file of the same run, or ``.h5ad``, is read chunk by chunk. Ids of
    rows are the barcodes. Names of columns are the symbols of genes, or the gene ids where several genes share a
    symbol.
    """

    def __init__(self, path: str | os.PathLike[str], labels: Labels = None) -> None:
        folder = plain_path(path)
        run = _run_in(folder)
        matrix, barcodes, genes = (_file_in(folder, run, names) for names in (_MATRIX, _CELLS, _FEATURES))
        super().__init__(matrix, labels, transpose=True)
        self._stored, self.name = (
            StoredFiles({file.name: file for file in (matrix, barcodes, genes)}),
            base_name(folder),
        )
        cells, features = [line[0] for line in _lines(barcodes)], [*_lines(genes)]
        if len(cells) != self.n_rows or len(features) != self.n_features:
            raise DataError(
                f"{folder}: the matrix has {self.n_features:,} features and {self.n_rows:,} cells, but there are "
                f"{len(features):,} lines in {genes.name} and {len(cells):,} in {barcodes.name}. Take the three files "
                "of one run."
            )
        self.row_ids = checked_names(np.array(cells), self.n_rows, str(barcodes), _REMEDY_FOR_CELLS)
        ids = np.array([line[0] for line in features])
        symbols = np.array([line[1] if len(line) > 1 else line[0] for line in features])
        self.column_names, self.other_names = _gene_names(ids, symbols, str(genes))
        if all(len(line) > 2 for line in features):
            self.column_kinds = tuple(line[2] for line in features)


class TenXHdf5Source(KeyedSource):
    """The cells of a ``.h5`` file of Cell Ranger, version 3 (group ``matrix``) or 2 (a group for each genome).

    ``file.h5::GRCh38`` names the genome where version 2 has several. Cells are rows; ids and names are as in
    ``TenXFolderSource``.
    """

    _kind = Hdf5Container
    _remedy_for_ids: ClassVar[str] = _REMEDY_FOR_CELLS
    _remedy_for_names: ClassVar[str] = _REMEDY_FOR_GENES

    def _found(self, root: Group, member: str | None, labels: Labels) -> Keyed:
        groups = _groups(root)
        if member is None and len(groups) > 1:
            raise DataError(
                f"{self._container.address}: several genomes, {shown(groups)}. Name one: "
                f"'{self._container.name}::{groups[0]}'."
            )
        key = groups[0] if member is None and groups else member
        if key not in groups:
            raise DataError(
                f"{self._container.address}: no group {key!r} with barcodes; there are {shown(groups)}. Take the file "
                "that Cell Ranger wrote."
            )
        group, where = root[key], f"{self._container.address}::{key}"
        for required in ("barcodes", "shape"):
            if required not in group:
                raise DataError(f"{where}: no {required!r}; there are {shown(children(group))}. Copy the file again.")
        n_features, n_cells = (int(n) for n in group["shape"][...])
        # CSC of features by cells has the same arrays as CSR of cells by features.
        rows = CsrRows(group, key, (n_cells, n_features), where)
        ids, symbols = (np.asarray(self._container.values(array), str) for array in _features(group, where))
        names, other_names = _gene_names(ids, symbols, where)
        kinds = self._container.values(group["features/feature_type"]) if "features/feature_type" in group else None
        return Keyed(
            rows,
            self._container.values(group["barcodes"]),
            np.array(names),
            [],
            None,
            kinds=None if kinds is None else tuple(map(str, kinds.tolist())),
            other_names=other_names,
        )


def is_tenx_folder(address: str) -> bool:
    """Return whether a folder has a matrix of 10x Genomics; other files may be missing."""
    return is_folder(address) and bool(_runs_in(address))


def is_tenx_file(address: str) -> bool:
    """Return whether an HDF5 file has the layout of Cell Ranger."""
    if not address.lower().endswith((".h5", ".hdf5")) or is_folder(address):
        return False
    container = Hdf5Container(address)
    with container.opened() as root:
        try:
            return bool(_groups(root))
        except (
            RuntimeError,
            KeyError,
            ValueError,
            OSError,
        ):  # the file is damaged; the general HDF5 reader will name the place
            return False


def _groups(root: Group) -> list[str]:
    return [
        key
        for key in children(root)
        if is_group(root[key])
        and "barcodes" in root[key]
        and ("features" in root[key] or "genes" in root[key] or "data" in root[key])
    ]


def _features(group: Group, where: str) -> tuple[StoredArray, StoredArray]:
    """Return the arrays of the ids and of the symbols of features."""
    if "features" in group and {"id", "name"} <= set(children(group["features"])):
        return group["features/id"], group["features/name"]
    if "genes" in group and "gene_names" in group:
        return group["genes"], group["gene_names"]
    raise DataError(
        f"{where}: neither features/id and features/name nor genes and gene_names; there are "
        f"{shown(children(group))}. Take the file that Cell Ranger wrote."
    )


def _gene_names(ids: np.ndarray, symbols: np.ndarray, where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the symbol of each gene if no other gene has it, else its id, and the other of the two.

    Ids must be unique.
    """
    checked_names(ids, ids.size, f"{where}, ids of features", _REMEDY_FOR_GENES)
    _, place, count = np.unique(symbols, return_inverse=True, return_counts=True)
    alone = (count[place] == 1) & ~np.isin(symbols, ids)
    names, others = (np.where(alone, *pair) for pair in ((symbols, ids), (ids, symbols)))
    return composed_names(names.tolist()), composed_names(others.tolist())


def _runs_in(folder: str) -> list[str]:
    """Return what stands before ``matrix.mtx`` in the names of the matrices of runs.

    It is "" for the names that Cell Ranger gives, which go before others. Other names need another file of the run.
    """
    names = {name.removesuffix(".gz") for name in names_in(folder)}
    (matrix,) = _MATRIX
    runs = [name.removesuffix(matrix) for name in sorted(names) if name.endswith(matrix)]
    return [""] if "" in runs else [run for run in runs if any(run + name in names for name in _CELLS + _FEATURES)]


def _run_in(folder: str) -> str:
    """Return the only run of a folder, see ``_runs_in``. Raises DataError if there are several."""
    runs = _runs_in(folder) or [""]
    if len(runs) > 1:
        raise DataError(
            f"{folder}: several runs, {shown([f'{run}matrix.mtx' for run in runs])}. Move the three files of each "
            "run to a folder of its own, and open one of these."
        )
    return runs[0]


def _file_in(folder: str, run: str, names: tuple[str, ...]) -> DataFile:
    there = names_in(folder)
    for name in names:
        for packed in (".gz", ""):
            if run + name + packed in there:
                return existing_file(f"{folder.rstrip('/')}/{run}{name}{packed}")
    expected = " or ".join(run + name for name in names)
    raise FileNotFoundError(
        f"{folder}: no {expected}, with or without .gz; there are {shown(there)}. A run of 10x Genomics has "
        "matrix.mtx, barcodes.tsv and features.tsv (or genes.tsv): copy it there, or rename it."
    )


def _lines(file: DataFile) -> Iterator[list[str]]:
    """Yield the fields of each line of a table with tabs."""
    number = 0
    with decompressed(file) as stream:
        while line := read_piece(file, stream, 0, f"line {number + 1}"):
            number += 1
            yield line.decode("utf-8").rstrip("\r\n").split("\t")
