"""BIOM, the tables of microbiology: HDF5 files (version 2) and objects in memory. Samples are rows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from chimap._types import Group
from chimap._validation import DataError
from chimap.data.formats.arrays import ArraySource
from chimap.data.formats.biom_json import BiomJsonSource
from chimap.data.formats.biom_text import UNIQUE, BiomTextSource
from chimap.data.formats.stored_matrices import (
    CscRows,
    CsrRows,
    Keyed,
    KeyedSource,
    StoredRows,
    checked_names,
)
from chimap.data.io.containers import Container, Hdf5Container, children
from chimap.data.io.files import existing_file
from chimap.data.labels import Labels, clean_labels, shown
from chimap.data.source import Source
from chimap.data.table import check_order

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


class BiomObject(ArraySource):
    """The samples of a ``biom.Table`` in memory."""

    def __init__(self, table: biom.Table, labels: Labels = None) -> None:
        check_order(table.ids(), labels, "biom.Table", "table.ids()")
        super().__init__(table.matrix_data.T, _labels_of(table, labels), "biom.Table")
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
