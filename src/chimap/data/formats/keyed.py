"""Matrices in a container, with arrays that name their rows and columns: what single-cell and BIOM files share."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chimap._messages import Message
from chimap._types import JSON, Group, Rows
from chimap._validation import DataError
from chimap.data.formats.stored_rows import StoredRows
from chimap.data.io.containers import Container
from chimap.data.io.files import split_member
from chimap.data.io.range_source import RangeSource, Read
from chimap.data.label_kinds import texts_of
from chimap.data.label_names import labels_elsewhere
from chimap.data.labels import Labels, clean_labels


@dataclass(frozen=True)
class Keyed:
    """A matrix of a container and the arrays that belong to it.

    Parameters
    ----------
    rows : StoredRows
        How the matrix is read.
    ids : ndarray of shape (n_rows,)
        Ids of the rows.
    names : ndarray of shape (n_features,)
        Names of the columns.
    columns : list of str
        Metadata columns of the rows, which can be labels.
    y : ndarray of shape (n_rows,), or None
        The labels, None if they are not in the container.
    matrices : tuple of str, default=()
        Names of other matrices of the same rows.
    kinds : tuple of str, or None, default=None
        What each column measures, where the container says so.
    is_logged : bool, default=False
        Whether the container says that the rows are logarithms.
    """

    rows: StoredRows
    ids: np.ndarray
    names: np.ndarray
    columns: list[str]
    y: np.ndarray | None
    matrices: tuple[str, ...] = ()
    kinds: tuple[str, ...] | None = None
    is_logged: bool = False


class KeyedSource(RangeSource):
    """A source over one matrix of a container; a subclass finds it (``_container_at``, ``_found``).

    ``_unique`` says what to do about ids of rows and about names of columns that come twice.
    """

    _unique: ClassVar[tuple[str, str]]

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
        ids, names = self._unique
        self.row_ids = checked_names(arrays.ids, self.n_rows, f"{where}, ids of rows", ids)
        self.column_names = tuple(
            checked_names(arrays.names, self.n_features, f"{where}, names of columns", names).tolist()
        )
        self._y = (
            arrays.y if arrays.y is not None else labels_elsewhere(labels, self.n_rows, where, arrays.columns)
        )
        self.has_labels = self._y is not None
        self.metadata, self.matrices = tuple(arrays.columns), arrays.matrices
        self.column_kinds, self.is_logged = arrays.kinds, arrays.is_logged

    def take(self, rows: np.ndarray) -> Rows:
        """Return the rows with these increasing indices; storage chunks without any of them are not read."""
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
        """Return the container of the file or folder. Raises FileNotFoundError if it does not exist."""

    @abstractmethod
    def _found(self, root: Group, member: str | None, labels: Labels) -> Keyed:
        """Return the matrix that ``member`` names, or the default one."""


def checked_names(values: np.ndarray, size: int, where: str, remedy: str) -> np.ndarray:
    """Return ids or names as text, of shape (size,).

    Raises DataError for another number of them, and for repeats; ``remedy`` is a sentence on what to do about these.
    """
    texts = texts_of(np.asarray(values))
    if texts.shape != (size,):
        raise DataError(f"{where}: {texts.size}, but the matrix has {size}. Write the file again.")
    order = np.argsort(texts, kind="stable")
    repeats = np.flatnonzero(texts[order][1:] == texts[order][:-1])
    if repeats.size:
        first, second = sorted(order[repeats[0] : repeats[0] + 2].tolist())
        raise DataError(
            Message(
                "{}: {!r} comes twice, at {} and {}. Each must occur once. {}",
                where, str(texts[first]), first, second, remedy,
            )
        )  # fmt: skip
    return texts


def label_column(values: np.ndarray, missing: np.ndarray | None, n_rows: int, where: str) -> np.ndarray:
    """Return a column of metadata as labels, masked where they are missing. Raises DataError for another length."""
    for part in (values, values if missing is None else missing):
        if part.shape != (n_rows,):
            raise DataError(
                f"{where}: {part.size} values, but the matrix has {n_rows} rows. Write the file again."
            )
    marked = values if missing is None else np.ma.MaskedArray(values, missing)
    return clean_labels(marked, n_rows, where)
