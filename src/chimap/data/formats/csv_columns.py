"""Columns of text as they are read from a table: ids, numbers, and columns that count rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from chimap.data.ids import counts
from chimap.data.io.files import needed
from chimap.data.label_kinds import is_number

if TYPE_CHECKING:
    import pyarrow as pa

_PADDED = re.compile(r"0[0-9]+")


class Ids:
    """Texts of a column that may name the rows, collected while they are read."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self._is_number = False

    def add(self, column: pa.ChunkedArray, *, only_text: bool = False) -> bool:
        """Add some rows and return True, or return False for a column of numbers if ``only_text``."""
        if self._is_number or (only_text and not self._parts and not is_text(column)):
            self._is_number = True
            return False
        self._parts.append(np.array([text or "" for text in column.to_pylist()]))
        return True

    def finish(self, n_rows: int) -> np.ndarray | None:
        """Return the texts of all rows, or None if they are fewer than ``n_rows``."""
        if sum(block.size for block in self._parts) != n_rows:
            return None
        return np.char.strip(np.concatenate(self._parts))


def is_text(column: pa.ChunkedArray) -> bool:
    """Return whether less than half of the first fields are numbers. If more are, the others count as mistakes.

    Whole numbers with zeros in front, such as 007, are names.
    """
    texts = [text for text in column.slice(0, 1000).to_pylist() if text]
    return 2 * sum(is_number(text) and not _PADDED.fullmatch(text.strip()) for text in texts) < len(texts)


def numbers_of(column: pa.ChunkedArray) -> np.ndarray | None:
    """Return the numbers of a column of text, with NaN for blanks; None where a field is not a number."""
    pyarrow, compute = needed("pyarrow", "CSV files"), needed("pyarrow.compute", "CSV files")
    try:
        return compute.utf8_trim_whitespace(column).cast("float64").to_numpy(zero_copy_only=False)
    except pyarrow.ArrowInvalid:
        return None


def counts_on(column: pa.ChunkedArray, start: int) -> bool:
    """Return whether a column of text counts the rows one by one from ``start``."""
    values = numbers_of(column)
    return values is not None and counts(values, start)


def is_heading(fields: list[str], said: Iterable[object] = (), known: Iterable[str] | None = None) -> bool:
    """Return whether the first line of a table holds the names of its columns.

    It does if none of its fields is a number; if its numbers count the columns from 0, as in a data frame without
    names that was written with or without its index; or if it holds a word from ``said``, or most columns of a model.

    Parameters
    ----------
    fields : list of str
        Fields of the first line.
    said : iterable, default=()
        Names of columns that the caller gave, among other objects.
    known : iterable of str, default=None
        Columns of a model.

    Examples
    --------
    >>> is_heading(["a", "b"]), is_heading(["3", "b"]), is_heading(["3", "b"], said=["b"])
    (True, False, True)
    >>> is_heading(["", "0", "1"]), is_heading(["2", "1"]), is_heading(["2", "1"], known=["1", "2"])
    (True, False, True)
    """
    names = [field.strip() for field in fields]
    numbers = [(place, name) for place, name in enumerate(names) if is_number(name)]
    words = {word for word in said if isinstance(word, str) and not is_number(word)}
    if not numbers or not words.isdisjoint(names) or (known is not None and _most_are_in({*known}, names)):
        return True
    first = 0 if names[0] else 1  # the index of a data frame has no name
    return len(numbers) > 1 and all(name == str(place - first) for place, name in numbers)


def _most_are_in(known: set[str], names: list[str]) -> bool:
    """Return whether distinct names hold more than half of the known ones; missing ones are reported later, by name."""
    return len({*names}) == len(names) and 2 * len(known.intersection(names)) > len(known)
