"""Matrices in a container beside arrays that name their rows and columns: what single-cell and BIOM files share."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from chimap._types import JSON, Group, Rows
from chimap._validation import DataError
from chimap.data.formats.stored_rows import StoredRows
from chimap.data.io.containers import Container
from chimap.data.io.files import split_member
from chimap.data.io.range_source import RangeSource, Read
from chimap.data.label_names import labels_elsewhere
from chimap.data.labels import Labels, clean_labels


@dataclass(frozen=True)
class Keyed:
    """A matrix of a container and what goes with it.

    rows: how it is read. ids: of the rows. names: of the columns. columns: metadata of the rows by which labels can be
    named. y: labels that were asked for, or None where they are not in the container. matrices: others of its rows.
    """

    rows: StoredRows
    ids: np.ndarray
    names: np.ndarray
    columns: list[str]
    y: np.ndarray | None
    matrices: tuple[str, ...] = ()


class KeyedSource(RangeSource):
    """A source over one matrix of a container; a subclass finds it (``_container``, ``_found``)."""

    def __init__(
        self, path: str | os.PathLike[str], labels: Labels = None, member: str | None = None
    ) -> None:
        address, member_of_path = split_member(path)
        member = member or member_of_path
        self._container = self._container_at(address)
        self.name = self._container.name if member is None else f"{self._container.name}::{member}"
        with self._container.opened() as root, self._container.naming():
            arrays = self._found(root, None if member is None else member.strip("/"), labels)
        self._rows = arrays.rows
        self.n_rows, self.n_features = arrays.rows.n_rows, arrays.rows.n_features
        self.dtype, self.is_sparse = arrays.rows.dtype, arrays.rows.is_sparse
        self.row_bytes, self.held_bytes = arrays.rows.row_bytes, arrays.rows.held_bytes
        self.stored_rows = arrays.rows.stored_rows
        where = self._container.address
        self.row_ids = checked_names(arrays.ids, self.n_rows, f"{where}, ids of rows")
        self.column_names = tuple(
            checked_names(arrays.names, self.n_features, f"{where}, names of columns").tolist()
        )
        self._y = (
            arrays.y if arrays.y is not None else labels_elsewhere(labels, self.n_rows, where, arrays.columns)
        )
        self.has_labels = self._y is not None
        self.metadata, self.matrices = tuple(arrays.columns), arrays.matrices

    def take(self, rows: np.ndarray) -> Rows:
        """The rows with these increasing indices; what is stored without any of them is not read."""
        with self._container.opened() as root, self._container.naming():
            return self._rows.take(root, np.asarray(rows))

    @contextmanager
    def _reading(self) -> Iterator[Read]:
        with self._container.opened() as root:
            read = self._rows.reader(root)

            def named(start: int, stop: int) -> Rows:
                with self._container.naming(f", rows {start} to {stop}"):
                    return read(start, stop)

            yield named

    def _content(self) -> JSON:
        return self._container.content()

    def _check_unchanged(self) -> None:
        self._container.check_unchanged()

    @abstractmethod
    def _container_at(self, address: str) -> Container:
        """What stands for the file or folder. FileNotFoundError if it is not there."""

    @abstractmethod
    def _found(self, root: Group, member: str | None, labels: Labels) -> Keyed:
        """The matrix that ``member`` names, or the usual one."""


def checked_names(values: np.ndarray, size: int, where: str) -> np.ndarray:
    """Ids or names as text, (size,). DataError for another number of them, and where two are the same."""
    texts = np.asarray([str(value) for value in np.asarray(values).tolist()], dtype=str)
    if texts.shape != (size,):
        raise DataError(f"{where}: {texts.size} for a matrix that has {size}. Write the file again.")
    order = np.argsort(texts, kind="stable")
    same = np.flatnonzero(texts[order][1:] == texts[order][:-1])
    if same.size:
        one, other = sorted(order[same[0] : same[0] + 2].tolist())
        raise DataError(
            f"{where}: {str(texts[one])!r} comes twice, at {one} and {other}. Each must be there once: make them "
            "unique (AnnData has obs_names_make_unique and var_names_make_unique), and write the file again."
        )
    return texts


def label_column(values: np.ndarray, missing: np.ndarray | None, where: str) -> np.ndarray:
    """A column of metadata as labels, masked where they are missing."""
    marked = values if missing is None else np.ma.MaskedArray(values, missing)
    return clean_labels(marked, len(values), where)
