"""Labels that are no column of a table: in a file of their own, or misspelt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap._validation import DataError
from chimap.data.io.files import existing_file, split_member
from chimap.data.labels import Labels, MarkedLabels, read_labels

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
