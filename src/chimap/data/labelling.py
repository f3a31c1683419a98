"""Labelled rows: leave out rows without a label, and join the labels of a table to rows by their ids."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.data.label_text import as_number, same_value
from chimap.data.source import Source
from chimap.data.views import ChosenRows


def labelled(source: Source, missing: object = None) -> Source:
    """Return the source with only the rows that have a label, or unchanged where all have one or none needs one.

    Whole labels that contain a single negative value, -1 beside 0 and 1, get a note: -1 often marks a missing label,
    but may be a class.

    Parameters
    ----------
    source : Source
        The rows.
    missing : object, default=None
        A value that marks a missing label, besides None, NaN and empty text.

    Raises
    ------
    DataError
        If no label is left.

    Examples
    --------
    >>> from chimap.data import ArraySource
    >>> source = labelled(ArraySource(np.eye(3), [0, -1, 1]), missing=-1)
    >>> source.labels(), source.n_left_out
    (array([0, 1]), 1)
    """
    y = source.labels()
    if y is None:
        return source
    if y.ndim == 2:
        return _with_entries(source, y, missing)
    is_missing = np.ma.getmaskarray(y) | _marked(y, missing)
    values = np.ma.getdata(y)
    if not is_missing.any():
        source.notes = (*source.notes, *_doubts(source, values))
        return source
    rows = np.flatnonzero(~is_missing)
    if rows.size == 0:
        raise DataError(
            Message("{}: every label is missing. Name another column or file with {labels}.", source.name)
        )
    labels = _narrowed(values[rows])
    kept = ChosenRows(source, rows, labels)
    kept.unlabelled = ChosenRows(source, np.flatnonzero(is_missing), None)
    kept.notes = (
        *source.notes,
        f"{source.name}: {source.n_rows - rows.size:,} of {source.n_rows:,} rows have no label and are left out.",
        *_doubts(source, labels),
    )
    return kept


def _with_entries(source: Source, y: np.ndarray, missing: object) -> Source:
    """Return the rows that have a label in at least one task. Raises DataError where there is none."""
    number = None if missing is None else as_number(str(missing).strip())
    y = y if number is None else np.where(y == number, np.nan, y)
    is_missing = np.isnan(y)
    rows = np.flatnonzero(~is_missing.all(axis=1))
    if rows.size == 0:
        raise DataError(
            Message(
                "{}: every label is missing. Name other columns or another file with {labels}.", source.name
            )
        )
    if number is None and rows.size == y.shape[0]:
        return source
    kept = ChosenRows(source, rows, y[rows])
    kept.notes = source.notes
    if rows.size < y.shape[0]:
        kept.unlabelled = ChosenRows(source, np.flatnonzero(is_missing.all(axis=1)), None)
        kept.notes = (
            *source.notes,
            f"{source.name}: {y.shape[0] - rows.size:,} of {y.shape[0]:,} rows have no label in any task and are left "
            "out.",
        )
    return kept


def _marked(y: np.ndarray, missing: object) -> np.ndarray:
    """Return which labels, of shape (n,), are the value ``missing``."""
    values = np.ma.getdata(y)
    if missing is None:
        return np.zeros(values.size, dtype=bool)
    if values.dtype.kind in "UO":
        distinct, place = np.unique(values.astype(object), return_inverse=True)
        return np.array([same_value(str(word), str(missing)) for word in distinct], dtype=bool)[place]
    number = as_number(str(missing).strip())
    if number is None:
        return np.zeros(values.size, dtype=bool)  # a text mark was applied already, when the text was read
    return np.asarray(values == number)


def _narrowed(y: np.ndarray) -> np.ndarray:
    """Return text no wider than its longest word; other labels unchanged."""
    if y.dtype.kind == "U":
        return y.astype(f"<U{max(1, int(np.char.str_len(y).max()))}")
    return y


_NOTHING = (
    "NA",
    "N/A",
    "NULL",
    "null",
    "None",
)  # how R, spreadsheets, databases and Python write a missing value


def _doubts(source: Source, y: np.ndarray | None) -> Iterator[str]:
    """Yield a note where -1 stands beside 0, 1, ..., or NA beside other text: they often mark a missing label."""
    if y is not None and y.dtype.kind == "U":
        for word in (word for word in _NOTHING if 0 < np.count_nonzero(y == word) < y.size):
            yield Message(
                "{}: the label {!r}, in {:,} rows, is taken for a class. If it marks rows without a label, say "
                "{missing=}.",
                source.name, word, np.count_nonzero(y == word), word,
            )  # fmt: skip
    if y is None or y.dtype.kind != "i" or y.size == 0 or y.min() != -1:
        return
    values = np.unique(y)
    if values.size >= 3 and np.array_equal(values, np.arange(-1, values.size - 1)):
        yield Message(
            "{}: the label -1, in {:,} rows, stands beside 0 to {} and is taken for a class. If it marks rows without "
            "a label, say {missing=-1}.",
            source.name, np.count_nonzero(y == -1), values[-1],
        )  # fmt: skip
