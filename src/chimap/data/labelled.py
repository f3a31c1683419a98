"""The rows of a source that have a label, and what is doubtful about the labels."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.data.label_kinds import (
    as_number,
    as_targets,
    is_finite_number,
    is_text,
    marks_of,
    same_value,
    stands_for_missing,
    why_text,
)
from chimap.data.source import Source
from chimap.data.views import ChosenRows, WithLabels


class NoLabelsError(DataError):
    """No row has a label."""


def without_unlabelled(source: Source, missing: object = None) -> Source:
    """Return the source with only the rows that have a label, or unchanged where all have one or none needs one.

    Rows whose record could not be read are left out too, with a note that names the first of them.

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
        If no label is left, or most records could not be read.

    Examples
    --------
    >>> from chimap.data import ArraySource
    >>> source = without_unlabelled(ArraySource(np.eye(3), [0, -1, 1]), missing=-1)
    >>> source.labels(), source.n_left_out
    (array([0, 1]), 1)
    """
    y = source.labels()
    if y is None:
        return source
    if source.unread:
        return without_unlabelled(_readable(source, y), missing)
    values, is_missing = _without_marks(y, missing)
    notes = () if y.ndim == 2 else (*_doubts(source, values[~is_missing]),)
    rows = np.flatnonzero(~is_missing)
    if rows.size == y.shape[0] and (y.ndim == 1 or values is y):
        source.notes = (*source.notes, *(note for note in notes if note not in source.notes))
        return source
    if rows.size == 0:
        others = "another column or file" if y.ndim == 1 else "other columns or another file"
        raise NoLabelsError(Message("{}: every label is missing. Name {} with {labels}.", source.name, others))
    kept = ChosenRows(source, rows, _narrowed(values[rows]))
    left_out: tuple[str, ...] = ()
    if is_missing.any():
        kept.unlabelled = ChosenRows(source, np.flatnonzero(is_missing), None)
        anywhere = "" if y.ndim == 1 else " in any task"
        left_out = (
            f"{source.name}: {is_missing.sum():,} of {source.n_rows:,} rows have no label{anywhere} and are left out.",
        )
    kept.notes = (*source.notes, *left_out, *notes)
    return kept


_MOST_SHARE_UNREAD = 0.5  # beyond it, the column or the encoding is more likely at fault than the records


def _readable(source: Source, y: np.ndarray) -> Source:
    """Return the rows whose record could be read. Raises DataError where that is less than half of them."""
    rows = np.setdiff1d(np.arange(source.n_rows), [*source.unread])
    if len(source.unread) > _MOST_SHARE_UNREAD * source.n_rows:
        raise DataError(f"{note_on_unread(source)}. Is this the column, and the encoding of the file, that you mean?")
    kept = ChosenRows(source, rows, y[rows])
    kept.n_unreadable += len(source.unread)
    kept.notes = (*source.notes, f"{note_on_unread(source)}. They are left out.")
    return kept


_MOST_UNREAD_LISTED = 3


def note_on_unread(source: Source) -> str:
    """Return how many records could not be read, and the first of them, for messages."""
    places = source.places_in_file()
    first = [
        f"{f'record {places[row]}' if source.row_ids is None else repr(str(source.row_ids[row]))} ({reason})"
        for row, reason in [*source.unread.items()][:_MOST_UNREAD_LISTED]
    ]
    more = ", ..." if len(source.unread) > len(first) else ""
    n_unread = f"{len(source.unread):,} of {source.n_rows:,} records"
    return f"{source.name}: {n_unread} cannot be read: {', '.join(first)}{more}"


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
    return WithLabels(source, as_targets(y, source.name, source.places_in_file()))


def _without_marks(y: np.ndarray, missing: object) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of labels, for several tasks with NaN where ``missing`` marks one, and which rows have none."""
    marks = marks_of(missing)
    numbers = [number for number in map(as_number, marks) if number is not None]
    if y.ndim == 2:
        values = np.where(np.isin(y, numbers), np.nan, y) if numbers else y
        return values, np.asarray(np.isnan(values).all(axis=1))
    values = np.ma.getdata(y)
    if marks and is_text(values):
        distinct, place = np.unique(values.astype(object), return_inverse=True)
        is_mark = [any(same_value(str(word).strip(), mark) for mark in marks) for word in distinct]
        return values, np.ma.getmaskarray(y) | np.array(is_mark, dtype=bool)[place]
    # A mark that is text was applied already, when the text was read.
    return values, np.ma.getmaskarray(y) | np.isin(values, numbers)


def _narrowed(y: np.ndarray) -> np.ndarray:
    """Return text no wider than its longest word; other labels unchanged."""
    if y.dtype.kind == "U":
        return y.astype(f"<U{max(1, int(np.char.str_len(y).max()))}")
    return y


def _doubts(source: Source, y: np.ndarray) -> Iterator[str]:
    """Yield notes on labels that may not be what they seem.

    They are words that often stand for a missing value, text beside numbers, and -1 beside 0, 1, ....
    """
    if is_text(y):
        values, counts = np.unique(y, return_counts=True)
        rows = dict(zip(values.tolist(), counts.tolist(), strict=True))
        yield from _doubted_words(source.name, rows)
        yield from notes_on_spellings(source.name, rows, "labels")
        yield from _text_among_numbers(source, y, [*rows])
        return
    if y.dtype.kind != "i" or y.size == 0 or y.min() != -1:
        return
    values = np.unique(y)
    if values.size >= 3 and np.array_equal(values, np.arange(-1, values.size - 1)):
        yield Message(
            "{}: the label -1, in {:,} rows, stands beside 0 to {} and is taken for a class. If it marks rows without "
            "a label, say {missing=-1}.",
            source.name,
            np.count_nonzero(y == -1),
            values[-1],
        )


_MOST_WORDS_LISTED = 8  # most words for missing values that a note lists


def _doubted_words(name: str, rows: dict[str, int]) -> Iterator[str]:
    """Yield a note on the labels that often stand for a missing value; ``rows`` counts the rows of each label."""
    words = sorted(word for word in rows if stands_for_missing(word))
    if not words or len(words) == len(rows):
        return
    if len(words) == 1:
        yield Message(
            "{}: the label {!r}, in {:,} rows, is taken for a class. If it marks rows without a label, say {missing=}.",
            name,
            words[0],
            rows[words[0]],
            words[0],
        )
        return
    yield Message(
        "{}: the labels {} are taken for classes. If they mark rows without a label, say {missing=}.",
        name,
        _listed(words, rows),
        ",".join(words),
    )


def _listed(words: list[str], rows: Mapping[str, int]) -> str:
    """Return the first words, with the number of rows of each, for notes."""
    listed = ", ".join(f"{word!r} ({rows[word]:,} rows)" for word in words[:_MOST_WORDS_LISTED])
    return listed if len(words) <= _MOST_WORDS_LISTED else f"{listed} and {len(words) - _MOST_WORDS_LISTED} more"


def notes_on_spellings(name: str, rows: Mapping[str, int], what: str) -> Iterator[str]:
    """Yield a note on labels or groups that differ in case or blanks only; ``rows`` counts the rows of each.

    >>> next(notes_on_spellings("rows.csv", {"T": 40, "t": 2, "N": 41}, "labels")).split(", and ")[0]
    "rows.csv: the labels 'T' (40 rows), 't' (2 rows) differ in case or blanks only"
    """
    spellings: dict[str, list[str]] = defaultdict(list)
    for word in rows:
        spellings["".join(word.split()).casefold()].append(word)
    alike = [word for words in spellings.values() if len(words) > 1 for word in words]
    if alike:
        yield (
            f"{name}: the {what} {_listed(alike, rows)} differ in case or blanks only, and are taken for different "
            "ones. If they mean the same, write them alike."
        )


def _text_among_numbers(source: Source, y: np.ndarray, words: list[str]) -> Iterator[str]:
    """Yield a note where labels are text although some of them are numbers."""
    why = why_text(words)
    if why is None or not any(map(is_finite_number, words)):
        return
    row = source.places_in_file()[np.flatnonzero(y == why[0])[0]]
    yield f"{source.name}: the labels are text, as {why[0]!r} in row {row} {why[1]}."


def labels_of(source: Source) -> np.ndarray:
    """Return the labels of a source. Raise DataError, which says how to name them, if it has none."""
    return present(source.labels(), source.name)


def present(y: np.ndarray | None, name: str, fitted_with: str | None = None) -> np.ndarray:
    """Return labels. Raise DataError if there are none, with those that a model was fitted with, if they are given."""
    if y is not None:
        return y
    if fitted_with is not None:
        raise DataError(
            Message(
                "{} has no labels. Name them; the model was fitted with {labels=!s}.", name, shlex.quote(fitted_with)
            )
        )
    raise DataError(
        Message(
            "{} has no labels. Name them with {labels}: a file (.npy, .csv, or text with one label per line), a column "
            "of a table, TABLE::COLUMN of another table with the ids of the rows, or ::MEMBER of an .npz, .h5 or .zarr "
            "file. An array or column called y is found without {labels}.",
            name,
        )
    )
