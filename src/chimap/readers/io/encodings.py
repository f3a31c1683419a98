"""Text files in any encoding, read as UTF-8: that of a byte order mark, else the one that the caller names."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING

from chimap._messages import Message
from chimap._validation import DataError, ParameterError
from chimap.readers.io.files import DataFile, decompressed, read_piece

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MARKS = {  # that of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_LIKELY = "cp1252"  # of text that is not UTF-8: Windows in western Europe, which holds Latin-1
REMEDY = Message("Name its encoding, such as {encoding=}, or save the file in UTF-8.", _LIKELY)
_NAMED: ContextVar[str | None] = ContextVar("encoding of text files", default=None)


@contextmanager
def text_in(encoding: str | None) -> Iterator[None]:
    """Read the text files that are opened in the block in an encoding, such as "cp1252"; None stands for UTF-8.

    Raises ParameterError for a name that is no encoding of text.
    """
    try:
        "".encode(encoding or "utf-8")
    except LookupError:
        raise ParameterError("encoding", encoding, "an encoding of text that Python knows, such as 'cp1252'") from None
    token = _NAMED.set(encoding)
    try:
        yield
    finally:
        _NAMED.reset(token)


def encoding_of(file: DataFile) -> str | None:
    """Return the encoding of a text file, None for UTF-8."""
    with decompressed(file) as stream:
        first = read_piece(file, stream, 0, "line 1")
    return encoding_in(first)


def encoding_in(first: bytes) -> str | None:
    """Return the encoding of text by the mark in its first bytes, else the one that is named; None for UTF-8."""
    if first.startswith(codecs.BOM_UTF8):
        return None
    return next((name for mark, name in _MARKS.items() if first.startswith(mark)), _NAMED.get())


@contextmanager
def as_utf8(file: DataFile, encoding: str | None) -> Iterator[IO[bytes]]:
    """Open the text of a file as UTF-8 for the block, decompressed; ``encoding`` is that of ``encoding_of``."""
    with decompressed(file) as stream:
        yield stream if encoding is None else io.BufferedReader(_Recoded(file, stream, encoding))


def why_no_text(content: bytes) -> str | None:
    """Return why bytes are not text in UTF-8; None if they are.

    >>> why_no_text("café".encode("cp1252"))
    "byte 0xe9 in position 3, as in cp1252, where it is 'é'"
    """
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return odd_byte(content[error.start], error.start)
    return None


def odd_byte(byte: int, position: int) -> str:
    """Return what is known of a byte that is not text in UTF-8."""
    letter = bytes([byte]).decode(_LIKELY, "ignore")
    known = f", as in {_LIKELY}, where it is {letter!r}" if letter else ""
    return f"byte 0x{byte:02x} in position {position}{known}"


def no_text(file: DataFile, line: int, reason: str, encoding: str = "UTF-8") -> DataError:
    """Return the error for a line that is not text in an encoding."""
    return DataError(Message("{}, line {}: not text in {} ({}). {}", file, line, encoding, reason, REMEDY))


def first_fault(file: DataFile, encoding: str | None) -> DataError | None:
    """Return the error for the first line of a file that is not text, None if all are."""
    number = 0
    try:
        with as_utf8(file, encoding) as stream:
            while line := read_piece(file, stream, 0, f"line {number + 1}"):
                number += 1
                if reason := why_no_text(line):
                    return no_text(file, number, reason)
    except DataError as error:
        return error
    return None


class _Recoded(io.RawIOBase):
    """The bytes of a text in UTF-8, made of a stream in another encoding."""

    def __init__(self, file: DataFile, stream: IO[bytes], encoding: str) -> None:
        self._file, self._stream, self._rest, self._encoding = file, stream, b"", encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._line = 1

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        is_open = True
        while is_open and not self._rest:
            piece = self._stream.read(2**16)
            is_open = bool(piece)
            try:
                self._rest = self._decoder.decode(piece, final=not piece).encode()
            except UnicodeError as error:
                good = error.object[: error.start] if isinstance(error, UnicodeDecodeError) else b""
                raise no_text(self._file, self._line + good.count(b"\n"), str(error), self._encoding) from error
            self._line += self._rest.count(b"\n")
        target = memoryview(buffer).cast("B")
        size = min(len(target), len(self._rest))
        target[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
