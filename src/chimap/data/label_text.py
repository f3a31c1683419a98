"""Labels from text, encoded as they are read, so that memory does not grow with the length of the words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from chimap._messages import Message
from chimap._unicode import composed
from chimap._validation import DataError
from chimap.data.label_kinds import as_number, is_number, same_value, whole_numbers, why_text

_WORDS_BYTES = 2**26  # limit on all distinct labels together
WIDE_BYTES = 2**27  # largest array of fixed-width text; larger arrays hold references to words instead
_LARGEST = 2**63
_MOST_WORDS_OF_NUMBERS = 2**18  # so many different words that are numbers belong to a column of numbers

# How tables write that a value is missing, in lower case. INSDC, "Missing value reporting", and the habits of R,
# Python, spreadsheets and data bases.
_FOR_MISSING = frozenset(
    (
        "na", "n/a", "n.a.", "#n/a", "nan", "nat", "<na>", "null", "nil", "none", "?", "-", "--", ".", "no data",
        "missing", "unknown", "undefined", "undetermined", "unspecified", "not applicable", "not available",
        "not collected", "not determined", "not given", "not known", "not provided", "not recorded", "not reported",
        "not specified",
        "not stated", "restricted access", "#value!", "#ref!",
    )
)  # fmt: skip


def stands_for_missing(word: str) -> bool:
    """Return whether tables often write this word for a missing value; case is ignored.

    Such a word among the labels is a class, with a note, unless the caller says that it marks missing labels.

    >>> stands_for_missing("Not collected"), stands_for_missing("missing: control sample"), stands_for_missing("gut")
    (True, True, False)
    """
    plain = word.strip().lower()
    return plain in _FOR_MISSING or plain.startswith("missing:")


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


class TextLabels:
    """Labels that come as text, in batches: numbers where each word prints back from its number, else words.

    Each word is kept once, with a code per row. Empty text marks a missing label, NaN does so in a column of numbers,
    and so does ``missing``.

    Parameters
    ----------
    where : str
        File and column, for errors.
    missing : object, default=None
        Further texts that mark a missing label, one or several.
    as_text : bool, default=False
        Whether the file says that the column is text, so that words that are numbers stay words.

    Examples
    --------
    >>> labels = TextLabels("rows.csv")
    >>> labels.add(["cat", "dog", "cat"])
    >>> labels.finish().tolist()
    ['cat', 'dog', 'cat']
    """

    def __init__(self, where: str, missing: object = None, *, as_text: bool = False) -> None:
        self._where, self._marks, self._as_text = where, marks_of(missing), as_text
        self._codes: dict[str, int] = {}
        self._parts: list[np.ndarray] = []  # codes of words, -1 for missing ones; numbers, if ``_is_numbers``
        self._is_numbers = False
        self._n_rows = self._n_bytes = 0

    def add(self, texts: Sequence[str | None]) -> None:
        """Add the labels of the next rows."""
        words: dict[str | None, int] = {}
        codes = np.array([words.setdefault(text, len(words)) for text in texts], dtype=np.int64)
        self.add_coded(list(words), codes)

    def add_coded(self, words: Iterable[str | None], codes: np.ndarray) -> None:
        """Add the labels of the next rows as distinct words and the position of each row's word, -1 if missing."""
        plain = [self._plain(word) for word in words]
        if self._is_numbers:
            self._add_numbers(plain, codes)
        else:
            self._parts.append(np.append(self._places(plain), -1)[codes])
        self._n_rows += len(codes)
        if not self._is_numbers and not self._as_text and len(self._codes) > _MOST_WORDS_OF_NUMBERS:
            self._take_for_numbers()

    def finish(self) -> np.ndarray:
        """Return all labels, of shape (n,): int64, float64 or text, masked where some are missing.

        Raises DataError, naming the row, where a word for missing values stands among numbers.
        """
        if self._is_numbers:
            return _as_labels(np.ma.concatenate(self._parts))
        codes, words = np.concatenate([np.zeros(0, np.int64), *self._parts]), [*self._codes]
        if not self._as_text and (numbers := self._numbers_printed(words, codes)) is not None:
            return numbers
        width = max(1, max((len(word) for word in words), default=1))
        table = np.array([*words, ""], dtype=object if 4 * width * codes.size > WIDE_BYTES else f"<U{width}")
        return masked(table[codes], codes < 0)

    def _numbers_printed(self, words: list[str], codes: np.ndarray) -> np.ndarray | None:
        """Return the numbers that the words print, masked where they are missing or NaN; None if the column is text."""
        printed = [word for word in words if word.lower() != "nan"]
        if words and why_text(printed) is None:
            values = np.append(_values(0 if word.lower() == "nan" else as_number(word) for word in words), 0)
            is_missing = np.array([word.lower() == "nan" for word in words] + [True])
            return _as_labels(np.ma.MaskedArray(values[codes], is_missing[codes]))
        odd = [word for word in printed if stands_for_missing(word) or _is_infinite(word)]
        rest = [word for word in printed if word not in odd]
        if odd and rest and why_text(rest) is None:
            raise self._odd_word(odd[0], rest[0], int(np.flatnonzero(codes == self._codes[odd[0]])[0]))
        return None

    def _plain(self, word: str | None) -> str | None:
        """Return a word without the blanks around it, which are part of it only where the file has types."""
        text = "" if word is None else composed(str(word))
        stripped = text.strip()
        if not stripped or any(same_value(stripped, mark) for mark in self._marks):
            return None
        return text if self._as_text else stripped

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
        """Keep numbers in place of words from here on, if all words so far are numbers: they would fill the memory."""
        words = [*self._codes]
        if all(word.lower() == "nan" or (is_number(word) and not _is_infinite(word)) for word in words):
            codes, self._parts, self._n_rows = self._parts, [], 0
            for part in codes:
                self._add_numbers(list(words), part)
                self._n_rows += part.size
            self._is_numbers, self._codes = True, {words[0]: 0}

    def _add_numbers(self, plain: Sequence[str | None], codes: np.ndarray) -> None:
        numbers: list[int | float] = []
        for place, word in enumerate(plain):
            number = as_number(word or "nan")
            if number is None or _is_infinite(word or ""):
                raise self._odd_word(str(word), next(iter(self._codes)), self._row(place, codes))
            if isinstance(number, int) and not -_LARGEST <= number < _LARGEST:
                raise DataError(
                    f"{self._where}, row {self._row(place, codes)}: {word} does not fit in 64 bits. Write such labels "
                    "as text, with a letter before them, or targets as 1.0e23."
                )
            numbers.append(0 if number != number else number)
        is_missing = np.array([(word or "nan").lower() == "nan" for word in plain] + [True])
        self._parts.append(np.ma.MaskedArray(np.append(_values(numbers), 0)[codes], is_missing[codes]))

    def _row(self, place: int, codes: np.ndarray) -> int:
        return self._n_rows + int(np.flatnonzero(np.asarray(codes) == place)[0])

    def _odd_word(self, word: str, number: str, row: int) -> DataError:
        """Return the error for a word among numbers."""
        if _is_infinite(word):
            return DataError(f"{self._where}, row {row}: {word}. Every label must be finite.")
        return DataError(
            Message(
                "{}, row {}: {!r} among numbers such as {!r}. Mend that line or, if it marks a missing label, say so "
                "with {missing=}.",
                self._where, row, word[:60], number[:60], word[:60],
            )
        )  # fmt: skip


def _values(numbers: Iterable[int | float | None]) -> np.ndarray:
    """Return numbers as int64 if all are whole, else as float64."""
    listed = [*numbers]
    return np.array(listed, dtype=np.int64 if all(isinstance(n, int) for n in listed) else np.float64)


def _is_infinite(word: str) -> bool:
    return word.lower().lstrip("+-") in ("inf", "infinity")


def _as_labels(numbers: np.ma.MaskedArray) -> np.ndarray:
    """Return numbers as int64 if all that are there are whole, and masked only where some are missing."""
    values, missing = np.ma.getdata(numbers), np.ma.getmaskarray(numbers)
    return masked(values if values.dtype.kind == "i" else whole_numbers(values, missing), missing)


def masked(y: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return labels unchanged, or as a masked array where some are missing."""
    return np.ma.MaskedArray(y, missing) if missing.any() else y
