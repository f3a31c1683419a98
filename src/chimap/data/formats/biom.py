"""BIOM, the tables of microbiology: HDF5 (version 2), JSON (version 1) and objects in memory. Samples are rows."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from chimap import _sparse as sp
from chimap._types import JSON, Group
from chimap._validation import DataError
from chimap.data.formats.arrays import ArraySource
from chimap.data.formats.biom_text import UNIQUE, BiomTextSource
from chimap.data.formats.keyed import Keyed, KeyedSource, checked_names
from chimap.data.formats.stored_rows import CscRows, CsrRows, StoredRows
from chimap.data.ids import check_order
from chimap.data.io.containers import Container, Hdf5Container, children
from chimap.data.io.files import DataFile, existing_file, file_digest
from chimap.data.label_names import shown
from chimap.data.labels import Labels, clean_labels
from chimap.data.source import Source

if TYPE_CHECKING:
    import biom


_HDF5_MARK = b"\x89HDF\r\n\x1a\n"


class BiomSource(KeyedSource):
    """The samples of a BIOM file of version 2 (HDF5).

    Ids of rows are the ids of samples, names of columns the ids of observations.

    Parameters
    ----------
    path : str or path
        The file; addresses work too.
    labels : array or file of labels, default=None
        Labels of the samples, see ``read_labels``.
    member : str, default=None
        Not used: a BIOM file holds a single table.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ImportError
        Without h5py.
    DataError
        For another version, for parts that are damaged, cut off or missing, and for ids that come twice.

    References
    ----------
    biom-format.org, "The biom file format: Version 2.1".
    """

    _unique: ClassVar[tuple[str, str]] = UNIQUE

    def _container_at(self, address: str) -> Container:
        return Hdf5Container(address)

    def _found(self, root: Group, member: str | None, labels: Labels) -> Keyed:
        where = self._container.address
        if member is not None:
            raise DataError(f"{where}: a BIOM file holds one table, so leave '::{member}' out.")
        version = [int(n) for n in np.ravel(root.attrs.get("format-version", []))]
        if version[:1] != [2]:
            raise DataError(
                f"{where}: format-version {'.'.join(map(str, version)) or 'is missing'}; expected 2. Write it again "
                "with biom.Table.to_hdf5, or with: biom convert --to-hdf5."
            )
        for key in ("sample", "observation"):
            if key not in root or "ids" not in root[key]:
                raise DataError(
                    f"{where}: no {key}/ids; there are {shown(children(root))}. Copy the file again."
                )
        samples, observations = (
            self._container.values(root[f"{key}/ids"]) for key in ("sample", "observation")
        )
        shape = (samples.size, observations.size)
        if "matrix" in root["sample"]:
            # CSC of observations by samples has the same arrays as CSR of samples by observations.
            rows: StoredRows = CsrRows(
                root["sample/matrix"], "sample/matrix", shape, f"{where}::sample/matrix"
            )
        elif "matrix" in root["observation"]:
            key = "observation/matrix"
            rows = CscRows(root[key], key, shape, f"{where}::{key}")
        else:
            raise DataError(f"{where}: neither sample/matrix nor observation/matrix. Copy the file again.")
        return Keyed(rows, samples, observations, [], None)


class BiomJsonSource(ArraySource):
    """The samples of a BIOM file of version 1 (JSON), which is read as a whole and stays in memory as CSR.

    Parameters
    ----------
    path : str or path
        The file; addresses work too.
    labels : array or file of labels, default=None
        Labels of the samples, see ``read_labels``.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    DataError
        For another version, for parts that are damaged, cut off or missing, and for ids that come twice.

    References
    ----------
    biom-format.org, "The biom file format: Version 1.0".
    """

    def __init__(self, path: str | os.PathLike[str], labels: Labels = None) -> None:
        self.path = existing_file(path)
        table = _json_table(self.path)
        shape, ids = _json_shape(table, self.path)
        super().__init__(_json_matrix(table, shape, str(self.path)), labels, self.path.name)
        self.row_ids = checked_names(
            np.array(ids["columns"]), self.n_rows, f"{self.path}, columns", UNIQUE[0]
        )
        self.column_names = tuple(
            checked_names(np.array(ids["rows"]), self.n_features, f"{self.path}, rows", UNIQUE[1]).tolist()
        )
        self.held_bytes = self.row_bytes * self.n_rows

    def fingerprint(self) -> JSON:
        """Return name, size, shape, and digests of the labels and of windows of the file."""
        return {**super().fingerprint(), "bytes": self.path.size, "digest": file_digest(self.path)}


class BiomObject(ArraySource):
    """The samples of a ``biom.Table`` in memory."""

    def __init__(self, table: biom.Table, labels: Labels = None) -> None:
        check_order(table.ids(), labels, "biom.Table", "table.ids()")
        super().__init__(table.matrix_data.T.tocsr(), _labels_of(table, labels), "biom.Table")
        samples, observations = UNIQUE
        self.row_ids = checked_names(table.ids(), self.n_rows, "ids of samples", samples)
        names = table.ids(axis="observation")
        self.column_names = tuple(
            checked_names(names, self.n_features, "ids of observations", observations).tolist()
        )


def _labels_of(table: biom.Table, labels: Labels) -> Labels:
    """Return the labels that the metadata of the samples hold, or the given labels if they are not a name of them."""
    if not isinstance(labels, str):
        return labels
    metadata = table.metadata() or ()
    names = sorted({str(name) for entry in metadata for name in entry or ()})
    if labels not in names and ("::" in labels or "." in labels):
        return labels
    if labels not in names:
        raise DataError(
            f"biom.Table: no {labels!r} in the metadata of its samples; there are {shown(names)}. Name one of them, "
            f"give an array, or read them from a table: open_source(table, 'metadata.tsv::{labels}')."
        )
    values = np.array([(entry or {}).get(labels) for entry in metadata], dtype=object)
    return clean_labels(values, len(metadata), f"biom.Table, metadata {labels!r}")


def is_biom_table(X: object) -> bool:
    """Return whether X is a ``biom.Table``, without importing biom."""
    return type(X).__module__.partition(".")[0] == "biom" and hasattr(X, "matrix_data")


def biom_source(path: str | os.PathLike[str], labels: Labels = None) -> Source:
    """Return a source for a ``.biom`` file of any version; the first bytes of the file decide."""
    file = existing_file(path)
    with file.open() as opened:
        head = opened.read(64)
    if head.startswith(_HDF5_MARK):
        return BiomSource(path, labels)
    if head.lstrip().startswith(b"{"):
        return BiomJsonSource(path, labels)
    if head.startswith(b"#"):
        return BiomTextSource(path, labels)
    raise DataError(
        f"{file}: begins with {head[:16]!r}, which is not BIOM: neither HDF5 (version 2), JSON (version 1) nor text "
        "with '#OTU ID'. Write it again with: biom convert."
    )


def _json_table(path: DataFile) -> JSON:
    try:
        with path.open() as file:
            table = json.load(file)
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error}). It is cut off or damaged; copy it again.") from error
    required = ("format", "matrix_type", "shape", "data", "rows", "columns")
    missing = [key for key in required if key not in table]
    if missing:
        raise DataError(f"{path}: no {', '.join(missing)}; there are {shown(sorted(table))}. Write it again.")
    version = str(table["format"]).rpartition(" ")[2]
    if not version.startswith("1."):
        raise DataError(
            f"{path}: {table['format']}; expected version 1 in JSON. Write it again with: biom convert."
        )
    return dict(table)


def _json_shape(table: JSON, path: str | os.PathLike[str]) -> tuple[tuple[int, int], dict[str, list[str]]]:
    """Return the numbers of observations and samples, and their ids."""
    try:
        ids = {key: [str(entry["id"]) for entry in table[key]] for key in ("rows", "columns")}
        shape = tuple(int(n) for n in table["shape"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: {type(error).__name__}: {error}, in its shape, rows or columns; expected two numbers, and a list "
            "of objects with an 'id' each. Write it again."
        ) from error
    if shape != (len(ids["rows"]), len(ids["columns"])):
        raise DataError(
            f"{path}: shape {list(shape)}, but {len(ids['rows'])} rows and {len(ids['columns'])} columns. Write it "
            "again."
        )
    return (shape[0], shape[1]), ids


def _json_matrix(table: JSON, shape: tuple[int, int], where: str) -> sp.csr_matrix:
    """Return the matrix of samples by observations."""
    if table["matrix_type"] not in ("sparse", "dense"):
        raise DataError(f"{where}: matrix_type {table['matrix_type']!r}; expected sparse or dense.")
    try:
        data = np.array(table["data"], dtype=np.float64)
        if table["matrix_type"] == "dense":
            return sp.csr_matrix(data.reshape(shape).T)
        rows, columns, values = data.reshape(-1, 3).T
        if np.any(np.stack([columns, rows]) % 1):
            raise ValueError("an index is not a whole number")
        places = (columns.astype(np.int64), rows.astype(np.int64))
        return sp.csr_matrix((values, places), shape=shape[::-1])
    except (ValueError, TypeError) as error:
        raise DataError(
            f"{where}: 'data' does not fit the shape {list(shape)} ({error}). Write it again."
        ) from error
