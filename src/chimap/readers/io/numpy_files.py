"""The ``.npy`` layout, a header and then the values, and archives of such arrays, read without mapping and pickles."""

from __future__ import annotations

import io
import lzma
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tokenize import TokenError
from typing import IO

import numpy as np
from numpy.lib import format as npy

from chimap._types import JSON
from chimap._validation import DataError
from chimap.readers.io.files import existing_file

READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
PIECE_BYTES = 2**22
# Errors of numpy's header reader, which parses a Python literal, on a damaged header.
_HEADER_ERRORS = (
    ValueError,
    KeyError,
    TypeError,
    SyntaxError,
    EOFError,
    OverflowError,
    RecursionError,
    TokenError,
    struct.error,
)


@dataclass(frozen=True)
class Header:
    """The content of a ``.npy`` header, and the offset ``start`` of the first value."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype
    start: int

    @property
    def nbytes(self) -> int:
        """Size of all values in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(file: IO[bytes], where: str) -> Header:
    """Return the header of an open ``.npy`` file, and leave the file at the first value.

    Raises DataError if it is not ``.npy``, or holds Python objects or records.
    """
    try:
        reader = READERS[npy.read_magic(file)]
        shape, fortran_order, dtype = reader(file)
    except _HEADER_ERRORS as error:
        raise DataError(f"{where}: not an .npy array, or cut off ({error}). Use numpy.save.") from error
    if dtype.hasobject or dtype.fields is not None:
        raise DataError(
            f"{where}: holds Python objects or records (dtype {dtype}), which are never unpickled. "
            "Save a plain array of numbers or text."
        )
    return Header(shape, fortran_order, dtype, file.tell())


def fill(file: IO[bytes], values: np.ndarray) -> None:
    """Read the next bytes of a file into a C-contiguous array. Raises EOFError if there are too few."""
    view, done = values.reshape(-1).view(np.uint8).data, 0
    while done < len(view):
        # Read small pieces, because a decompressor makes a copy of each.
        n_read = file.readinto(view[done : done + PIECE_BYTES])  # type: ignore[attr-defined]
        if not n_read:
            raise EOFError(f"{len(view) - done} bytes are missing")
        done += n_read


# Errors of zipfile and the decompressors on damaged, encrypted or unknown content.
ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
)
HELD_BYTES = 2**26


class Archive:
    """The arrays of an ``.npz`` file, by name (``members``, in the order of the file).

    Only the list is read at first. Each member is read in one direction and decompressed as it goes, so that memory
    does not grow with its size. Raises DataError, naming file and member, if the file is not a complete archive of
    plain arrays.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = existing_file(path)
        self._held: dict[str, bytes] = {}
        try:
            with self.path.open() as opened, zipfile.ZipFile(opened) as file:
                listed = [(info.filename, info.file_size) for info in file.infolist()]
        except ARCHIVE_ERRORS as error:
            raise DataError(
                f"{self.path}: not an .npz archive, or cut off ({error}). "
                "Copy it again, or write it with numpy.savez or scipy.sparse.save_npz."
            ) from error
        self._sizes = dict(listed)
        if len(self._sizes) < len(listed):
            names = [name for name, _ in listed]
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(
                f"{self.path}: two members are called {twice!r}, of which one would be lost. Write it again."
            )
        self.members = [name.removesuffix(".npy") for name in self._sizes if name.endswith(".npy")]

    def __getstate__(self) -> JSON:
        # A copy in another process reads the file: the members held here are too large to send with every task.
        return {**self.__dict__, "_held": {}}

    def hold(self, members: list[str]) -> None:
        """Keep members decompressed in memory if together they are small, at most 64 MiB."""
        if sum(self._sizes[f"{m}.npy"] for m in members) <= HELD_BYTES:
            for member in members:
                with self._opened(member) as file, self._naming(member):
                    self._held[member] = file.read()

    def header(self, member: str) -> Header:
        """Return shape, dtype and order of a member, and check that all its bytes are there."""
        if member not in self.members:
            raise DataError(f"{self.path}: no array {member!r}; it holds {self.listing()}.")
        with self._opened(member) as file, self._naming(member):
            header = read_header(file, f"{self.path}::{member}")
        if header.start + header.nbytes != self._sizes[f"{member}.npy"]:
            raise DataError(
                f"{self.path}::{member}: cut off or overlong: its header promises shape {header.shape} of "
                f"{header.dtype}, which differs from what is stored. Write it again."
            )
        return header

    def read(self, member: str) -> np.ndarray:
        """Return a whole member; for small ones."""
        header = self.header(member)
        with self.stream(member) as stream:
            values = stream.take(int(np.prod(header.shape)))
        return values.reshape(header.shape, order="F" if header.fortran_order else "C")

    @contextmanager
    def stream(self, member: str) -> Iterator[MemberStream]:
        """Open a member, to take its values from front to back."""
        header = self.header(member)
        with self._opened(member) as file:
            with self._naming(member):
                file.read(header.start)
            yield MemberStream(self, member, file, header)

    def members_order(self, name: str) -> int:
        """Return the position of the first member whose name begins with ``name``."""
        return next((place for place, member in enumerate(self.members) if member.startswith(name)), 0)

    def listing(self) -> str:
        """Return the names of the members, for messages."""
        return ", ".join(self.members) or "no arrays"

    @contextmanager
    def _opened(self, member: str) -> Iterator[IO[bytes]]:
        if member in self._held:
            yield io.BytesIO(self._held[member])
            return
        with self.path.open() as opened, zipfile.ZipFile(opened) as archive:
            with self._naming(member):
                file = archive.open(f"{member}.npy")
            with file:
                yield file

    @contextmanager
    def _naming(self, member: str) -> Iterator[None]:
        try:
            yield
        except ARCHIVE_ERRORS as error:
            raise DataError(
                f"{self.path}::{member}: cannot be read ({error}). The file is damaged or cut off; "
                "copy or write it again."
            ) from error


class MemberStream:
    """The values of one member in the order of storage; its checksum is compared after the last value."""

    def __init__(self, archive: Archive, member: str, file: IO[bytes], header: Header) -> None:
        self._archive, self._member, self._file, self._dtype = archive, member, file, header.dtype
        self._left = int(np.prod(header.shape))

    def take(self, count: int) -> np.ndarray:
        """Return the next ``count`` values, of shape (count,), in the stored dtype."""
        values = np.empty(count, self._dtype)
        with self._archive._naming(self._member):
            fill(self._file, values)
            self._left -= count
            if self._left == 0:
                self._file.read(1)  # reading past the end makes zipfile check the CRC of the member
        return values
