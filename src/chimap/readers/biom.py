"""BIOM, the tables of microbiology: HDF5 (version 2), JSON (version 1), text, and objects. Samples are rows."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from chimap import _sparse as sp
from chimap._messages import shown
from chimap._types import JSON, Group, Rows
from chimap._validation import DataError
from chimap.data.arrays import ArraySource
from chimap.data.clades import lineages_of, steps_of
from chimap.data.labels import Labels, clean_labels
from chimap.data.rows import csr_row_bytes, csr_rows, matrix_shape
from chimap.data.source import Source, WholeSource
from chimap.data.table import ColumnChoice, check_order
from chimap.data.views import select_columns
from chimap.readers.io.containers import Hdf5Container, children
from chimap.readers.io.files import existing_file
from chimap.readers.label_files import labels_elsewhere
from chimap.readers.records import unique_keys
from chimap.readers.stored_matrices import CscRows, CsrRows, Keyed, KeyedSource, StoredRows, checked_names, label_column
from chimap.readers.transposed import TransposedSource

if TYPE_CHECKING:
    import biom


REMEDY_FOR_SAMPLES = "Rename one of the samples, or add their counts up."
REMEDY_FOR_OBSERVATIONS = "Rename one of the observations, or add their counts up."


_TAXONOMY = "taxonomy"  # of observations, in metadata
_REQUIRED_MEMBERS = ("format", "matrix_type", "shape", "data", "rows", "columns")
_LARGEST_JSON = 2**27  # bytes of a file that is read
_PARSED_BYTES = 12  # of Python's lists and numbers, for each byte of their text


class BiomJsonSource(WholeSource):
    """The samples of a BIOM file of version 1 (JSON), see biom-format.org, "The biom file format: Version 1.0".

    JSON is parsed as a whole, which takes some twelve times the bytes of the file (``held_bytes``) for a moment; files
    of more than 128 MiB are refused. Those of version 2 (HDF5) are read chunk by chunk.
    """

    dtype = np.dtype(np.float64)
    is_sparse = True

    def __init__(self, path: str | os.PathLike[str], labels: Labels = None) -> None:
        self.path = self._stored = existing_file(path)
        self.name = self.path.name
        if self.path.size > _LARGEST_JSON:
            raise DataError(
                f"{self.path}: {self.path.size >> 20:,} MiB of JSON, which would take {_PARSED_BYTES} times as much "
                f"memory; at most {_LARGEST_JSON >> 20} MiB are read. Write it as HDF5, which is read chunk by chunk: "
                f"biom convert -i {self.path} -o table.biom --to-hdf5."
            )
        table = self._table()
        samples, observations = self._ids(table, "columns"), self._ids(table, "rows")
        if table["shape"] != [len(observations), len(samples)]:
            raise DataError(
                f"{self.path}: shape {table['shape']}, but {len(observations)} rows and {len(samples)} columns. Write "
                "it again."
            )
        self.n_rows, self.n_features = matrix_shape((len(samples), len(observations)), str(self.path))
        self.row_ids = checked_names(np.array(samples), self.n_rows, f"{self.path}, columns", REMEDY_FOR_SAMPLES)
        names = checked_names(np.array(observations), self.n_features, f"{self.path}, rows", REMEDY_FOR_OBSERVATIONS)
        self.column_names = tuple(names.tolist())
        columns = _columns_of([entry.get("metadata") for entry in table["columns"]])
        self.metadata = tuple(columns)
        observed = [entry.get("metadata") for entry in table["rows"]]
        self.lineages = _lineages(_taxonomies(observed), self.column_names)
        others = _columns_of(observed)
        label = _metadata_column(labels, self.metadata, str(self.path), [*others])
        self._y = (
            labels_elsewhere(labels, self.n_rows, str(self.path), self.metadata)
            if label is None
            else clean_labels(columns[label], self.n_rows, f"{self.path}, metadata {label!r}")
        )
        matrix = self._X = self._matrix(table)
        self.row_bytes = csr_row_bytes(matrix.nnz, self.n_rows, self.dtype)
        self.held_bytes = float(_PARSED_BYTES * self.path.size)

    def _whole(self) -> Rows:
        return self._matrix(self._table())

    def _table(self) -> JSON:
        """Return the members of the file, checked for those that are needed."""
        try:
            with self.path.open() as file, io.TextIOWrapper(file, "utf-8") as text:
                table = json.load(text, object_pairs_hook=unique_keys)
        except KeyError as error:
            raise DataError(f"{self.path}: the key {error} comes twice in one object. Write it again.") from error
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.path}: not JSON ({error}). It is cut off or damaged; copy it again.") from error
        missing = [key for key in _REQUIRED_MEMBERS if key not in table]
        if missing:
            raise DataError(f"{self.path}: no {', '.join(missing)}; there are {shown(sorted(table))}. Write it again.")
        if not str(table["format"]).rpartition(" ")[2].startswith("1."):
            raise DataError(
                f"{self.path}: {table['format']}; expected version 1 in JSON. Write it again with: biom convert."
            )
        if table["matrix_type"] not in ("sparse", "dense"):
            raise DataError(
                f"{self.path}: matrix_type {table['matrix_type']!r}; expected sparse or dense. Write it again."
            )
        return table

    def _ids(self, table: JSON, key: str) -> list[str]:
        entries = table[key] if isinstance(table[key], list) else [table[key]]
        wrong = [place for place, entry in enumerate(entries) if not isinstance(entry, dict) or "id" not in entry]
        if wrong:
            raise DataError(
                f"{self.path}, {key}, entry {wrong[0]}: {str(entries[wrong[0]])[:60]}; expected an object with an "
                "'id'. Write it again."
            )
        return [str(entry["id"]) for entry in entries]

    def _matrix(self, table: JSON) -> sp.csr_matrix:
        """Return the samples as rows."""
        shape = (self.n_features, self.n_rows)
        try:
            numbers = np.array(table["data"], dtype=np.float64)
        except (ValueError, TypeError) as error:
            raise self._misfit(str(error)) from error
        if table["matrix_type"] == "dense":
            if numbers.shape != shape:
                raise self._misfit(f"lists of shape {numbers.shape}")
            return _canonical(sp.csr_matrix(numbers.T))
        if numbers.size == 0:
            return sp.csr_matrix(shape[::-1], dtype=np.float64)
        if numbers.ndim != 2 or numbers.shape[1] != 3:
            raise self._misfit(f"lists of shape {numbers.shape}, expected lists of observation, sample and count")
        places = numbers[:, :2]
        if np.any(places != np.floor(places)):
            raise self._misfit("an index is not a whole number")
        wrong = np.flatnonzero(((places < 0) | (places >= shape)).any(axis=1))
        if wrong.size:
            raise self._misfit("entry {}: the indices {:g} and {:g}".format(wrong[0], *places[wrong[0]]))
        observations, samples = places.astype(np.int64).T
        return _canonical(sp.csr_matrix((numbers[:, 2], (samples, observations)), shape=shape[::-1]))

    def _misfit(self, fault: str) -> DataError:
        shape = [self.n_features, self.n_rows]
        return DataError(f"{self.path}: 'data' does not fit the shape {shape} ({fault}). Write it again.")


_HDF5_MARK = b"\x89HDF\r\n\x1a\n"


def _canonical(X: sp.csr_matrix) -> sp.csr_matrix:
    return csr_rows(X.data, X.indices, X.indptr, X.shape[1], X.dtype)


class BiomSource(KeyedSource):
    """The samples of a BIOM file of version 2 (HDF5), see biom-format.org, "The biom file format: Version 2.1".

    Ids of rows are the ids of samples, names of columns the ids of observations. The file holds a single table. Labels
    may be a column of the metadata of the samples, ``y`` or ``label`` by default.
    """

    _kind = Hdf5Container
    _remedy_for_ids: ClassVar[str] = REMEDY_FOR_SAMPLES
    _remedy_for_names: ClassVar[str] = REMEDY_FOR_OBSERVATIONS

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
                raise DataError(f"{where}: no {key}/ids; there are {shown(children(root))}. Copy the file again.")
        samples, observations = (self._container.values(root[f"{key}/ids"]) for key in ("sample", "observation"))
        shape = (samples.size, observations.size)
        if "matrix" in root["sample"]:
            # CSC of observations by samples has the same arrays as CSR of samples by observations.
            rows: StoredRows = CsrRows(root["sample/matrix"], "sample/matrix", shape, f"{where}::sample/matrix")
        elif "matrix" in root["observation"]:
            key = "observation/matrix"
            rows = CscRows(root[key], key, shape, f"{where}::{key}")
        else:
            raise DataError(f"{where}: neither sample/matrix nor observation/matrix. Copy the file again.")
        metadata = root["sample/metadata"] if "metadata" in root["sample"] else None
        # A column of lists, such as a lineage, is an array of two axes.
        columns = [name for name in children(metadata) if metadata[name].shape == (samples.size,)] if metadata else []
        others = root["observation/metadata"] if "metadata" in root["observation"] else None
        label = _metadata_column(labels, columns, where, children(others) if others else ())
        y: np.ndarray | None = None
        if label is not None and metadata is not None:
            values = self._container.values(metadata[label])
            y = label_column(values, None, samples.size, f"{where}, metadata {label!r}")
        stated = [others[name] for name in children(others) if name.casefold() == _TAXONOMY] if others else []
        taxonomies = list(self._container.values(stated[0])) if stated else []
        lineages = _lineages(taxonomies, list(map(str, observations)))
        return Keyed(rows, samples, observations, columns, y, lineages=lineages)


class BiomObject(ArraySource):
    """The samples of a ``biom.Table`` in memory."""

    def __init__(self, table: biom.Table, labels: Labels = None) -> None:
        check_order(table.ids(), labels, "biom.Table", "table.ids()")
        super().__init__(table.matrix_data.T, _labels_of(table, labels), "biom.Table")
        self.row_ids = checked_names(table.ids(), self.n_rows, "ids of samples", REMEDY_FOR_SAMPLES)
        names = table.ids(axis="observation")
        self.column_names = tuple(
            checked_names(names, self.n_features, "ids of observations", REMEDY_FOR_OBSERVATIONS).tolist()
        )
        self.lineages = _lineages(_taxonomies(table.metadata(axis="observation") or ()), self.column_names)


def _taxonomies(entries: Sequence[Mapping[str, object] | None]) -> list[object]:
    known = [{key.casefold(): value for key, value in (entry or {}).items()} for entry in entries]
    return [entry.get(_TAXONOMY) for entry in known]


def _lineages(taxonomies: Sequence[object], names: Sequence[str]) -> tuple[str, ...] | None:
    """Return the lineages of observations; None where no taxonomy is stated, or the names are lineages themselves."""
    lineages = lineages_of(taxonomies)
    return lineages if any(lineages) and not any(steps_of(name) for name in names) else None


def _labels_of(table: biom.Table, labels: Labels) -> Labels:
    """Return the labels that the metadata of the samples hold, or the given labels if they are not a name of them."""
    columns = _columns_of(table.metadata() or ())
    others = _columns_of(table.metadata(axis="observation") or ())
    label = _metadata_column(labels, [*columns], "biom.Table", [*others])
    if label is not None:
        return clean_labels(columns[label], len(columns[label]), f"biom.Table, metadata {label!r}")
    if isinstance(labels, str) and "::" not in labels and "." not in labels:
        raise DataError(
            f"biom.Table: no {labels!r} in the metadata of its samples; there are {shown([*columns])}. Name one of "
            f"them, give an array, or read them from a table: open_source(table, 'metadata.tsv::{labels}')."
        )
    return labels


def _columns_of(entries: Sequence[Mapping[str, object] | None]) -> dict[str, np.ndarray]:
    """Return the metadata of samples as columns of objects, None where a sample has no value.

    Columns of lists, such as lineages, are left out.
    """
    names = sorted({str(name) for entry in entries for name in entry or ()})
    columns = {name: [(entry or {}).get(name) for entry in entries] for name in names}
    return {
        name: np.array(values, dtype=object)
        for name, values in columns.items()
        if not any(isinstance(value, list | tuple | dict) for value in values)
    }


def _metadata_column(labels: Labels, columns: Sequence[str], where: str, others: Sequence[str]) -> str | None:
    """Return the column of metadata that ``labels`` names, for None one of the usual names, else None.

    Raises DataError for a column of ``others``, the metadata of the observations: the table has its sides swapped.
    """
    if labels is None:
        return ColumnChoice().usual_label(columns, f"{where}, metadata")
    if isinstance(labels, str) and labels in others and labels not in columns:
        raise DataError(
            f"{where}: {labels!r} is metadata of the observations and not of the samples: the sides of the table are "
            "swapped. Transpose it (table.transpose() in biom) and write it again."
        )
    return labels if isinstance(labels, str) and labels in columns else None


def biom_table_source(X: biom.Table, labels: Labels = None, choice: ColumnChoice | None = None) -> Source:
    """Return a source for a ``biom.Table`` in memory."""
    return select_columns(BiomObject(X, labels), choice or ColumnChoice())


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
        return TransposedSource(path, labels)
    raise DataError(
        f"{file}: begins with {head[:16]!r}, which is not BIOM: neither HDF5 (version 2), JSON (version 1) nor text "
        "with '#OTU ID'. Write it again with: biom convert."
    )
