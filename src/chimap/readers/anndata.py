"""AnnData, the annotated matrices of single-cell analysis: ``.h5ad`` files, Zarr stores, and objects in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from chimap._messages import shown
from chimap._types import JSON, Group, StoredArray
from chimap._unicode import composed_names
from chimap._validation import DataError
from chimap.data.arrays import ArraySource
from chimap.data.label_kinds import is_text, order_of, texts_of
from chimap.data.labels import Labels
from chimap.data.rows import digest
from chimap.data.source import Source
from chimap.data.table import ColumnChoice, check_order, first_repeat, instead
from chimap.data.views import select_columns
from chimap.readers.io.containers import ZarrContainer, children, container_of, is_group, is_store
from chimap.readers.io.files import is_folder
from chimap.readers.stored_matrices import (
    CscRows,
    CsrRows,
    DenseRows,
    Keyed,
    KeyedSource,
    StoredRows,
    StoredSubset,
    checked_names,
    label_column,
    names_for,
)

if TYPE_CHECKING:
    from anndata import AnnData, Raw

# Columns of ``var`` with second names of the genes, as scanpy and CELLxGENE call them.
_NAMES_OF_GENES = ("gene_ids", "gene_symbols", "feature_name", "gene_name", "gene_id", "ensembl_id")
REMEDY_FOR_NAMES = "Make them unique, adata.var_names_make_unique(), and write the file again."
_LAYOUTS: dict[str, type[CsrRows] | type[CscRows]] = {
    "csr_matrix": CsrRows,
    "csr": CsrRows,
    "csc_matrix": CscRows,
    "csc": CscRows,
}


class AnnDataSource(KeyedSource):
    """The cells of an AnnData file, read from disk chunk by chunk; it needs only h5py or zarr.

    The matrix is ``X`` by default; others are ``file.h5ad::layers/counts``, ``file.h5ad::raw/X`` and
    ``file.h5ad::obsm/X_pca``. Each may be CSR, CSC (converted to rows on a temporary file when it is opened) or dense.
    Ids of rows are ``obs_names``, names of columns ``var_names``; ``raw`` has its own. Labels are a column of ``obs``,
    ``y`` or ``label`` by default; categories are labels by name. Cells may share a name as long as no table is
    joined by it. Reference: anndata.readthedocs.io, "On-disk format".
    """

    _kind = staticmethod(container_of)
    _remedy_for_names: ClassVar[str] = REMEDY_FOR_NAMES

    def _checked_ids(self, ids: np.ndarray, where: str) -> np.ndarray:
        names = names_for(ids, self.n_rows, where)
        self.notes = (*self.notes, *_notes_on_repeats(names, where))
        return names

    def _found(self, root: Group, member: str | None, labels: Labels) -> Keyed:
        where = self._container.address
        if not is_group(root) or "obs" not in root or "var" not in root:
            raise DataError(
                f"{where}: not AnnData, which has obs, var and X; it holds {shown(children(root))}. "
                "Read it as plain arrays, with the ending .h5 or .zarr, or write it with AnnData.write_h5ad."
            )
        names_of_matrices = matrices_of(root)
        key = self._key(names_of_matrices, member)
        rows = self._matrix_at(root, key)
        names = self._names(root, key, rows.n_features)
        columns = [name for name in _columns(root["obs"]) if name != _index_name(root["obs"])]
        label = labels.removeprefix("::").removeprefix("obs/") if isinstance(labels, str) else None
        if labels is None:
            label = ColumnChoice().usual_label(columns, f"{where}, obs")
        y: np.ndarray | None = None
        if label in columns:
            y = label_column(*self._column(root["obs"], label), rows.n_rows, f"{where}, obs[{label!r}]")
            self.label_order = self._order(root["obs"], label)
        matrices = tuple(name for name in names_of_matrices if name != key)
        is_logged = key == "X" and "uns" in root and is_group(root["uns"]) and "log1p" in root["uns"]
        other_names = None if key.startswith("obsm/") else self._other_names(root, key, names.size)
        return Keyed(
            rows, self._index(root["obs"]), names, columns, y, matrices, is_logged=is_logged, other_names=other_names
        )

    def _key(self, matrices: list[str], member: str | None) -> str:
        """Return the matrix that is named; without a name X or, where that is empty, the one other of all genes."""
        where = self._container.address
        if member is None:
            member, note = _usual_matrix(matrices, where, [f"{where}::{name}" for name in matrices])
            self.notes = (*self.notes, *note)
        key = f"{member}/X" if member == "raw" else member
        if key not in matrices:
            raise DataError(f"{where}: no matrix {member!r}; there are {shown(matrices)}.")
        return key

    def _matrix_at(self, root: Group, key: str) -> StoredRows:
        return _rows_of(root[key], key, f"{self._container.address}::{key}")

    def _names(self, root: Group, key: str, n_features: int) -> np.ndarray:
        if key.startswith("obsm/"):
            stem = key.removeprefix("obsm/")
            return np.array([f"{stem}_{place}" for place in range(n_features)])
        return self._index(_var_of(root, key))

    def _other_names(self, root: Group, key: str, n_features: int) -> tuple[str, ...] | None:
        """Return the second names of genes, such as their ids, where ``var`` has them."""
        var = _var_of(root, key)
        name = next((name for name in _NAMES_OF_GENES if name in _columns(var)), None)
        values = None if name is None else self._column(var, name)[0]
        return None if values is None or values.size != n_features else composed_names(texts_of(values))

    def _index(self, frame: Group) -> np.ndarray:
        """Return the names of the rows of a stored data frame; in the older layout a field of a compound array."""
        name = _index_name(frame)
        if name not in _columns(frame):
            raise DataError(
                f"{self._container.address}::{frame.name.strip('/')}: no index {name!r}; there are "
                f"{shown(_columns(frame))}. Write the file again with a current anndata."
            )
        return self._column(frame, name)[0]

    def _order(self, frame: Group, name: str) -> tuple[object, ...] | None:
        """Return the values of an ordered category of a stored data frame, in their order; None for other columns."""
        if not is_group(frame) or not is_group(frame[name]) or not frame[name].attrs.get("ordered", False):
            return None
        categories = self._container.values(frame[name]["categories"])
        return tuple((texts_of(categories) if is_text(categories) else categories).tolist())

    def _column(self, frame: Group, name: str) -> tuple[np.ndarray, np.ndarray | None]:
        """Return a column of a stored data frame and a mask of its missing entries (None: not known)."""
        if not is_group(frame):
            values = frame[...][name]
            return (texts_of(values) if is_text(values) else values), None
        node, values = frame[name], self._container.values
        where = f"{self._container.address}, {frame.name.strip('/')}[{name!r}]"
        if not is_group(node):
            key = f"__categories/{name}"  # the layout before anndata 0.7
            return _named(values(node), values(frame[key]), where) if key in frame else (values(node), None)
        members = children(node)
        if "codes" in members and "categories" in members:
            return _named(values(node["codes"]), values(node["categories"]), where)
        if "values" in members and "mask" in members:
            return values(node["values"]), values(node["mask"])
        raise DataError(
            f"{self._container.address}::{node.name.strip('/')}: a column stored as "
            f"{node.attrs.get('encoding-type', 'a group')!r}, with {shown(members)}, which is not known. Store it as "
            "text, numbers or categories."
        )


def _var_of(root: Group, key: str) -> Group:
    """Return what is known of the columns of a matrix."""
    return root["raw"]["var"] if key == "raw/X" and "var" in root["raw"] else root["var"]


def is_anndata_store(address: str) -> bool:
    """Return whether a Zarr store, a folder or a ``.zip``, has the layout of AnnData."""
    if not (is_store(address) if is_folder(address) else address.lower().endswith(".zarr.zip")):
        return False
    with ZarrContainer(address).opened() as root:
        if not is_group(root):
            return False
        return root.attrs.get("encoding-type") == "anndata" or ("obs" in root and "var" in root)


def matrices_of(root: Group) -> list[str]:
    """Return the names of all matrices whose rows are cells."""
    names = ["X"] if "X" in root and not _is_null(root["X"]) else []
    for group in ("layers", "obsm"):
        inside = children(root[group]) if group in root else []
        names += [f"{group}/{name}" for name in inside if not _is_null(root[group][name])]
    has_raw = "raw" in root and is_group(root["raw"]) and "X" in root["raw"]
    return names + (["raw/X"] if has_raw and not _is_null(root["raw"]["X"]) else [])


def _usual_matrix(matrices: Sequence[str], where: str, addresses: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return X or, where it is empty, the only other matrix of genes with a note; ``addresses`` say how to name each.

    Raises DataError where there are none or several. Matrices of ``obsm`` have other columns than genes.
    """
    if "X" in matrices:
        return "X", ()
    others = [name for name in matrices if not name.startswith("obsm/")]
    if len(others) == 1:
        return others[0], (f"{where}: X is empty, and the one other matrix, {others[0]}, is taken.",)
    remedy = f"Name another matrix: {shown(addresses)}" if addresses else "Write the counts of the genes as X"
    raise DataError(f"{where}: X is empty. {remedy}.")


def _is_null(node: Group | StoredArray) -> bool:
    """Return whether a node stands for None, as X does in files of cells that have layers only."""
    return _text(dict(node.attrs).get("encoding-type")) == "null" or getattr(node, "shape", ()) is None


def _rows_of(node: Group | StoredArray, key: str, where: str) -> StoredRows:
    if not is_group(node):
        return DenseRows(node, key, where)
    attributes = dict(node.attrs)
    kind = _text(attributes.get("encoding-type", attributes.get("h5sparse_format", "")))
    shape = attributes.get("shape", attributes.get("h5sparse_shape"))
    if kind not in _LAYOUTS or shape is None:
        raise DataError(
            f"{where}: stored as {kind or 'a group'!r} with {shown(children(node))}; expected a dense array, "
            "csr_matrix or csc_matrix. Write it with a current anndata."
        )
    return _LAYOUTS[kind](node, key, tuple(int(n) for n in shape), where)


def _columns(frame: Group) -> list[str]:
    """Return the names of the columns of a stored data frame. A name with a slash, "a/b", is a group in a group."""
    if not is_group(frame):
        return [*frame.dtype.names]
    names = []
    for name in children(frame):
        if name == "__categories":
            continue
        node = frame[name]
        is_column = not is_group(node) or "encoding-type" in node.attrs or {"codes", "categories"} <= {*node}
        names += [name] if is_column or not children(node) else [f"{name}/{inner}" for inner in _columns(node)]
    return names


def _notes_on_repeats(names: np.ndarray, where: str) -> tuple[str, ...]:
    """Return a note where cells have the same name, which matters only to tables that are joined by it."""
    if (repeat := first_repeat(names)) is None:
        return ()
    note = (
        f"{where}: {str(names[repeat[0]])!r} comes twice, at {repeat[0]} and {repeat[1]}, so no other table can be "
        "joined to the cells by their names. To do that, make them unique: adata.obs_names_make_unique()."
    )
    return (note,)


def _index_name(frame: Group) -> str:
    if not is_group(frame):
        return str(frame.dtype.names[0])
    return _text(frame.attrs.get("_index", "_index"))


def _named(codes: np.ndarray, categories: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the categories that codes stand for, and a mask of the codes that stand for none."""
    missing = codes < 0
    if codes.size and codes.max() >= categories.size:
        place = int(np.argmax(codes))
        raise DataError(
            f"{where}, row {place}: code {codes[place]}, but there are {categories.size} categories, from 0 on. Write "
            "the file again."
        )
    if not categories.size:  # the column has no value at all
        return np.full(codes.shape, "", dtype=object), missing
    return categories[np.where(missing, 0, codes)], missing


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


class AnnDataObject(ArraySource):
    """The cells of an AnnData object in memory: ``X``, or the matrix named, with names and labels of the object."""

    def __init__(self, data: AnnData, labels: Labels = None, matrix: str | None = None) -> None:
        layers, raw = [f"layers/{name}" for name in data.layers], [] if data.raw is None else ["raw/X"]
        matrices = [*([] if data.X is None else ["X"]), *layers, *raw]
        addresses = [*(f"adata.layers[{name!r}]" for name in data.layers), *("adata.raw.to_adata()" for _ in raw)]
        key, told = (matrix, ()) if matrix else _usual_matrix(matrices, "AnnData", addresses)
        annotated = data.raw if key == "raw/X" else data
        super().__init__(data.layers[key[7:]] if key in layers else annotated.X, _labels_of(data, labels), "AnnData")
        self.metadata = tuple(str(name) for name in data.obs.columns)
        self.label_order = order_of(data.obs[labels]) if isinstance(labels, str) and labels in data.obs else None
        self.matrices = tuple(name for name in matrices if name != key)
        self.is_logged = key == "X" and "log1p" in data.uns
        self.row_ids = names_for(np.asarray(data.obs_names), self.n_rows, "obs_names")
        self.notes = (*self.notes, *told, *_notes_on_repeats(self.row_ids, "AnnData, obs_names"))
        names = np.asarray(annotated.var_names)
        self.column_names = tuple(checked_names(names, self.n_features, "var_names", REMEDY_FOR_NAMES).tolist())
        self.other_names = _other_names_in(annotated)


class BackedAnnData(AnnDataSource):
    """The cells of an AnnData object that is backed by a file, or of a view of one.

    Rows of ``X``, or of the matrix named, are read from the file. Names and labels are those of the object, which may
    differ from the file.
    """

    def __init__(self, data: AnnData, labels: Labels = None, matrix: str | None = None) -> None:
        annotated, self._matrix = data.raw if matrix == "raw/X" else data, matrix
        self._ids, self._names_of_columns = np.asarray(data.obs_names), np.asarray(annotated.var_names)
        self._second_names = _other_names_in(annotated)
        self._columns_of_obs = [str(name) for name in data.obs.columns]
        self._places = _places_in_file(data) if data.is_view else None
        super().__init__(str(data.filename), _labels_of(data, labels))

    def _found(self, root: Group, member: str | None, labels: Labels) -> Keyed:
        matrices = [name for name in matrices_of(root) if name != "raw/X"]  # which has genes of its own
        key = self._matrix or self._key(matrices, None)
        rows = self._matrix_at(root, key)
        if self._places is not None:
            chosen, columns = self._places
            rows = StoredSubset(rows, chosen, np.arange(rows.n_features) if key == "raw/X" else columns)
        others = tuple({*matrices} - {key})
        return Keyed(
            rows, self._ids, self._names_of_columns, self._columns_of_obs, None, others, other_names=self._second_names
        )

    def _content(self) -> JSON:
        content = super()._content()
        return content if self._places is None else {**content, "view": digest(*self._places)}


def is_anndata(X: object) -> bool:
    """Return whether X is an AnnData object, without importing anndata."""
    return type(X).__module__.partition(".")[0] == "anndata" and hasattr(X, "obs_names")


def _other_names_in(annotated: AnnData | Raw) -> tuple[str, ...] | None:
    """Return the second names of genes, such as their ids, where ``var`` has them."""
    name = next((name for name in _NAMES_OF_GENES if name in annotated.var), None)
    return None if name is None else composed_names(annotated.var[name])


def anndata_source(
    X: AnnData, labels: Labels = None, choice: ColumnChoice | None = None, matrix: str | None = None
) -> Source:
    """Return a source for an AnnData object, reading rows from its file if it is backed by one.

    matrix: "X", "raw/X" or "layers/NAME", which is there; None is X, or the only other one where X is empty.
    """
    source = BackedAnnData(X, labels, matrix) if X.isbacked else AnnDataObject(X, labels, matrix)
    return select_columns(source, choice or ColumnChoice())


def _labels_of(data: AnnData, labels: Labels) -> Labels:
    """Return the labels that a column of ``obs`` holds, or the given labels if they are not a name of one."""
    columns = [str(name) for name in data.obs.columns]
    if labels is None:
        labels = ColumnChoice().usual_label(columns, "AnnData, obs")
    if isinstance(labels, str) and labels in columns:
        column = data.obs[labels]
        values, missing = np.asarray(column.astype(object)), np.asarray(column.isna())
        return label_column(values, missing, data.n_obs, f"obs[{labels!r}]")
    if isinstance(labels, str) and "::" not in labels and "." not in labels:
        there = instead(labels, columns, f"there are {shown(columns)}")
        raise DataError(f"AnnData: no column {labels!r} in obs{there}.")
    check_order(np.asarray(data.obs_names), labels, "AnnData", "adata.obs_names")
    return labels


def _places_in_file(view: AnnData) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the rows and columns of a view in the file. Raises DataError if they are not known.

    anndata keeps them without documenting them.
    """
    whole = getattr(view, "_adata_ref", None)
    chosen = getattr(view, "_oidx", None), getattr(view, "_vidx", None)
    if whole is not None and all(places is not None for places in chosen):
        rows, columns = (np.arange(n)[places] for n, places in zip(whole.shape, chosen, strict=True))
        if (rows.size, columns.size) == view.shape:
            return rows, columns
    raise DataError(
        "AnnData: a view of a backed object, which does not tell its rows in the file. Load it: view.to_memory()."
    )
