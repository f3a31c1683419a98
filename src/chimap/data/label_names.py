"""Labels that are no column of a table: in a file of their own, or misspelt."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from chimap._validation import DataError
from chimap.data.io.files import existing_file, is_address, is_folder, split_member
from chimap.data.labels import Labels, MarkedLabels, read_labels
from chimap.data.table import is_path

if TYPE_CHECKING:
    from chimap.data.source import Source

_MOST_SHOWN = 20


def shown(names: Sequence[str], most: int = _MOST_SHOWN) -> str:
    """Names for a message.

    >>> shown(["a", "b", "c"], most=2), shown([])
    ('a, b, ...', 'none')
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "") or "none"


def labels_elsewhere(labels: Labels, n_rows: int, where: str, columns: Sequence[str]) -> np.ndarray | None:
    """Labels from an array or a file, see ``read_labels``; DataError for a name that is neither a file nor a column."""
    name = labels.labels if isinstance(labels, MarkedLabels) else labels
    if isinstance(name, str):
        try:
            existing_file(split_member(name)[0])
        except FileNotFoundError as error:
            remedy = (
                f"columns are {shown(columns)}. Name one of them, or a file with a value a row."
                if columns
                else "it holds none beside the counts. Where a table has labels by the ids of the rows, name that "
                f"and its column: metadata.tsv::{name}."
            )
            raise DataError(f"{where}: no column and no file {name!r}; {remedy}") from error
    return read_labels(labels, n_rows)


def read_with(
    read: Callable[[Labels], Source],
    labels: Labels,
    data: object,
    has_arrays: Callable[[str], bool],
) -> Source:
    """The source that ``read`` makes of data with these labels.

    has_arrays: whether a file holds arrays by name. Raises DataError, saying what there is, for a word that is neither
    a file of labels nor anything in the file of the rows; FileNotFoundError for rows that are not there.
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


def _not_there(read: Callable[[Labels], Source], path: str, name: str, has_arrays: bool) -> DataError:
    said = f"{path}: no file {name!r} with labels"
    if has_arrays:
        try:
            read(f"::{name}")
        except DataError as error:
            return DataError(f"{said}. {error} Name one of its arrays with '::' before it, or such a file.")
        return DataError(f"{said}. It holds an array of that name: '::{name}'.")
    if read(None).row_ids is not None:
        return DataError(
            f"{said}. Where a table has labels by the ids of the rows, name that and its column: metadata.tsv::{name}."
        )
    return DataError(f"{said}. Name one with a value a row: text, .npy or .npz.")


def marked(labels: Labels, missing: object) -> Labels | MarkedLabels:
    """Labels with what marks missing ones, where they are in a file of text, which has to know when it is read."""
    if missing is None or not isinstance(labels, str | os.PathLike):
        return labels
    text = os.fspath(labels)
    is_text = not text.lower().endswith((".npy", ".npz")) and (is_address(text) or os.path.isfile(text))
    return MarkedLabels(text, missing) if is_text else labels
