"""Labels from text, encoded as they are read, so that memory does not grow with the length of the words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError

_WORDS_BYTES = 2**26  # limit on all distinct labels together
WIDE_BYTES = 2**27  # largest array of fixed-width text; larger arrays hold references to words instead
_LARGEST = 2**63
MISSING = ("", "nan", "<na>")  # how tables write a missing label, in lower case; case is ignored


class TextLabels:
    """Labels that come as text, in batches: numbers where all of them are numbers, else words.

    Each word is kept once, with a code per row. Empty text and NaN mark a missing label, and so does ``missing``.

    Parameters
    ----------
    where : str
        File and column, for errors.
    missing : object, default=None
        A further text that marks a missing label.
    as_text : bool, default=False
        Whether words that are numbers stay words.

    Examples
    --------
    >>> labels = TextLabels("rows.csv")
    >>> labels.add(["cat", "dog", "cat"])
    >>> labels.finish().tolist()
    ['cat', 'dog', 'cat']
    """

    def __init__(self, where: str, missing: object = None, *, as_text: bool = False) -> None:
        self._where, self._missing = where, None if missing is None else str(missing).strip()
        self._codes: dict[str, int] = {}
        self._parts: list[np.ma.MaskedArray] = []
        self._first: str | None = None
        self._is_number, self._as_words = False, as_text
        self._n_rows = self._n_before = self._n_bytes = 0

    def add(self, texts: Sequence[str | None]) -> None:
        """Add the labels of the next rows."""
        words: dict[str | None, int] = {}
        codes = np.array([words.setdefault(text, len(words)) for text in texts], dtype=np.int64)
        self.add_coded(list(words), codes)

    def add_coded(self, words: Sequence[str | None], codes: np.ndarray) -> None:
        """Add the labels of the next rows as distinct words and the position of each row's word, -1 if missing."""
        plain = [None if self._is_missing(word) else str(word).strip() for word in words]
        start, self._n_rows = self._n_rows, self._n_rows + len(codes)
        if self._first is None:
            self._first = next((word for word in plain if word is not None), None)
            if self._first is None:  # all labels are missing so far, so their type is still unknown
                self._n_before = self._n_rows
                return
            self._is_number = not self._as_words and as_number(self._first) is not None
        values = self._numbers(plain, codes, start) if self._is_number else self._words(plain, codes, start)
        missing = np.array([word is None for word in plain] + [True])  # the last entry serves code -1
        self._parts.append(np.ma.MaskedArray(np.append(values, 0)[codes], missing[codes]))

    def finish(self) -> np.ndarray:
        """Return all labels, of shape (n,): int64, float64 or text, masked where some are missing."""
        dtype = np.result_type(np.int64, *self._parts)
        before = np.ma.MaskedArray(np.zeros(self._n_before, dtype), True)
        y = np.ma.concatenate([before, *self._parts])
        values, missing = np.ma.getdata(y), np.ma.getmaskarray(y)
        if not self._is_number:
            return masked(self._as_text(values), missing)
        return masked(values if dtype.kind == "i" else whole_numbers(values, missing), missing)

    def _as_text(self, codes: np.ndarray) -> np.ndarray:
        words = [*self._codes] or [""]
        width = max(1, max(len(word) for word in words))
        table = np.array(words, dtype=object if 4 * width * codes.size > WIDE_BYTES else f"<U{width}")
        return table[codes]

    def _words(self, plain: list[str | None], codes: np.ndarray, start: int) -> np.ndarray:
        out = np.zeros(len(plain), dtype=np.int64)
        for place, word in enumerate(plain):
            if word is None:
                continue
            if word not in self._codes:
                if not self._as_words and as_number(word) is not None:
                    self._refuse_mixture(word, place, codes, start)
                self._n_bytes += len(word)
                if self._n_bytes > _WORDS_BYTES:
                    raise DataError(
                        f"{self._where}: more than {_WORDS_BYTES >> 20} MiB of different labels, such as "
                        f"{word[:40]!r}. Labels are names of classes; is this the column of labels?"
                    )
            out[place] = self._codes.setdefault(word, len(self._codes))
        return out

    def _numbers(self, plain: list[str | None], codes: np.ndarray, start: int) -> np.ndarray:
        values = [0 if word is None else as_number(word) for word in plain]
        for place, value in enumerate(values):
            if value is None:
                self._refuse_mixture(str(plain[place]), place, codes, start)
            elif isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
                where = f"{self._where}, row {self._row(place, codes, start)}"
                raise DataError(
                    f"{where}: {plain[place]} does not fit in 64 bits. Write such labels as text, with a "
                    "letter before them, or targets as 1e23."
                )
            elif not np.isfinite(value):
                raise DataError(
                    f"{self._where}, row {self._row(place, codes, start)}: {plain[place]}. Every label must be finite."
                )
        is_whole = all(isinstance(value, int) for value in values)
        return np.array(values, dtype=np.int64 if is_whole else np.float64)

    def _is_missing(self, word: str | None) -> bool:
        text = "" if word is None else str(word).strip()
        return text.lower() in MISSING or (self._missing is not None and same_value(text, self._missing))

    def _refuse_mixture(self, word: str, place: int, codes: np.ndarray, start: int) -> None:
        raise DataError(
            Message(
                "{}, row {}: {!r} after {!r}. Labels must be all numbers or all text; mend that line or, if it marks "
                "a missing label, say so with {missing=}.",
                self._where, self._row(place, codes, start), word[:60], str(self._first)[:60], word[:60],
            )
        )  # fmt: skip

    @staticmethod
    def _row(place: int, codes: np.ndarray, start: int) -> int:
        return start + int(np.flatnonzero(np.asarray(codes) == place)[0])


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
        and np.abs(present).max(initial=0.0) < 2**53
    )
    if not whole:
        return y
    return (y if missing is None else np.where(missing, 0, y)).astype(np.int64)


def masked(y: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return labels unchanged, or as a masked array where some are missing."""
    return np.ma.MaskedArray(y, missing) if missing.any() else y
