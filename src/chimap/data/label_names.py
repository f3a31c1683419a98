"""Labels that are no column of the table: in a separate file, or misspelt."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from chimap._validation import DataError
from chimap.data.io.files import existing_file, is_address, is_folder, split_member
from chimap.data.labels import UNREAD, Labels, MarkedLabels, read_labels
from chimap.data.table import NoColumnError, is_path

if TYPE_CHECKING:
    from chimap.data.source import Source

_MOST_SHOWN = 20


def shown(names: Sequence[str], most: int = _MOST_SHOWN) -> str:
    """Return names as a list for a message.

    >>> shown(["a", "b", "c"], most=2), shown([])
    ('a, b, ...', 'none')
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "") or "none"


def labels_elsewhere(labels: Labels, n_rows: int, where: str, columns: Sequence[str]) -> np.ndarray | None:
    """Return labels from an array or a file, see ``read_labels``; refuse a name that is neither a file nor a column."""
    name = labels.labels if isinstance(labels, MarkedLabels) else labels
    if isinstance(name, str):
        try:
            existing_file(split_member(name)[0])
        except FileNotFoundError as error:
            remedy = (
                f"columns are {shown(columns)}. Name one of them, or a file with one value per row."
                if columns
                else "it holds only counts. If another table gives labels by the ids of the rows, name that table "
                f"and its column: metadata.tsv::{name}."
            )
            raise NoColumnError(f"{where}: no column and no file {name!r}; {remedy}") from error
    return read_labels(labels, n_rows)


def read_with(
    read: Callable[[Labels], Source],
    labels: Labels,
    data: object,
    has_arrays: Callable[[str], bool],
) -> Source:
    """Return the source that ``read`` makes of data with these labels.

    Parameters
    ----------
    read : callable
        ``read(labels)`` returns the source.
    labels : array, str, path or None
        The labels.
    data : object
        The data that ``read`` opens.
    has_arrays : callable
        ``has_arrays(path)`` returns whether a file holds arrays by name.

    Raises
    ------
    DataError
        If a word is neither a file of labels nor anything in the file of the rows; the message lists what there is.
    FileNotFoundError
        If the file of the rows does not exist.
    """
    try:
        return read(labels)
    except FileNotFoundError as error:
        name = labels.labels if isinstance(labels, MarkedLabels) else labels
        if not is_path(data) or not isinstance(name, str) or os.sep in name or "." in name:
            raise
        path = split_member(str(data))[0]
        if not is_folder(path):
            existing_file(path)
        raise _not_there(read, path, name, has_arrays(path)) from error


def _not_there(read: Callable[[Labels], Source], path: str, name: str, has_arrays: bool) -> NoColumnError:
    prefix = f"{path}: no file {name!r} with labels"
    if has_arrays:
        try:
            read(f"::{name}")
        except DataError as error:
            return NoColumnError(
                f"{prefix}. {error} Name one of its arrays with '::' before it, or a file of labels."
            )
        return NoColumnError(f"{prefix}. It holds an array of that name: '::{name}'.")
    if read(UNREAD).row_ids is not None:
        return NoColumnError(
            f"{prefix}. If a table gives labels by the ids of the rows, name it and its column: metadata.tsv::{name}."
        )
    return NoColumnError(f"{prefix}. Name a file with one value per row: text, .npy or .npz.")


def marked(labels: Labels, missing: object) -> Labels | MarkedLabels:
    """Return labels together with the value that marks missing ones, if they are in a text file.

    A text file must be read with that value in mind, because it decides whether the labels are numbers.
    """
    if missing is None or not isinstance(labels, str | os.PathLike):
        return labels
    text = os.fspath(labels)
    is_text = not text.lower().endswith((".npy", ".npz")) and (is_address(text) or os.path.isfile(text))
    return MarkedLabels(text, missing) if is_text else labels
