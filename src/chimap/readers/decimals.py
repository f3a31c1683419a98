"""Numbers as spreadsheets write them in other languages: decimal commas, and marks between thousands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

_BLANKS_AND_APOSTROPHES = " '\u2019\u00a0\u202f"
_PLAIN = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"


@dataclass(frozen=True)
class Marks:
    """How numbers are written: the mark before the decimals, and those that may stand between thousands.

    Parameters
    ----------
    decimal, thousands : str
        The mark before the decimals, and the marks between thousands.

    Examples
    --------
    >>> COMMA.reads("1.234,5"), COMMA.plain("1.234,5"), COMMA.reads("1.5"), POINT.plain("1,234.5")
    (True, '1234.5', False, '1234.5')
    """

    decimal: str
    thousands: str

    @property
    def pattern(self) -> str:
        """A regular expression of the numbers."""
        whole = rf"(\d+|[1-9]\d{{0,2}}([{self.thousands}]\d{{3}})+)"
        decimals = rf"{re.escape(self.decimal)}\d*"
        return rf"^\s*[-+]?({whole}({decimals})?|{re.escape(self.decimal)}\d+)([eE][-+]?\d+)?\s*$"

    def reads(self, text: str) -> bool:
        """Return whether a text is a number."""
        return re.match(self.pattern, text) is not None

    def plain(self, text: str) -> str:
        """Return a number as programs write it, and any other text unchanged."""
        if not self.reads(text):
            return text
        return re.sub(f"[{self.thousands}]", "", text).replace(self.decimal, ".")

    def numbers(self, column: pa.ChunkedArray) -> np.ndarray | None:
        """Return a column of text as float64 (n,); None where a field is not a number."""
        from pyarrow import compute

        if column.null_count or not compute.all(compute.match_substring_regex(column, self.pattern)).as_py():
            return None
        text = compute.replace_substring_regex(column, f"[{self.thousands}]", "")
        text = compute.replace_substring(compute.utf8_trim_whitespace(text), self.decimal, ".")
        return np.asarray(text.cast("float64").to_numpy(zero_copy_only=False))


COMMA = Marks(",", "." + _BLANKS_AND_APOSTROPHES)
POINT = Marks(".", "," + _BLANKS_AND_APOSTROPHES)


class MarksInUse:
    """Finds out, over all fields of numbers of a table, how numbers are written.

    Fields that programs read as they are tell nothing. Of the others, most must be numbers with decimal commas or with
    decimal points; a comma that may be either, as in ``1,234``, is a decimal comma.

    Examples
    --------
    >>> found = MarksInUse()
    >>> found.add_texts(["0,5", "12", "1.234,5"])
    >>> found.marks == COMMA, found.example
    (True, '0,5')
    """

    def __init__(self) -> None:
        self._n_read = {COMMA: 0, POINT: 0}
        self._examples: dict[Marks, str] = {}

    def add(self, column: pa.ChunkedArray) -> None:
        """Take the fields of some rows of a column."""
        from pyarrow import compute

        others = column.filter(compute.invert(compute.match_substring_regex(column, _PLAIN)))
        if len(others) == 0:
            return
        for marks in self._n_read:
            reads = compute.match_substring_regex(others, marks.pattern)
            read = others.filter(reads)
            self._n_read[marks] += len(read)
            if len(read):
                self._examples.setdefault(marks, read[0].as_py())

    def add_texts(self, fields: list[str]) -> None:
        """Take some fields."""
        import pyarrow

        self.add(pyarrow.array(fields, "string"))

    @property
    def example(self) -> str:
        """A number that is written so; "" if all are as programs write them."""
        return "" if self.marks is None else self._examples[self.marks]

    @property
    def marks(self) -> Marks | None:
        """How numbers are written; None as programs write them."""
        best = max(self._n_read, key=lambda marks: self._n_read[marks])
        return best if self._n_read[best] else None
