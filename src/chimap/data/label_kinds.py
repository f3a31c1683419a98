"""What labels, groups and ids are, text or numbers: whatever has to know asks here.

Text stays text. A column of a text file holds numbers only if each of its words prints back from its number, so that
"007" and "1E5" remain names. Where labels meet others, such as the classes of a model, and one side is text, both are
compared as text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np

from chimap._messages import Message
from chimap._types import ArrayLike
from chimap._unicode import composed_texts
from chimap._validation import DataError

_END_OF_EXACT_FLOATS = 2.0**53  # up to here float64 holds every whole number
_END_OF_INT64 = 2**63
_MOST_CLASSES_SHOWN = 10  # most classes that an error lists

# Numbers as programs print them: without zeros in front, and with an exponent only if it has a sign or follows a point.
_PRINTED_NUMBER = re.compile(
    r"-?(?:(?:0|[1-9][0-9]*)(?:[eE][-+][0-9]+)?|(?:(?:0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"
)


def is_text(values: np.ndarray) -> bool:
    """Return whether labels, groups or ids are text. Objects are: ``clean_labels`` turns all others into numbers.

    >>> is_text(np.array(["a", "b"], dtype=object)), is_text(np.array([True, False]))
    (True, False)
    """
    return values.dtype.kind in "UOST"


def is_real(values: np.ndarray) -> bool:
    """Return whether labels or groups are numbers of which some are fractions."""
    return values.dtype.kind == "f" and bool(np.any(values != np.round(values)))


def label_type(values: np.ndarray) -> str:
    """Return the kind of labels or groups in words: text, true or false, whole numbers, or numbers."""
    if is_text(values):
        return "text"
    if values.dtype.kind == "b":
        return "true or false"
    return "numbers" if values.dtype.kind == "f" else "whole numbers"


_TIME = re.compile(r"(?:(\d{4,}-\d\d-\d\d)[T ])?(\d\d:\d\d:\d\d)(?:\.(\d*?)0*)?(Z|[-+]\d\d:?\d\d)?")


def time_as_text(text: str) -> str:
    """Return a time that a library prints in the one form that all readers give it; other text unchanged.

    Midnight without a zone is the day alone, as in a text file of days.

    >>> time_as_text("2024-10-27T02:30:00.500000000+0200"), time_as_text("2024-01-31 00:00:00")
    ('2024-10-27 02:30:00.5+02:00', '2024-01-31')
    """
    found = _TIME.fullmatch(text)
    if found is None:
        return text
    day, clock, fraction, zone = found.groups(default="")
    if day and clock == "00:00:00" and not fraction + zone:
        return day
    zone = "+00:00" if zone == "Z" else zone if ":" in zone else f"{zone[:3]}:{zone[3:]}" if zone else ""
    return " ".join(part for part in (day, f"{clock}.{fraction}".rstrip(".") + zone) if part)


def duration_as_text(nanoseconds: int) -> str:
    """Return a duration as pandas prints it, without zeros at its end.

    >>> duration_as_text(86400 * 10**9), duration_as_text(1_500_000_000)
    ('1 days', '0 days 00:00:01.5')
    """
    seconds, fraction = divmod(nanoseconds, 10**9)
    days, seconds = divmod(seconds, 86400)
    if not seconds and not fraction:
        return f"{days} days"
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:09}".rstrip("0").rstrip(".")
    return f"{days} days {'+' if days < 0 else ''}{clock}"


def as_written(value: object) -> object:
    """Return an object as a file of text has it: dates, times, durations, periods and intervals as text.

    >>> as_written(date(2024, 1, 31)), as_written(Decimal("0.5"))
    ('2024-01-31', 0.5)
    """
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, date | datetime | time):
        return time_as_text(value.isoformat())
    if isinstance(value, timedelta):
        nanoseconds = value // timedelta(microseconds=1) * 1000 + getattr(value, "nanoseconds", 0)
        return duration_as_text(nanoseconds)
    if type(value).__name__ in ("Period", "Interval"):
        return str(value)
    return float(value) if isinstance(value, Decimal) else value


def as_array(values: ArrayLike | None) -> np.ndarray:
    """Return labels, groups or ids of any library as an array; objects, dates and times as ``as_written``.

    >>> as_array(np.array(["2024-01-31T10:00", "NaT"], "datetime64[ns]"))
    array(['2024-01-31 10:00:00', None], dtype=object)
    """
    if isinstance(values, np.ma.MaskedArray):
        return values
    arrow = getattr(values, "type", None)
    if getattr(getattr(values, "dtype", None), "is_temporal", bool)():  # polars
        array = _objects(values.to_list())  # type: ignore[union-attr]
    elif getattr(getattr(arrow, "value_type", arrow), "tz", None) is not None:  # numpy has no zones
        array = _objects(values.to_pylist())  # type: ignore[union-attr]
    else:
        array = np.asarray(values)
    if array.dtype.kind in "mM":
        distinct, place = np.unique(array, return_inverse=True)
        return _objects([*map(_moment, distinct)])[place].reshape(array.shape)
    flat = array.reshape(-1).tolist() if array.dtype.kind == "O" else []
    return _objects([*map(as_written, flat)]).reshape(array.shape) if {*map(type, flat)} - _PLAIN else array


_PLAIN = {str, int, float, bool, type(None)}


def _moment(value: np.datetime64 | np.timedelta64) -> str | None:
    """Return a time or a duration of numpy as text, None for "not a time"."""
    if np.isnat(value):
        return None
    if isinstance(value, np.timedelta64):
        return duration_as_text(int(value.astype("timedelta64[ns]").astype(np.int64)))
    return time_as_text(str(value))


def _objects(values: Sequence[object]) -> np.ndarray:
    return np.fromiter(values, dtype=object, count=len(values))


def order_of(labels: object) -> tuple[object, ...] | None:
    """Return the labels of an ordered category of pandas or Arrow, or an Enum of polars, in their order; else None.

    >>> import pandas as pd
    >>> order_of(pd.Categorical(["low", "high"], ["low", "high"], ordered=True)), order_of(["low", "high"])
    (('low', 'high'), None)
    """
    dtype = getattr(labels, "dtype", None)
    if type(dtype).__name__ == "Enum" or getattr(dtype, "ordered", None) is True:
        return tuple(dtype.categories)  # type: ignore[union-attr]
    if getattr(getattr(labels, "type", None), "ordered", None) is True:  # of Arrow
        chunks = getattr(labels, "chunks", [labels])
        return tuple(chunks[0].dictionary.to_pylist()) if chunks else None
    return None


def fixed_width(values: np.ndarray) -> np.ndarray:
    """Return text as an array of characters, which files can hold; other values unchanged.

    >>> fixed_width(np.array(["gut", "skin"], dtype=object)).dtype.str[1:]
    'U4'
    """
    return texts_of(values) if is_text(values) else values


def texts_of(values: np.ndarray) -> np.ndarray:
    """Return labels, groups or ids as text; whole numbers without a point, whatever their type.

    >>> texts_of(np.array([1.0, 7.0])).tolist(), texts_of(np.array([0.5, 1.0])).tolist()
    (['1', '7'], ['0.5', '1.0'])
    """
    values = as_array(values)
    if values.dtype.kind == "S":
        return composed_texts(np.char.decode(values, "utf-8", "replace"))
    if values.dtype.kind == "O":
        values = np.array([_text(value) for value in values.tolist()], dtype=str).reshape(values.shape)
    if values.dtype.kind == "U":
        return composed_texts(values)
    return whole_numbers(values).astype(str) if values.dtype.kind == "f" else values.astype(str)


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    value = as_written(value)
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < _END_OF_EXACT_FLOATS
    return str(int(value)) if is_whole else str(value)  # type: ignore[call-overload]


def as_targets(y: np.ndarray, where: str, rows: np.ndarray | None = None) -> np.ndarray:
    """Return labels as the numbers that a regression needs. Raises DataError, naming the row, for other text.

    ``rows`` are the numbers of the rows in the file, (n,); without them rows are counted from 0.

    >>> as_targets(np.array(["0.50", "1e3"]), "y"), as_targets(np.array(["1E5", "007"]), "y")
    (array([5.e-01, 1.e+03]), array([100000,      7]))
    """
    if not is_text(y):
        return y
    words, place = np.unique(y, return_inverse=True)
    others = {word for word in words.tolist() if not is_finite_number(word)}
    if others:
        first = next(i for i, text in enumerate(y.tolist()) if text in others)
        row = first if rows is None else rows[first]
        raise DataError(
            f"{where}, row {row}: label {str(y[first])[:60]!r}, but a regression needs numbers as targets. Give "
            "numbers, or use a classifier."
        )
    return whole_numbers(np.array([float(word) for word in words.tolist()]))[place]


def places_among(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the place of each label among the classes, -1 for labels that are none of them, as int64 (n,).

    >>> places_among(np.array(["7", "007"]), np.array([1, 7]))
    array([ 1, -1])
    """
    if is_text(y) != is_text(classes) or {y.dtype.kind, classes.dtype.kind} == {"O", "U"}:
        y, classes = texts_of(y), texts_of(classes)
    order = np.argsort(classes, kind="stable")
    place = order[np.searchsorted(classes, y, sorter=order).clip(0, classes.size - 1)]
    return np.where(classes[place] == y, place, -1)


def known_labels(y: np.ndarray, classes: np.ndarray, where: str, rows: np.ndarray | None = None) -> np.ndarray:
    """Return labels in the type of the classes of a model. Raises DataError, naming the row, for an unknown one.

    ``rows`` are the numbers of the rows in the file, (n,); without them rows are counted from 0.
    """
    places = places_among(y, classes)
    unknown = np.flatnonzero(places < 0)
    if unknown.size:
        listed = ", ".join(map(str, classes[:_MOST_CLASSES_SHOWN])) + (
            ", ..." if classes.size > _MOST_CLASSES_SHOWN else ""
        )
        row = unknown[0] if rows is None else rows[unknown[0]]
        kinds = label_type(y), label_type(classes)
        came, known = ("", "") if kinds[0] == kinds[1] else (f" ({kinds[0]})", f"; {kinds[1]}")
        raise DataError(
            f"{where}, row {row}: label {y[unknown[0]]!s}{came} is not among the {classes.size} classes of the model "
            f"({listed}{known}). {unknown.size:,} rows have unknown labels. Remove them, or fit a model with them."
        )
    return classes[places]


def alike(y: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays of labels that can be compared: both as text where one of them is text."""
    if not is_text(y) and not is_text(others):
        return y, others
    return texts_of(y), texts_of(others)


def why_text(words: Sequence[str]) -> tuple[str, str] | None:
    """Return the first distinct word for which a column of a text file is text, and the reason; None for numbers.

    >>> why_text(["1", "2.50"]), why_text(["1", "007"])
    (None, ('007', 'would be 7 as a number'))
    """
    numbers: dict[tuple[float, float], str] = {}
    has_fractions = any("." in word or "e" in word or "E" in word for word in words)
    for word in words:
        number = as_number(word)
        if number is None or not _is_finite(number):
            return word, "is no finite number"
        if not _PRINTED_NUMBER.fullmatch(word):
            return word, f"would be {number} as a number"
        if isinstance(number, int) and not is_int64(number):
            return word, "does not fit in 64 bits"
        value = float(word)
        if has_fractions and isinstance(number, int) and int(value) != number:
            return word, f"would be rounded to {value:.17g}"
        key = (number, math.copysign(1.0, value))  # some programs write both 0.00 and -0.00
        if (other := numbers.setdefault(key, word)) != word:
            return word, f"would be the same number as {other!r}"
    return None


def as_number(text: str) -> int | float | None:
    """Return the number that a text holds, a whole one as int; None for other text.

    >>> as_number("1"), as_number("1.5"), as_number("1_000"), as_number("cat")
    (1, 1.5, None, None)
    """
    if "_" in text:  # Python would skip underscores between digits
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def is_number(text: str) -> bool:
    """Return whether a text is a number; NaN and infinity count as numbers."""
    return as_number(text) is not None


def is_finite_number(text: str) -> bool:
    """Return whether a text is a number other than NaN and infinity."""
    number = as_number(text)
    return number is not None and _is_finite(number)


def same_value(text: str, other: str) -> bool:
    """Return whether two texts are the same word or the same number, such as "-1" and "-1.0"."""
    if text == other:
        return True
    number, other_number = as_number(text), as_number(other)
    return number is not None and number == other_number


def whole_numbers(y: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
    """Return float64 labels as int64 if all are whole, else unchanged; missing labels are ignored.

    >>> whole_numbers(np.array([1.0, -1.0]))
    array([ 1, -1])
    """
    present = y if missing is None else y[~missing]
    whole = (
        np.isfinite(present).all()
        and np.all(present == np.round(present))
        and np.abs(present).max(initial=0.0) < _END_OF_EXACT_FLOATS
    )
    if not whole:
        return y
    return (y if missing is None else np.where(missing, 0, y)).astype(np.int64)


def is_int64(number: int) -> bool:
    """Return whether a whole number fits in 64 bits."""
    return -_END_OF_INT64 <= number < _END_OF_INT64


def _is_finite(number: int | float) -> bool:
    return isinstance(number, int) or math.isfinite(number)


def is_missing(value: object) -> bool:
    """Return whether an object is None, NaN, pandas' NA or empty text."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    return type(value).__name__ in ("NAType", "NaTType") or bool(isinstance(value, float) and value != value)


# How tables write that a value is missing, in lower case. INSDC, "Missing value reporting", and the habits of R,
# Python, spreadsheets and data bases.
_WORDS_FOR_MISSING = (
    "na|n/a|n.a.|#n/a|nan|nat|<na>|null|nil|none|?|-|--|.|no data|missing|unknown|undefined|undetermined|"
    "unspecified|not applicable|not available|not collected|not determined|not given|not known|not provided|"
    "not recorded|not reported|not specified|not stated|restricted access|#value!|#ref!"
)


def words_for_missing() -> list[str]:
    """Return the words that tables often write for a missing value, in small letters, capitals and with a capital."""
    words = _WORDS_FOR_MISSING.split("|")
    return list(dict.fromkeys([*words, *(w.upper() for w in words), *(w.capitalize() for w in words), "NaN"]))


def stands_for_missing(word: str) -> bool:
    """Return whether tables often write this word for a missing value; case is ignored.

    Such a word among the labels is a class, with a note, unless the caller says that it marks missing labels.

    >>> stands_for_missing("Not collected"), stands_for_missing("missing: control sample"), stands_for_missing("gut")
    (True, True, False)
    """
    plain = word.strip().lower()
    return plain in _WORDS_FOR_MISSING.split("|") or plain.startswith("missing:")


def marks_of(missing: object) -> tuple[str, ...]:
    """Return the texts that mark missing labels: one value, a sequence, or a text with commas between the words.

    >>> marks_of(None), marks_of(-1), marks_of(["NA", " ? "]), marks_of("NA,?")
    ((), ('-1',), ('NA', '?'), ('NA,?', 'NA', '?'))
    """
    if missing is None:
        return ()
    if isinstance(missing, str):
        parts = [part.strip() for part in missing.split(",")]
        return (missing.strip(), *(part for part in parts if part)) if len(parts) > 1 else (missing.strip(),)
    several = missing if isinstance(missing, list | tuple | set | frozenset | np.ndarray) else [missing]
    return tuple(str(mark).strip() for mark in several)


def masked(y: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return labels unchanged, or as a masked array where some are missing."""
    return np.ma.MaskedArray(y, missing) if missing.any() else y


def check_binary(y: np.ndarray, name: str) -> None:
    """Raise DataError unless all labels (n, t) of several tasks are 0, 1 or missing."""
    not_binary = np.argwhere(~(np.isnan(y) | (y == 0) | (y == 1)))
    if not_binary.size:
        row, task = not_binary[0]
        raise DataError(
            Message(
                "{}: {task='classify'} needs labels that are 0, 1 or missing in every task; row {}, task {} has {:g}. "
                "Use {task='regress'}, or name one column of classes.",
                name,
                row,
                task,
                y[row, task],
            )
        )
