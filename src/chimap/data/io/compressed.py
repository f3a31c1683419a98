"""Compressed text: which endings there are, and the bytes behind them."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

from chimap._validation import DataError
from chimap.data.io.files import DataFile, needed

COMPRESSIONS = ("", ".gz", ".bz2", ".zst")


def uncompressed_name(name: str) -> str:
    """A file name without the ending of its compression, in small letters.

    >>> uncompressed_name("Rows.csv.gz")
    'rows.csv'
    """
    name = name.lower()
    ending = next((e for e in COMPRESSIONS[1:] if name.endswith(e)), "")
    return name.removesuffix(ending)


@contextmanager
def decompressed(file: DataFile) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed as its ending says, while the block runs."""
    with file.open() as opened:
        stream = _stream(file, opened)
        try:
            yield stream
        finally:
            stream.close()


def read_piece(file: DataFile, stream: IO[bytes], size: int, place: str) -> bytes:
    """The next ``size`` bytes and the rest of their last line; for 0, a line.

    ``place`` tells in an error how far the reading came.
    """
    try:
        return stream.read(size) + stream.readline()
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(
            f"{file}, {place}: cannot be decompressed ({error}). The file is damaged or cut off; copy it again."
        ) from error


def _stream(file: DataFile, opened: IO[bytes]) -> IO[bytes]:
    if file.suffix == ".gz":
        return cast(IO[bytes], gzip.GzipFile(fileobj=opened))
    if file.suffix == ".bz2":
        return bz2.BZ2File(opened)
    if file.suffix == ".zst":
        return io.BufferedReader(_ZstdStream(opened))
    return opened


class _ZstdStream(io.RawIOBase):
    """Frames of Zstandard, one after the other. EOFError where the last one is cut off, which the reader of the
    package itself takes for the end; OSError where one is damaged.
    """

    _PIECE = 2**14

    def __init__(self, file: IO[bytes]) -> None:
        self._zstandard = needed("zstandard", "files that end in .zst")
        self._file, self._frame = file, None
        self._packed, self._plain = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._plain:
            self._packed = self._packed or self._file.read(self._PIECE)
            if not self._packed:
                if self._frame is not None:
                    raise EOFError("the last frame is cut off")
                return 0
            self._unpack()
        count = min(len(buffer), len(self._plain))
        buffer[:count] = self._plain[:count]
        self._plain = self._plain[count:]
        return count

    def _unpack(self) -> None:
        frame = self._frame or self._zstandard.ZstdDecompressor().decompressobj()
        try:
            self._plain = memoryview(frame.decompress(self._packed))
        except self._zstandard.ZstdError as error:
            raise OSError(str(error)) from error
        self._packed = frame.unused_data if frame.eof else b""
        self._frame = None if frame.eof else frame
