"""Labels and targets as clean arrays, each missing one masked, and the rows of a source that have one."""

from __future__ import annotations

import numbers
import os
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import ArrayLike
from chimap._unicode import composed_texts
from chimap._validation import DataError
from chimap.data.label_kinds import (
    WIDE_BYTES,
    as_array,
    as_number,
    as_targets,
    is_finite_number,
    is_missing,
    is_text,
    marks_of,
    masked,
    same_value,
    stands_for_missing,
    texts_of,
    whole_numbers,
    why_text,
)
from chimap.data.reading import readers
from chimap.data.source import Source
from chimap.data.views import ChosenRows, WithLabels

if TYPE_CHECKING:
    import numpy.typing as npt
    from sklearn.base import BaseEstimator


class IgnoreLabels(Enum):
    """Labels that nobody needs, as in rows to predict: they may be anything, so they are not even looked at."""

    IGNORE_LABELS = "unread"


IGNORE_LABELS = IgnoreLabels.IGNORE_LABELS


Labels: TypeAlias = "str | int | os.PathLike[str] | npt.ArrayLike | MarkedLabels | IgnoreLabels | None"
"""Labels as users give them: one label per row, or the column or file that holds them; None looks for them."""


@dataclass(frozen=True)
class MarkedLabels:
    """Labels as ``read_labels`` takes them, and the value that marks missing ones.

    Parameters
    ----------
    labels : str or path
        The labels.
    missing : object
        The value that marks a missing label.
    """

    labels: str | os.PathLike[str]
    missing: object


def given_labels(labels: Labels, n_rows: int) -> np.ndarray | None:
    """Return labels that are values or a file of values, of shape (n_rows,) or (n_rows, t); None for none.

    Raises FileNotFoundError or DataError for a file that cannot be read, and DataError for labels that do not fit.
    """
    if labels is None or labels is IGNORE_LABELS:
        return None
    if isinstance(labels, str | os.PathLike | MarkedLabels):
        return readers().read_labels(labels, n_rows)
    return clean_labels(labels, n_rows, "labels")


def check_labels(y: ArrayLike, n_rows: int, where: str) -> np.ndarray:
    """Return labels as one array of shape (n_rows,): int64, float64, bool or text, with none missing.

    A single column counts as one axis; a matrix of several columns holds several tasks and comes back as float64
    (n_rows, t).

    Parameters
    ----------
    y : array of shape (n_rows,) or (n_rows, t)
        The labels.
    n_rows : int
        Number of rows.
    where : str
        Name of the labels, for errors.

    Raises
    ------
    DataError
        For NaN, infinity, missing values and mixtures of text and numbers, naming the row, and for a length other than
        ``n_rows``. In a matrix, NaN marks a missing entry and is allowed.

    Examples
    --------
    >>> check_labels([[1], [0]], 2, "y")
    array([1, 0])
    """
    labels = clean_labels(y, n_rows, where)
    if np.ma.is_masked(labels):
        raise DataError(
            f"{where}, row {np.flatnonzero(np.ma.getmaskarray(labels))[0]}: no label. Every row needs one: fill it, or "
            "remove the rows without a label."
        )
    return labels


def clean_labels(y: ArrayLike, n_rows: int, where: str) -> np.ndarray:
    """Return labels as ``check_labels`` does, but masked where they are missing: None, NaN, masked, or empty text.

    A matrix of shape (n_rows, t) holds the labels of several tasks, see ``clean_targets``: its missing entries are NaN.
    """
    y = y.toarray() if _arrays.is_sparse(y) else y
    try:
        values = as_array(y)
    except (ValueError, TypeError) as error:
        raise DataError(f"{where}: not a list of labels ({error}). Give one label per row.") from error
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.reshape(-1)
    if values.ndim not in (1, 2):
        raise DataError(
            f"{where}: expected one label per row, shape ({n_rows},), or one per row and task, "
            f"got shape {values.shape}."
        )
    if values.shape[0] != n_rows:
        raise DataError(
            f"{where}: {values.shape[0]} labels for {n_rows} rows. Give exactly one label per row, in their order."
        )
    if values.ndim == 2:
        return clean_targets(values, values.shape[1], where)
    mask, data = np.ma.getmaskarray(values), np.ma.getdata(values)
    read = _from_objects if data.dtype.kind in "OT" else _clean
    data, missing = read(data, mask, where)
    return masked(data, missing)


def _clean(y: np.ndarray, missing: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return labels in a plain type, and a mask of the missing ones."""
    if y.dtype.kind == "b":
        return y, missing
    if y.dtype.kind == "S":
        try:
            y = np.char.decode(y, "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{where}: labels that are not text in UTF-8 ({error}). Write them again.") from error
    if y.dtype.kind == "U":
        y = composed_texts(y)
        return y, missing | (y == "")
    if y.dtype.kind in "iu":
        if y.dtype.kind == "u" and y.size and y.max() > np.iinfo(np.int64).max:
            row = int(np.argmax(y))
            raise DataError(f"{where}, row {row}: {y[row]} does not fit in 64 bits. Use text.")
        return y.astype(np.int64), missing  # arithmetic on labels must not wrap around in 8 bits
    if y.dtype.kind != "f":
        raise DataError(f"{where}: expected numbers or text, got dtype {y.dtype}.")
    missing = missing | np.isnan(y)
    bad = np.flatnonzero(~np.isfinite(y) & ~missing)
    if bad.size:
        raise DataError(f"{where}, row {bad[0]}: {y[bad[0]]} is no finite number. Mend it, or leave it empty.")
    y = y.astype(np.float64)
    return (whole_numbers(y, missing) if missing.any() else y), missing


def _from_objects(y: np.ndarray, missing: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return labels of Python objects, all text or all numbers, in a plain type, and a mask of the missing ones."""
    y = as_array(y.astype(object))
    missing = missing | np.array([is_missing(value) for value in y], dtype=bool)
    present = np.flatnonzero(~missing)
    label_type = str if present.size and isinstance(y[present[0]], str) else numbers.Real
    for row in present:
        if isinstance(y[row], list | tuple | set | dict | np.ndarray):
            raise DataError(
                f"{where}, row {row}: {type(y[row]).__name__}, {str(y[row])[:60]}. A label is a single value; give "
                "rows with several labels as a matrix of 0 and 1, with a column for each label."
            )
        if not isinstance(y[row], label_type):
            raise DataError(
                f"{where}, row {row}: {y[row]!r}. Labels must be all text or all numbers; mend that row or, if it "
                "marks a missing label, say so with missing=."
            )
    if label_type is str:
        return _narrow(composed_texts(np.where(missing, "", y))), missing
    try:
        values = np.array(y[present].tolist())
        if values.dtype == object:
            raise OverflowError("a whole number that exceeds 64 bits")
    except (OverflowError, ValueError) as error:
        raise DataError(f"{where}: {error}. Labels that exceed 64 bits must be text.") from error
    clean, _ = _clean(values, np.zeros(values.size, dtype=bool), where)
    full = np.zeros(y.size, dtype=clean.dtype)
    full[present] = clean
    return full, missing


def _narrow(words: np.ndarray) -> np.ndarray:
    """Return words as an array of text, or unchanged where a long word would make that array large."""
    width = max((len(word) for word in words), default=1)
    return words if 4 * width * words.size > WIDE_BYTES else words.astype(str)


def clean_targets(Y: ArrayLike, n_tasks: int, where: str) -> np.ndarray:
    """Return labels of several tasks as float64 of shape (n, t), with NaN for missing entries.

    Missing entries are None, NaN, pandas' NA, empty text, or masked.

    Parameters
    ----------
    Y : array, masked array, data frame, list or sparse matrix of shape (n, t)
        The labels.
    n_tasks : int
        Number of tasks, t.
    where : str
        Name of the labels, for errors.

    Raises
    ------
    DataError
        For text and infinity, naming row and task, and for another number of tasks.

    Examples
    --------
    >>> clean_targets([[1, None], [0, 1]], 2, "y")
    array([[ 1., nan],
           [ 0.,  1.]])
    """
    Y = Y.toarray() if _arrays.is_sparse(Y) else Y
    values = Y if isinstance(Y, np.ma.MaskedArray) else np.asarray(Y)
    if values.ndim != 2 or values.shape[1] != n_tasks:
        raise DataError(f"{where}: expected labels of {n_tasks} tasks, (rows, {n_tasks}), got shape {values.shape}.")
    mask, values = np.ma.getmaskarray(values), np.ma.getdata(values)
    if is_text(values):
        values = _numbers(values, where)
    if values.dtype.kind not in "fiub":
        raise DataError(f"{where}: expected numbers, got dtype {values.dtype}.")
    targets = np.where(mask, np.nan, values.astype(np.float64))
    bad = np.isinf(targets)
    if bad.any():
        row, task = np.argwhere(bad)[0]
        raise DataError(
            f"{where}, row {row}, task {task}: {targets[row, task]}. Labels must be finite, or NaN if missing."
        )
    return targets


def task_column(values: np.ndarray, where: str) -> np.ndarray:
    """Return the labels (n,) of one task as numbers, NaN where one is missing. Raises DataError for text."""
    return clean_targets(np.ma.MaskedArray(values)[:, None], 1, where)[:, 0]


def _numbers(values: np.ndarray, where: str) -> np.ndarray:
    """Return Python objects as numbers, with NaN for missing ones."""
    numbers = np.full(values.shape, np.nan)
    for (row, task), value in np.ndenumerate(texts_of(values) if values.dtype.kind == "S" else values):
        is_blank = isinstance(value, str) and not value.strip()
        if value is None or type(value).__name__ in ("NAType", "NaTType") or is_blank:
            continue
        number = as_number(value) if isinstance(value, str) else value
        if not isinstance(number, Real):
            raise DataError(
                f"{where}, row {row}, task {task}: {str(value)!r}. Labels of several tasks must be numbers, or NaN if "
                "missing; give text labels of a single task as a single column."
            )
        numbers[row, task] = number
    return numbers


def plain_labels(y: Any, X: object) -> ArrayLike:
    """Return the labels of a pandas series with an extension dtype as an array of numbers, booleans or objects.

    Other labels are returned unchanged. Raises DataError, naming the row, for missing labels: None, NaN among objects,
    and empty text; and for text that would name a column of the rows X.

    >>> import pandas as pd
    >>> X = np.eye(2)
    >>> plain_labels(pd.Series([2, 1], dtype="Int64"), X), plain_labels(pd.Series(["a", "b"], dtype="string"), X)
    (array([2, 1]), array(['a', 'b'], dtype=object))
    """
    if isinstance(y, str):
        raise DataError(
            f"y={y!r} names a column of a data frame; X is {type(X).__name__}. Give the labels as an array (n,)."
        )
    dtype = getattr(y, "dtype", None)
    if hasattr(y, "to_pylist") or hasattr(dtype, "is_temporal"):  # Arrow and polars
        y = as_array(y)
    if not hasattr(dtype, "na_value") or not hasattr(y, "isna"):
        if isinstance(y, list | tuple):
            _check_none_missing(np.array(y, dtype=object))  # objects, because NaN converted to text would be a class
        elif isinstance(y, np.ndarray) or getattr(dtype, "kind", "") == "O":
            _check_none_missing(np.asarray(y))
        return y.astype(object) if getattr(dtype, "kind", "") == "T" else y
    _refuse_missing(np.asarray(y.isna()))
    plain = getattr(dtype, "numpy_dtype", np.dtype(object))
    return np.asarray(y.to_numpy(dtype=plain if plain.kind in "iufb" else object))


def _check_none_missing(y: np.ndarray) -> None:
    """Refuse text and objects, of shape (n,), in which a label is missing: None, NaN and empty text."""
    if y.ndim == 1 and is_text(y):
        _refuse_missing(np.array([is_missing(value) for value in y], dtype=bool))


def _refuse_missing(is_missing: np.ndarray) -> None:
    missing = np.flatnonzero(is_missing)
    if missing.size:
        raise DataError(
            f"y, row {missing[0]}: no label ({missing.size:,} of {is_missing.size:,} are missing). Leave these rows "
            "out, as open_source(X, y) and fit_source do."
        )


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
    if y.ndim == 2:
        return _with_entries(source, y, missing)
    is_missing = np.ma.getmaskarray(y) | _marked(y, missing)
    values = np.ma.getdata(y)
    if not is_missing.any():
        source.notes = (*source.notes, *(note for note in _doubts(source, values) if note not in source.notes))
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


def _with_entries(source: Source, y: np.ndarray, missing: object) -> Source:
    """Return the rows that have a label in at least one task. Raises DataError where there is none."""
    numbers = [number for number in map(as_number, marks_of(missing)) if number is not None]
    y = np.where(np.isin(y, numbers), np.nan, y) if numbers else y
    is_missing = np.isnan(y)
    rows = np.flatnonzero(~is_missing.all(axis=1))
    if rows.size == 0:
        raise NoLabelsError(
            Message("{}: every label is missing. Name other columns or another file with {labels}.", source.name)
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
    listed = ", ".join(f"{word!r} ({rows[word]:,} rows)" for word in words[:_MOST_WORDS_LISTED])
    more = "" if len(words) <= _MOST_WORDS_LISTED else f" and {len(words) - _MOST_WORDS_LISTED} more"
    yield Message(
        "{}: the labels {}{} are taken for classes. If they mark rows without a label, say {missing=}.",
        name,
        listed,
        more,
        ",".join(words),
    )


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
        listed = ", ".join(f"{word!r} ({rows[word]:,} rows)" for word in alike[:_MOST_WORDS_LISTED])
        more = "" if len(alike) <= _MOST_WORDS_LISTED else f" and {len(alike) - _MOST_WORDS_LISTED} more"
        yield (
            f"{name}: the {what} {listed}{more} differ in case or blanks only, and are taken for different ones. If "
            "they mean the same, write them alike."
        )


def _text_among_numbers(source: Source, y: np.ndarray, words: list[str]) -> Iterator[str]:
    """Yield a note where labels are text although some of them are numbers."""
    why = why_text(words)
    if why is None or not any(map(is_finite_number, words)):
        return
    row = source.places_in_file()[np.flatnonzero(y == why[0])[0]]
    yield f"{source.name}: the labels are text, as {why[0]!r} in row {row} {why[1]}."


def labels_of(source: Source, model: BaseEstimator | None = None) -> np.ndarray:
    """Return the labels of a source. Raise DataError, which says how to name them, if it has none."""
    return present(source.labels(), source.name, model)


def present(y: np.ndarray | None, name: str, model: BaseEstimator | None = None) -> np.ndarray:
    """Return labels. Raise DataError if there are none, with the labels that ``model``, if given, was fitted with."""
    if y is not None:
        return y
    fitted_with = (getattr(model, "training_", None) or {}).get("labels")
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
