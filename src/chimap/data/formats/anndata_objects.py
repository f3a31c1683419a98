"""AnnData objects: in memory, backed by a file, and views of either."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chimap._types import JSON, Group
from chimap._validation import DataError
from chimap.data.formats.anndata import UNIQUE, AnnDataSource, matrices_of
from chimap.data.formats.arrays import ArraySource
from chimap.data.formats.keyed import Keyed, checked_names, label_column
from chimap.data.formats.stored_subset import StoredSubset
from chimap.data.ids import check_order
from chimap.data.label_names import shown
from chimap.data.labels import Labels
from chimap.data.rows import digest
from chimap.data.source import Source
from chimap.data.table import ColumnChoice

if TYPE_CHECKING:
    from anndata import AnnData


class AnnDataObject(ArraySource):
    """The cells of an AnnData object in memory: ``X`` with ``obs_names``, ``var_names`` and labels from ``obs``."""

    def __init__(self, data: AnnData, labels: Labels = None) -> None:
        if data.X is None:
            layers = shown([f"layers[{name!r}]" for name in data.layers])
            raise DataError(f"AnnData: X is None; there are {layers}. Set adata.X to one of them.")
        super().__init__(data.X, _labels_of(data, labels), "AnnData")
        self.metadata = tuple(str(name) for name in data.obs.columns)
        self.matrices = (
            *(f"layers/{name}" for name in data.layers),
            *(() if data.raw is None else ("raw/X",)),
        )
        self.is_logged = "log1p" in data.uns
        ids, names = UNIQUE
        self.row_ids = checked_names(np.asarray(data.obs_names), self.n_rows, "obs_names", ids)
        self.column_names = tuple(
            checked_names(np.asarray(data.var_names), self.n_features, "var_names", names).tolist()
        )


class BackedAnnData(AnnDataSource):
    """The cells of an AnnData object that is backed by a file, or of a view of one.

    Rows of ``X`` are read from the file. Names and labels are those of the object, which may differ from the file.
    """

    def __init__(self, data: AnnData, labels: Labels = None) -> None:
        self._ids, self._names_of_columns = np.asarray(data.obs_names), np.asarray(data.var_names)
        self._columns_of_obs = [str(name) for name in data.obs.columns]
        self._places = _places_in_file(data) if data.is_view else None
        super().__init__(str(data.filename), _labels_of(data, labels))

    def _found(self, root: Group, member: str | None, labels: Labels) -> Keyed:
        matrices = matrices_of(root)
        rows = self._stored(root, self._key(matrices, "X"))
        if self._places is not None:
            rows = StoredSubset(rows, *self._places)
        return Keyed(rows, self._ids, self._names_of_columns, self._columns_of_obs, None, tuple(matrices[1:]))

    def _content(self) -> JSON:
        content = super()._content()
        return content if self._places is None else {**content, "view": digest(*self._places)}


def is_anndata(X: object) -> bool:
    """Return whether X is an AnnData object, without importing anndata."""
    return type(X).__module__.partition(".")[0] == "anndata" and hasattr(X, "obs_names")


def anndata_source(X: AnnData, labels: Labels = None) -> Source:
    """Return a source for an AnnData object, reading rows from its file if it is backed by one."""
    return BackedAnnData(X, labels) if X.isbacked else AnnDataObject(X, labels)


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
        raise DataError(f"AnnData: no column {labels!r} in obs; there are {shown(columns)}.")
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
