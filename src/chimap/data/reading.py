"""How the core knows what reads files and objects: by the functions of one package, and by readings of fields."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np

from chimap import _arrays
from chimap import _sparse as sp
from chimap._errors import InputError
from chimap._validation import DataError
from chimap.data.source import Source


class Readers(Protocol):
    """What the core asks of the readers of files and of objects of other libraries."""

    open_source: Callable[..., Source]
    opener_of: Callable[[object], Callable[..., Source] | None]
    check_rows_order: Callable[..., None]
    task_words: Callable[[object, object], str | list[str] | None]
    table_of: Callable[[str], Any]
    read_labels: Callable[..., np.ndarray | None]


_READERS = EntryPoint("chimap", "chimap.readers", "chimap.readers")


def readers() -> Readers:
    """Return the readers, which are imported when the first file or object is to be read."""
    found: Readers = _READERS.load()
    return found


def opener_of(X: object) -> Callable[..., Source] | None:
    """Return the function that makes a source of an object in memory; None for arrays, and for frames and lists.

    It takes the object, labels and a ``ColumnChoice``. Raises DataError, with the remedy, for an object that cannot be
    read.
    """
    return None if _arrays.is_nameless(X) else readers().opener_of(X)


def check_rows_order(X: object, **given: object) -> None:
    """Refuse labels, weights or groups whose index holds the index, or the ids, of the rows in another order.

    ``given`` are the values by the name of their argument. Raises DataError that names the first such row.
    """
    if not _arrays.is_nameless(X):
        readers().check_rows_order(X, **given)


Fields: TypeAlias = list[Any]
"""Values of one field of consecutive records, of a type that the reading knows."""


class Reading(ABC):
    """How a field becomes a row of bins. A model keeps its reading, and predicts from such fields.

    Attributes
    ----------
    column : str
        Name of the field.
    names : tuple of str
        Names of the bins, () before ``learned``.
    is_sparse : bool
        Whether the rows are CSR.
    dtype : dtype
        Type of the rows.
    splits : tuple of str
        Names of the ways to group fields by what they are, see ``groups``.
    has_drawings : bool
        Whether ``painted`` draws fields.
    n_optional : int
        How many of the last bins a fit may do without, see ``settled``.
    optional_name : str
        What these are.
    known_of_all : str
        What the reading knows of all rows of the fit, in a sentence about rows that were among them; "" for nothing.
    """

    column: str
    is_sparse = True
    dtype = np.dtype(np.float32)
    splits: ClassVar[tuple[str, ...]] = ()
    has_drawings: ClassVar[bool] = False
    n_optional: int = 0
    optional_name: ClassVar[str] = ""
    known_of_all: ClassVar[str] = ""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the bins."""

    @property
    def is_learned(self) -> bool:
        """Whether the reading knows its bins."""
        return bool(self.names)

    def settled(self, keeps_optional: bool) -> Reading:
        """Return the reading with or without its optional bins, of which none is then left.

        Parameters
        ----------
        keeps_optional : bool
            Whether they stay.
        """
        return self

    def headed(self, columns: Sequence[str], where: str) -> Self:
        """Return the reading of the column as it is called among ``columns``, whatever the case of its name.

        Raises DataError where several are called so.

        Parameters
        ----------
        columns : sequence of str
            Names of the columns of the data.
        where : str
            Name of the data, for errors.
        """
        if self.column in columns:
            return self
        alike = [name for name in columns if name.strip().lower() == self.column.strip().lower()]
        if len(alike) > 1:
            raise DataError(
                f"{where}: {' and '.join(map(repr, alike))} may both be the column {self.column!r}. Name one of them "
                "as it is written."
            )
        return replace(self, column=alike[0]) if alike else self  # type: ignore[type-var]

    @abstractmethod
    def learned(self, fields: Iterator[Fields], where: str) -> Reading:
        """Return the reading with what it learns from all fields.

        Parameters
        ----------
        fields : iterator of lists
            All fields, in batches; all are read.
        where : str
            Name of the data, for errors.
        """

    @abstractmethod
    def rows(self, fields: Fields, first: int, where: str) -> tuple[sp.csr_matrix, dict[int, str]]:
        """Return the rows of consecutive fields, and why some of them cannot be read.

        Parameters
        ----------
        fields : list
            The fields.
        first : int
            Number of the record of the first field.
        where : str
            Name of the data, for errors.

        Returns
        -------
        X : CSR matrix of shape (len(fields), bins)
            The rows; those of fields that cannot be read are empty.
        unread : dict of int to str
            The reason for each field that cannot be read, by its place.

        Raises
        ------
        DataError
            If a field is of another kind than the reading; the message names the record.
        """

    def groups(self, split: str, fields: np.ndarray) -> np.ndarray:
        """Return the groups of fields that one of ``splits`` keeps together, as text (n,).

        Parameters
        ----------
        split : str
            One of ``splits``.
        fields : array of shape (n,)
            Fields that can be read.
        """
        raise InputError(f"{type(self).__name__} has no groups {split!r}; it has {', '.join(self.splits) or 'none'}.")

    def painted(self, field: object, contributions: np.ndarray, colours: tuple[str, str]) -> str | None:
        """Return a drawing of a field with the contributions of its bins painted over it, as SVG; None for others.

        Parameters
        ----------
        field : object
            A field.
        contributions : array of shape (bins,)
            What each bin adds to a score.
        colours : tuple of two str
            Colours (#rrggbb) of parts that add to the score, and of those that take from it.
        """
        return None

    def doubts(self, n_unknown: int, n_records: int, where: str) -> tuple[str, ...]:
        """Return notes for the user where so many of the records have none of the bins.

        Parameters
        ----------
        n_unknown, n_records : int
            Number of records without any of the bins, and of all records.
        where : str
            Name of the data.
        """
        return ()

    @abstractmethod
    def takes(self, data: object) -> bool:
        """Return whether the data hold fields of this reading, rather than rows of its bins.

        Parameters
        ----------
        data : object
            The path of a file or folder, or an object in memory.
        """

    @abstractmethod
    def source_of(self, X: object) -> Source | None:
        """Return a source of the fields in X, or None if X holds rows of bins.

        Parameters
        ----------
        X : object
            Fields in a data frame or in a sequence, or rows.

        Raises
        ------
        DataError
            If X is a single text.
        """

    @abstractmethod
    def column_of(self, data: object, name: str) -> np.ndarray | None:
        """Return the values (n,) of another column of the data, as labels, without counting anything.

        None says that there is no column of this name.

        Parameters
        ----------
        data : str, path, data frame or sequence
            What ``source`` takes.
        name : str
            Name of the column.
        """

    @abstractmethod
    def source(self, data: object, labels: Any = None, id: str | int | None = None) -> Source:
        """Return the rows of a file, a folder, a data frame or a sequence of fields, made by this reading.

        Parameters
        ----------
        data : str, path, data frame or sequence
            A file or folder, a data frame or data set with the column, or a list, series or array of fields.
        labels : str, array or file of labels, default=None
            Name of a column, or an array or file, see ``read_labels``.
        id : str or int, default=None
            The column of ids.
        """


READINGS: dict[str, type[Reading]] = {}  # by their names, to which readers add theirs; model files restore them
