"""Labelled rows: leave out rows without a label, and join the labels of a table to rows by their ids."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.data.label_kinds import as_number, as_targets, first_without_number, is_text, same_value, why_text
from chimap.data.label_text import marks_of, stands_for_missing
from chimap.data.source import Source
from chimap.data.views import ChosenRows, Labelled


class NoLabelsError(DataError):
    """No row has a label."""


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
        raise NoLabelsError(
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


def with_numbers(source: Source) -> Source:
    """Return the source with text labels as the numbers that a regression needs.

    Raises DataError, naming the row, for a label that is no number.

    >>> from chimap.data import ArraySource
    >>> with_numbers(ArraySource(np.eye(2), ["007", "1.50"])).labels()
    array([7. , 1.5])
    """
    y = source.labels()
    if y is None or not is_text(y):
        return source
    return Labelled(source, as_targets(y, source.name, source.places_in_file()))


def _with_entries(source: Source, y: np.ndarray, missing: object) -> Source:
    """Return the rows that have a label in at least one task. Raises DataError where there is none."""
    numbers = [number for number in map(as_number, marks_of(missing)) if number is not None]
    y = np.where(np.isin(y, numbers), np.nan, y) if numbers else y
    is_missing = np.isnan(y)
    rows = np.flatnonzero(~is_missing.all(axis=1))
    if rows.size == 0:
        raise NoLabelsError(
            Message(
                "{}: every label is missing. Name other columns or another file with {labels}.", source.name
            )
        )
    if not numbers and rows.size == y.shape[0]:
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
    """Return which labels, of shape (n,), are one of the values ``missing``."""
    values, marks = np.ma.getdata(y), marks_of(missing)
    if not marks:
        return np.zeros(values.size, dtype=bool)
    if is_text(values):
        distinct, place = np.unique(values.astype(object), return_inverse=True)
        marked = [any(same_value(str(word).strip(), mark) for mark in marks) for word in distinct]
        return np.array(marked, dtype=bool)[place]
    numbers = [number for number in map(as_number, marks) if number is not None]
    return np.isin(values, numbers)  # a mark that is text was applied already, when the text was read


def _narrowed(y: np.ndarray) -> np.ndarray:
    """Return text no wider than its longest word; other labels unchanged."""
    if y.dtype.kind == "U":
        return y.astype(f"<U{max(1, int(np.char.str_len(y).max()))}")
    return y


_MOST_WORDS = 8  # most words for missing values that a note lists


def _doubts(source: Source, y: np.ndarray) -> Iterator[str]:
    """Yield notes on labels that may not be what they seem.

    They are words that often stand for a missing value, text beside numbers, and -1 beside 0, 1, ....
    """
    if is_text(y):
        values, counts = np.unique(y, return_counts=True)
        rows = dict(zip(values.tolist(), counts.tolist(), strict=True))
        yield from _doubted_words(source.name, rows)
        yield from _text_among_numbers(source, y, [*rows])
        return
    if y.dtype.kind != "i" or y.size == 0 or y.min() != -1:
        return
    values = np.unique(y)
    if values.size >= 3 and np.array_equal(values, np.arange(-1, values.size - 1)):
        yield Message(
            "{}: the label -1, in {:,} rows, stands beside 0 to {} and is taken for a class. If it marks rows without "
            "a label, say {missing=-1}.",
            source.name, np.count_nonzero(y == -1), values[-1],
        )  # fmt: skip


def _doubted_words(name: str, rows: dict[str, int]) -> Iterator[str]:
    """Yield a note on the labels that often stand for a missing value; ``rows`` counts the rows of each label."""
    words = sorted(word for word in rows if stands_for_missing(word))
    if not words or len(words) == len(rows):
        return
    if len(words) == 1:
        yield Message(
            "{}: the label {!r}, in {:,} rows, is taken for a class. If it marks rows without a label, say {missing=}.",
            name, words[0], rows[words[0]], words[0],
        )  # fmt: skip
        return
    listed = ", ".join(f"{word!r} ({rows[word]:,} rows)" for word in words[:_MOST_WORDS])
    more = "" if len(words) <= _MOST_WORDS else f" and {len(words) - _MOST_WORDS} more"
    yield Message(
        "{}: the labels {}{} are taken for classes. If they mark rows without a label, say {missing=}.",
        name, listed, more, ",".join(words),
    )  # fmt: skip


def _text_among_numbers(source: Source, y: np.ndarray, words: list[str]) -> Iterator[str]:
    """Yield a note where labels are text although some of them are numbers."""
    why = why_text(words)
    if why is None or all(first_without_number(np.array([word])) is not None for word in words):
        return
    row = source.places_in_file()[np.flatnonzero(y == why[0])[0]]
    yield f"{source.name}: the labels are text, as {why[0]!r} in row {row} {why[1]}."
