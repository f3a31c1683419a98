"""Labels and targets of any type as clean arrays, each missing one masked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from enum import Enum
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import ArrayLike
from chimap._unicode import composed
from chimap._validation import DataError
from chimap.data.label_kinds import (
    as_array,
    as_number,
    is_int64,
    is_missing,
    is_number,
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

if TYPE_CHECKING:
    import numpy.typing as npt


class IgnoreLabels(Enum):
    """Labels that nobody needs, as in rows to predict: they may be anything, so they are not even looked at."""

    IGNORE_LABELS = "unread"


IGNORE_LABELS = IgnoreLabels.IGNORE_LABELS


Labels: TypeAlias = "str | int | os.PathLike[str] | npt.ArrayLike | IgnoreLabels | None"
"""Labels as users give them: one label per row, or the column or file that holds them; None looks for them."""


def given_labels(labels: Labels, n_rows: int) -> np.ndarray | None:
    """Return labels that are values or a file of values, of shape (n_rows,) or (n_rows, t); None for none.

    Raises FileNotFoundError or DataError for a file that cannot be read, and DataError for labels that do not fit.
    """
    if labels is None or labels is IGNORE_LABELS:
        return None
    if isinstance(labels, str | os.PathLike):
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
            f"{where}, row {np.argmax(np.ma.getmaskarray(labels))}: no label. Every row needs one: fill it, or remove "
            "the rows without a label."
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
    column = LabelColumn(where)
    column.add(values)
    return column.finish()


def numbers_or_text(texts: Sequence[str | None], where: str, missing: object = None) -> np.ndarray:
    """Return the labels of a column of a text file, see ``LabelColumn``.

    >>> numbers_or_text(["1", "2"], "y"), numbers_or_text(["1", "02"], "y")
    (array([1, 2]), array(['1', '02'], dtype='<U2'))
    """
    column = LabelColumn(where, missing, as_text=False)
    column.add_texts(texts)
    return column.finish()


_WORDS_BYTES = 2**26  # limit on all distinct labels together
WIDE_BYTES = 2**27  # largest array of fixed-width text; larger arrays hold references to words instead
_MOST_WORDS_OF_NUMBERS = 2**18  # so many different words that are numbers belong to a column of numbers


class LabelColumn:
    """A column of labels, taken in batches of any type: whatever has labels, in memory or in a file, makes them by it.

    Labels are numbers or words. Each word is kept once, with a code per row. None, NaN, masked values, empty text and
    ``missing`` mark missing labels. A column of a text file holds numbers if each of its words prints back from its
    number; NaN is missing there.

    Parameters
    ----------
    where : str
        Name of the labels, or file and column, for errors.
    missing : object, default=None
        Further texts that mark a missing label, one or several.
    as_text : bool, default=True
        Whether words that are numbers stay words. False for text files, which do not tell numbers from text.

    Examples
    --------
    >>> labels = LabelColumn("rows.csv", as_text=False)
    >>> labels.add(["7", "", "8"])
    >>> labels.add_coded(["9"], np.array([0, -1]))
    >>> labels.finish().tolist()
    [7, None, 8, 9, None]
    """

    def __init__(self, where: str, missing: object = None, *, as_text: bool = True) -> None:
        self._where, self._marks, self._as_text = where, marks_of(missing), as_text
        self.order: tuple[object, ...] | None = None  # of an ordered category
        self._codes: dict[str, int] = {}
        self._parts: list[np.ndarray] = []  # codes of words, -1 for missing ones; masked numbers, if ``_is_numbers``
        self._is_numbers = False
        self.n_rows = self._n_bytes = 0

    def add(self, values: ArrayLike) -> None:
        """Add the labels of the next rows: numbers, text or objects, masked or not.

        Raises DataError, naming the row, for infinity, numbers that exceed 64 bits, text among numbers, and what is no
        single value.
        """
        values = as_array(values)
        missing, y = np.ma.getmaskarray(values), np.ma.getdata(values)
        y = as_array(y.astype(object)) if y.dtype.kind in "OT" else y
        if y.dtype.kind == "O" and not {*map(type, y.tolist())} <= {str, type(None)}:
            y, missing = self._plain_objects(y, missing)
        elif y.dtype.kind == "S":
            y = self._decoded(y)
        elif y.dtype.kind == "f":
            missing = missing | np.isnan(y)
        if y.size and missing.all():
            self.add_coded([], np.full(y.size, -1))
        elif y.dtype.kind in "UO":
            self.add_texts(np.where(missing, "", y).tolist())
        else:
            self._add_numbers(y, missing)

    def add_texts(self, texts: Sequence[str | None]) -> None:
        """Add the labels of the next rows as text."""
        words: dict[str | None, int] = {}
        codes = np.array([words.setdefault(text, len(words)) for text in texts], dtype=np.int64)
        self.add_coded(list(words), codes)

    def add_coded(self, words: Iterable[str | None], codes: np.ndarray) -> None:
        """Add the labels of the next rows as distinct words and the position of each row's word, -1 if missing."""
        plain = [self._plain(word) for word in words]
        if self._is_numbers:
            self._add_printed(plain, codes)
            return
        self._append(np.append(self._places(plain), -1)[codes])
        is_long = not self._as_text and len(self._codes) > _MOST_WORDS_OF_NUMBERS  # its words would fill the memory
        if is_long and all(is_number(word) and not _is_infinite(word) for word in self._codes):
            self._take_for_numbers()

    def finish(self) -> np.ndarray:
        """Return all labels, of shape (n,): int64, float64, bool or text, masked where some are missing.

        Raises DataError, naming the row, where a word for missing values stands among numbers of a text file.
        """
        if self._is_numbers:
            numbers = self._parts[0] if len(self._parts) == 1 else np.ma.concatenate(self._parts)
            return _as_labels(numbers, are_printed=bool(self._codes))
        codes, words = np.concatenate([np.zeros(0, np.int64), *self._parts]), [*self._codes]
        if not self._as_text and (numbers := self._numbers_printed(words, codes)) is not None:
            return numbers
        width = max(1, max((len(word) for word in words), default=1))
        table = np.array([*words, ""], dtype=object if 4 * width * codes.size > WIDE_BYTES else f"<U{width}")
        return masked(table[codes], codes < 0)

    def _append(self, part: np.ndarray) -> None:
        self._parts.append(part)
        self.n_rows += len(part)

    def _plain_objects(self, y: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return objects that are all numbers as an array of these, or all text, and which of them are missing."""
        missing = missing | np.array([is_missing(value) for value in y], dtype=bool)
        present = np.flatnonzero(~missing)
        label_type = str if present.size and isinstance(y[present[0]], str) else Real
        for row in present:
            if isinstance(y[row], list | tuple | set | dict | np.ndarray):
                raise DataError(
                    f"{self._where}, row {self.n_rows + row}: {type(y[row]).__name__}, {str(y[row])[:60]}. A label is "
                    "a single value; give rows with several labels as a matrix of 0 and 1, with a column for each "
                    "label."
                )
            if not isinstance(y[row], label_type):
                raise self._of_another_type(y[row], int(row))
        if label_type is str:
            return y, missing
        try:
            values = np.array(y[present].tolist())
            if values.dtype == object:
                raise OverflowError("a whole number that exceeds 64 bits")
        except (OverflowError, ValueError) as error:
            raise DataError(f"{self._where}: {error}. Labels that exceed 64 bits must be text.") from error
        numbers = np.zeros(y.size, dtype=values.dtype)
        numbers[present] = values
        return numbers, missing

    def _decoded(self, y: np.ndarray) -> np.ndarray:
        try:
            return np.char.decode(y, "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{self._where}: labels that are not text in UTF-8 ({error}). Write them again.") from error

    def _add_numbers(self, y: np.ndarray, missing: np.ndarray) -> None:
        """Add labels that have a type of numbers."""
        if y.dtype.kind not in "biuf":
            raise DataError(f"{self._where}: expected numbers or text, got dtype {y.dtype}.")
        if self._codes:
            row = int(np.argmin(missing))
            raise self._of_another_type(y[row].item(), row)
        if y.dtype.kind == "u" and y.size and y.max() > np.iinfo(np.int64).max:
            row = int(np.argmax(y))
            raise DataError(f"{self._where}, row {self.n_rows + row}: {y[row]} does not fit in 64 bits. Use text.")
        bad = np.flatnonzero(~np.isfinite(y) & ~missing)
        if bad.size:
            raise DataError(
                f"{self._where}, row {self.n_rows + bad[0]}: {y[bad[0]]} is no finite number. Mend it, or leave it "
                "empty."
            )
        if not self._is_numbers:
            self._take_for_numbers()
        kind = {"b": np.bool_, "f": np.float64}.get(y.dtype.kind, np.int64)  # arithmetic must not wrap around in 8 bits
        self._append(np.ma.MaskedArray(y.astype(kind), missing))

    def _numbers_printed(self, words: list[str], codes: np.ndarray) -> np.ndarray | None:
        """Return the numbers that the words print, masked where they are missing or NaN; None if the column is text."""
        printed = [word for word in words if word.lower() != "nan"]
        if words and why_text(printed) is None:
            values = np.append(_values(0 if word.lower() == "nan" else as_number(word) for word in words), 0)
            is_missing = np.array([word.lower() == "nan" for word in words] + [True])
            return _as_labels(np.ma.MaskedArray(values[codes], is_missing[codes]), are_printed=True)
        odd = [word for word in printed if stands_for_missing(word) or _is_infinite(word)]
        rest = [word for word in printed if word not in odd]
        if odd and rest and why_text(rest) is None:
            raise self._odd_word(odd[0], rest[0], int(np.flatnonzero(codes == self._codes[odd[0]])[0]))
        return None

    def _plain(self, word: str | None) -> str | None:
        """Return a word without the blanks around it."""
        text = "" if word is None else composed(str(word)).strip()
        is_mark = bool(self._marks) and any(same_value(text, mark) for mark in self._marks)
        return None if not text or is_mark else text

    def _places(self, plain: list[str | None]) -> np.ndarray:
        """Return the place of each word among all words so far, -1 for missing ones."""
        out = np.full(len(plain), -1)
        for place, word in enumerate(plain):
            if word is None:
                continue
            if word not in self._codes:
                self._n_bytes += len(word)
                if self._n_bytes > _WORDS_BYTES:
                    raise DataError(
                        f"{self._where}: more than {_WORDS_BYTES >> 20} MiB of different labels, such as "
                        f"{word[:40]!r}. Labels are names of classes; is this the column of labels?"
                    )
            out[place] = self._codes.setdefault(word, len(self._codes))
        return out

    def _take_for_numbers(self) -> None:
        """Keep numbers in place of words, of which all so far are numbers, from here on."""
        words, parts = [*self._codes], self._parts
        self._parts, self.n_rows, self._is_numbers = [], 0, True
        for part in parts:
            self._add_printed(words, part)
        self._codes = dict.fromkeys(words[:1], 0)

    def _add_printed(self, plain: Sequence[str | None], codes: np.ndarray) -> None:
        """Add labels as the numbers that words print, with the position of each row's word, -1 if missing."""
        numbers: list[int | float] = []
        for place, word in enumerate(plain):
            number = as_number(word or "nan")
            if word is not None and not self._codes:  # numbers that were not printed
                raise self._of_another_type(word, self._first_row(place, codes) - self.n_rows)
            if number is None or _is_infinite(word or ""):
                raise self._odd_word(str(word), next(iter(self._codes)), self._first_row(place, codes))
            if isinstance(number, int) and not is_int64(number):
                raise DataError(
                    f"{self._where}, row {self._first_row(place, codes)}: {word} does not fit in 64 bits. Write such "
                    "labels as text, with a letter before them, or targets as 1.0e23."
                )
            numbers.append(0 if number != number else number)
        is_missing = np.array([(word or "nan").lower() == "nan" for word in plain] + [True])
        values = np.append(_values(numbers), 0) if numbers else np.zeros(1, dtype=bool)  # which any number may follow
        self._append(np.ma.MaskedArray(values[codes], is_missing[codes]))

    def _first_row(self, place: int, codes: np.ndarray) -> int:
        return self.n_rows + int(np.flatnonzero(np.asarray(codes) == place)[0])

    def _of_another_type(self, value: object, row: int) -> DataError:
        """Return the error for a number among text, or text among numbers."""
        return DataError(
            f"{self._where}, row {self.n_rows + row}: {value!r}. Labels must be all text or all numbers; mend that row "
            "or, if it marks a missing label, say so with missing=."
        )

    def _odd_word(self, word: str, number: str, row: int) -> DataError:
        """Return the error for a word among numbers."""
        if _is_infinite(word):
            return DataError(f"{self._where}, row {row}: {word} is no finite number. Mend it, or leave it empty.")
        return DataError(
            Message(
                "{}, row {}: {!r} among numbers such as {!r}. Mend that line or, if it marks a missing label, say so "
                "with {missing=}.",
                self._where,
                row,
                word[:60],
                number[:60],
                word[:60],
            )
        )


def _values(numbers: Iterable[int | float | None]) -> np.ndarray:
    """Return numbers as int64 if all are whole, else as float64."""
    listed = [*numbers]
    return np.array(listed, dtype=np.int64 if all(isinstance(n, int) for n in listed) else np.float64)


def _is_infinite(word: str) -> bool:
    return word.lower().lstrip("+-") in ("inf", "infinity")


def _as_labels(numbers: np.ndarray, *, are_printed: bool) -> np.ndarray:
    """Return numbers, as int64 where all are whole and are floats because of a gap or as they were printed."""
    values, missing = np.ma.getdata(numbers), np.ma.getmaskarray(numbers)
    may_be_whole = values.dtype.kind == "f" and (are_printed or bool(missing.any()))
    return masked(whole_numbers(values, missing) if may_be_whole else values, missing)


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
        if is_missing(value):
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
    kind = getattr(dtype, "kind", "")
    if hasattr(y, "to_pylist") or hasattr(dtype, "is_temporal"):  # Arrow and polars
        y = as_array(y)
    is_typed = hasattr(dtype, "na_value") and hasattr(y, "isna")
    missing = np.zeros(0, dtype=bool)
    if is_typed:
        missing = np.asarray(y.isna())
    elif isinstance(y, list | tuple | np.ndarray) or kind == "O":
        # Lists as objects, because NaN converted to text would be a class.
        values = np.array(y, dtype=object) if isinstance(y, list | tuple) else np.asarray(y)
        if values.ndim == 1 and is_text(values):
            missing = np.array([is_missing(value) for value in values], dtype=bool)
    if missing.any():
        raise DataError(
            f"y, row {np.argmax(missing)}: no label ({missing.sum():,} of {missing.size:,} are missing). Leave these "
            "rows out, as open_source(X, y) and fit_source do."
        )
    if not is_typed:
        return y.astype(object) if kind == "T" else y
    plain = getattr(dtype, "numpy_dtype", np.dtype(object))
    return np.asarray(y.to_numpy(dtype=plain if plain.kind in "iufb" else object))
