"""Compressed text: the endings that are supported, and the bytes behind them."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, cast

from chimap._validation import DataError
from chimap.data.io.files import DataFile, needed

if TYPE_CHECKING:
    pass


COMPRESSIONS = ("", ".gz", ".bz2", ".zst")
LONGEST_LINE = 2**24  # most bytes of a line of text, and of consecutive blanks in compressed text
LARGEST_RATIO = 300  # of unpacked to packed size; tables of zeros reach 200
LEAST_UNPACKED = 2**26  # bytes that any file may unpack to


def uncompressed_name(name: str) -> str:
    """Return a file name in lower case, without the ending of its compression.

    >>> uncompressed_name("Rows.csv.gz")
    'rows.csv'
    """
    name = name.lower()
    ending = next((e for e in COMPRESSIONS[1:] if name.endswith(e)), "")
    return name.removesuffix(ending)


@contextmanager
def decompressed(file: DataFile) -> Iterator[IO[bytes]]:
    """Open the bytes of a file for the block, decompressed as its ending says.

    Reading raises DataError where a compressed file unpacks to more than any table does, or to blanks.
    """
    with file.open() as opened:
        stream = _stream(file, opened)
        try:
            yield stream if stream is opened else cast(IO[bytes], _Bounded(file, stream))
        finally:
            stream.close()


def read_piece(file: DataFile, stream: IO[bytes], size: int, place: str) -> bytes:
    """Return the next ``size`` bytes and the rest of their last line; for size 0, a line.

    ``place`` says in errors how far reading got. Raises DataError for a file that cannot be decompressed, and for a
    line of more than 16 MiB.
    """
    try:
        piece = stream.read(size) if size else b""
        rest = stream.readline(LONGEST_LINE)
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(
            f"{file}, {place}: cannot be decompressed ({error}). The file is damaged or cut off; copy it again."
        ) from error
    if len(rest) == LONGEST_LINE and not rest.endswith(b"\n"):
        ends = " Its lines end in CR alone; write them with LF." if b"\r" in rest[: 2**16] else ""
        raise DataError(
            f"{file}, {place}: a line of more than {LONGEST_LINE >> 20} MiB. Is it text, with one row per line?{ends} "
            "Write such wide rows as .npy, .npz or .parquet."
        )
    return piece + rest


class _Bounded:
    """A stream that refuses to unpack without limit: a megabyte can hold a gigabyte of blanks."""

    def __init__(self, file: DataFile, stream: IO[bytes]) -> None:
        self._file, self._stream = file, stream
        self._left = max(LEAST_UNPACKED, LARGEST_RATIO * file.size)
        self._blank = 0  # consecutive blank bytes up to here

    def read(self, size: int = -1) -> bytes:
        return self._counted(self._stream.read(self._left + 1 if size < 0 else size))

    def readline(self, size: int = -1) -> bytes:
        return self._counted(self._stream.readline(self._left + 1 if size < 0 else size))

    def readinto(self, buffer: Any) -> int:
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    read1 = read

    @property
    def closed(self) -> bool:
        return self._stream.closed

    def flush(self) -> None:
        """Do nothing: the stream is not writable."""

    def close(self) -> None:
        self._stream.close()

    def _counted(self, piece: bytes) -> bytes:
        self._left -= len(piece)
        if self._left < 0:
            raise DataError(
                f"{self._file}: unpacks to more than {LARGEST_RATIO} times its size, which rows of data do not. "
                "If this is intended, unpack it first and name the unpacked file."
            )
        self._blank = self._blank + len(piece) if piece.isspace() else 0
        if self._blank > LONGEST_LINE:
            raise DataError(
                f"{self._file}: more than {LONGEST_LINE >> 20} MiB of blanks in a row, which rows of data do not have. "
                "Write it again without them."
            )
        return piece


def _stream(file: DataFile, opened: IO[bytes]) -> IO[bytes]:
    if file.suffix == ".gz":
        return cast(IO[bytes], gzip.GzipFile(fileobj=opened))
    if file.suffix == ".bz2":
        return bz2.BZ2File(opened)
    if file.suffix == ".zst":
        return io.BufferedReader(_ZstdStream(opened))
    return opened


class _ZstdStream(io.RawIOBase):
    """Frames of Zstandard, one after the other.

    Raises EOFError where the last frame is cut off, which the package's own reader takes for the end, and OSError
    where a frame is damaged.
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
