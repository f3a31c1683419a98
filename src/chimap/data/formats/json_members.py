"""A JSON object read member by member, so that its long arrays are never in memory as a whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import IO

PIECE = 2**18  # characters read at a time
LONGEST_VALUE = 2**24  # most characters of a value that is read as a whole

_BLANKS = re.compile(r"[ \t\r\n]*")
_END_OF_LISTS = re.compile(r"\][ \t\r\n]*\]")
_DECODER = json.JSONDecoder()


class JsonMembers:
    """The members of a JSON object, in the order of the text.

    Iterate over the keys, and for each call one of ``value``, ``items``, ``lists`` and ``skip``. All of them raise
    ValueError, with the place, for text that is not such a value.

    Parameters
    ----------
    stream : text stream
        The text of the object.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream, self._text, self._at = stream, "", 0
        self._dropped = 0  # characters before ``_text``

    def __iter__(self) -> Iterator[str]:
        """Yield the key of each member."""
        seen: set[str] = set()
        for _ in self._entries("{", "}"):
            key = self.value()
            if not isinstance(key, str):
                raise self._error(f"the key {key!r}, which is not text", self._at)
            if key in seen:
                raise self._error(f"the key {key!r} for the second time", self._at)
            seen.add(key)
            self._pass(":")
            yield key
        if self._after_blanks():
            raise self._error("text after the object", self._at)

    def value(self) -> object:
        """Return the value as a whole."""
        self._next()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._more():
                    raise self._error(error.msg, error.pos) from error
                continue
            if end < len(self._text):  # otherwise a number may go on
                self._at = end
                return value
            if not self._more():
                raise self._error("the text ends before the object does", end)

    def items(self) -> Iterator[object]:
        """Yield the entries of an array one by one."""
        for _ in self._entries("[", "]"):
            yield self.value()

    def lists(self) -> Iterator[list[object]]:
        """Yield the entries of an array of lists of numbers, in batches of consecutive ones."""
        for text, start in self._texts():
            try:
                yield json.loads(f"[{text}]")
            except json.JSONDecodeError as error:
                raise self._error(error.msg, start + error.pos - 1 - self._dropped) from error

    def skip(self) -> None:
        """Pass over the value."""
        if self._next() != "[":
            self.value()
            return
        for _ in self.items():
            pass

    def skip_lists(self) -> None:
        """Pass over an array of lists of numbers without parsing them."""
        for _ in self._texts():
            pass

    def _texts(self) -> Iterator[tuple[str, int]]:
        """Yield the text of consecutive lists of an array of lists, and its place."""
        for _ in self._entries("[", "]"):
            while not (stop := self._end_of_lists()):
                if not self._more():
                    raise self._error("the text ends before the array does", len(self._text))
            start, self._at = self._at, stop
            yield self._text[start:stop], self._dropped + start

    def _end_of_lists(self) -> int:
        """Return the place after the last list that is in memory as a whole; 0 if there is none."""
        end = _END_OF_LISTS.search(self._text, self._at)
        return end.start() + 1 if end else self._text.rfind("]", self._at) + 1

    def _entries(self, opening: str, closing: str) -> Iterator[None]:
        """Yield before each entry of an array or object, and pass the signs around it."""
        self._pass(opening)
        if self._next() == closing:
            self._pass(closing)
            return
        yield
        while self._pass(f",{closing}") == ",":
            yield

    def _next(self) -> str:
        """Return the next character that is not blank, and stay before it."""
        if not self._after_blanks():
            raise self._error("the text ends before the object does", self._at)
        return self._text[self._at]

    def _after_blanks(self) -> bool:
        """Pass blanks, and return whether anything follows."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            self._at = self._at if blanks is None else blanks.end()
            if self._at < len(self._text):
                return True
            if not self._more():
                return False

    def _pass(self, expected: str) -> str:
        """Pass one of the expected characters and return it."""
        character = self._next()
        if character not in expected:
            raise self._error(f"{character!r} instead of {' or '.join(map(repr, expected))}", self._at)
        self._at += 1
        return character

    def _more(self) -> bool:
        """Read on, by as much as is not passed yet; return whether there was more."""
        left = len(self._text) - self._at
        if left > LONGEST_VALUE:
            raise self._error(f"a value of more than {LONGEST_VALUE >> 20} MiB", self._at)
        piece = self._stream.read(max(PIECE, left))
        self._dropped += self._at
        self._text, self._at = self._text[self._at :] + piece, 0
        return bool(piece)

    def _error(self, message: str, place: int) -> ValueError:
        return ValueError(f"{message}, at character {self._dropped + place + 1:,}")
