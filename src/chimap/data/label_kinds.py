"""What labels, groups and ids are, text or numbers: whatever has to know asks here.

Text stays text. A column of a text file holds numbers only if each of its words prints back from its number, so that
"007" and "1E5" remain names. Where labels meet others, such as the classes of a model, and one side is text, both are
compared as text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from chimap._unicode import composed_texts
from chimap._validation import DataError

_EXACT = 2.0**53  # up to here float64 holds every whole number
_LARGEST = 2**63
_SHOWN = 10  # most classes that an error lists

# Numbers as programs print them: without zeros in front, and with an exponent only if it has a sign or follows a point.
_PRINTED = re.compile(
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


def kind_of(values: np.ndarray) -> str:
    """Return the kind of labels or groups in words: text, true or false, whole numbers, or numbers."""
    if is_text(values):
        return "text"
    if values.dtype.kind == "b":
        return "true or false"
    return "numbers" if values.dtype.kind == "f" else "whole numbers"


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
    values = np.asarray(values)
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
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < _EXACT
    return str(int(value)) if is_whole else str(value)  # type: ignore[call-overload]


def numbers_of(texts: np.ndarray) -> np.ndarray | None:
    """Return text labels as numbers, for whoever needs numbers; None if one of them is no finite number.

    >>> numbers_of(np.array(["1E5", "007"])), numbers_of(np.array(["1", "x"]))
    (array([100000,      7]), None)
    """
    words, place = np.unique(texts, return_inverse=True)
    if first_without_number(words) is not None:
        return None
    return whole_numbers(np.array([float(word) for word in words.tolist()]))[place]


def first_without_number(texts: np.ndarray) -> int | None:
    """Return the first place of text that is no finite number, or None."""
    for place, text in enumerate(texts.tolist()):
        number = as_number(text)
        if number is None or not _is_finite(number):
            return place
    return None


def as_targets(y: np.ndarray, where: str, rows: np.ndarray | None = None) -> np.ndarray:
    """Return labels as the numbers that a regression needs. Raises DataError, naming the row, for other text.

    ``rows`` are the numbers of the rows in the file, (n,); without them rows are counted from 0.

    >>> as_targets(np.array(["0.50", "1e3"]), "y")
    array([5.e-01, 1.e+03])
    """
    if not is_text(y):
        return y
    numbers = numbers_of(y)
    if numbers is None:
        place = first_without_number(y)
        row = place if rows is None else rows[place]
        raise DataError(
            f"{where}, row {row}: label {str(y[place])[:60]!r}, but a regression needs numbers as targets. Give "
            "numbers, or use a classifier."
        )
    return numbers


def places_among(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the place of each label among the classes, -1 for labels that are none of them, as int64 (n,).

    >>> places_among(np.array(["7", "007"]), np.array([1, 7]))
    array([ 1, -1])
    """
    if is_text(y) != is_text(classes):
        y, classes = texts_of(y), texts_of(classes)
    order = np.argsort(classes, kind="stable")
    place = order[np.searchsorted(classes, y, sorter=order).clip(0, classes.size - 1)]
    return np.where(classes[place] == y, place, -1)


def known_labels(
    y: np.ndarray, classes: np.ndarray, where: str, rows: np.ndarray | None = None
) -> np.ndarray:
    """Return labels in the type of the classes of a model. Raises DataError, naming the row, for an unknown one.

    ``rows`` are the numbers of the rows in the file, (n,); without them rows are counted from 0.
    """
    places = places_among(y, classes)
    unknown = np.flatnonzero(places < 0)
    if unknown.size:
        listed = ", ".join(map(str, classes[:_SHOWN])) + (", ..." if classes.size > _SHOWN else "")
        row = unknown[0] if rows is None else rows[unknown[0]]
        kinds = kind_of(y), kind_of(classes)
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
        if not _PRINTED.fullmatch(word):
            return word, f"would be {number} as a number"
        if isinstance(number, int) and not -_LARGEST <= number < _LARGEST:
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
        and np.abs(present).max(initial=0.0) < _EXACT
    )
    if not whole:
        return y
    return (y if missing is None else np.where(missing, 0, y)).astype(np.int64)


def _is_finite(number: int | float) -> bool:
    return isinstance(number, int) or math.isfinite(number)
