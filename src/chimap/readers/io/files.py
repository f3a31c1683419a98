"""Files as arguments: local paths and addresses, members, and whether a file has changed.

Every source opens its files here. A local path needs nothing more. An address such as ``s3://bucket/rows.npy``,
``memory://rows.npy`` or ``https://...`` goes through fsspec, which is imported then. Addresses are joined by ``::``
as in fsspec: ``zip://rows.npy::s3://bucket/archive.zip``, ``simplecache::s3://bucket/rows.npy``.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import importlib
import lzma
import os
import sys
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from chimap._errors import MissingPackageError
from chimap._types import JSON
from chimap._validation import DataError
from chimap.data.rows import digest

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

WINDOW = 2**16
# The keys under which the file systems of fsspec report the last change of a file; each uses its own.
STAMPS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created", "md5Hash", "CRC")
_ARCHIVES = ("zip://", "tar://", "libarchive://")  # after them, :: and the address of the archive must follow


@dataclass(frozen=True)
class DataFile:
    """A file as it was first seen: its path or address, its size, and a stamp that changes when it is rewritten."""

    address: str
    size: int
    stamp: str

    def __str__(self) -> str:
        return self.address

    def __fspath__(self) -> str:
        return self.address

    @property
    def name(self) -> str:
        """Name without folders."""
        return base_name(self.address)

    @property
    def suffix(self) -> str:
        """Ending with its dot, in lower case; "" if there is none."""
        return os.path.splitext(self.name)[1].lower()

    @property
    def is_local(self) -> bool:
        """Whether the address is a path of this machine."""
        return not is_address(self.address)

    def open(self) -> IO[bytes]:
        """Open the file for reading bytes from the start, seekable. Raises DataError if it has changed."""
        self.check_unchanged()
        if self.is_local:
            return open(self.address, "rb")
        with _reaching(self.address):
            system, path = _system(self.address)
            opened = cast(IO[bytes], system.open(path, "rb"))
        # The file system of an archive closes the archive when it is garbage-collected, so it must live as long as
        # the file.
        weakref.finalize(opened, id, system)
        return opened

    def content(self) -> JSON:
        """Return the size, and a digest of ten evenly spaced windows of 64 KiB from the first bytes to the last."""
        return {"bytes": self.size, "digest": file_digest(self)}

    def check_unchanged(self) -> None:
        """Raise DataError if the file has been rewritten, has another size or is gone."""
        try:
            current = _current_file(self.address)
        except FileNotFoundError as error:
            raise DataError(f"{self}: the file has changed since it was opened: it is gone. Put it back.") from error
        if current != self:
            sizes = f"it had {self.size} bytes and has {current.size}" if current.size != self.size else "written anew"
            raise DataError(
                f"{self}: the file has changed since it was opened ({sizes}). All passes must read the same rows; "
                "wait until it is written completely, then open it again."
            )


@dataclass(frozen=True)
class StoredFiles:
    """Files that belong together, by name, as one of the things that a source reads."""

    files: Mapping[str, DataFile]

    def content(self) -> JSON:
        """Return the bytes of all, and a digest of their names and sizes and of the contents of about 16."""
        listing = [f"{name} {file.size}" for name, file in self.files.items()]
        sampled = [*self.files.values()][:: max(1, len(listing) // 16)]
        contents = [file_digest(file) for file in sampled if file.size]
        return {"bytes": self.n_bytes, "digest": digest(np.array(listing + contents))}

    @property
    def n_bytes(self) -> int:
        """The sizes of all files together."""
        return sum(file.size for file in self.files.values())

    def check_unchanged(self) -> None:
        """Raise DataError if one of the files has changed."""
        for file in self.files.values():
            file.check_unchanged()


def is_address(path: str) -> bool:
    """Return whether a path is an address for fsspec; a file or folder that exists under this name is none.

    >>> is_address("s3://bucket/rows.npy"), is_address("rows.npy::X")
    (True, False)
    """
    return "://" in path and not os.path.exists(path)


def base_name(address: str) -> str:
    """Return the name, without folders, of the file that an address stands for.

    >>> base_name("data/rows.npy"), base_name("simplecache::s3://bucket/rows.npy"), base_name("zip://rows.npy::a.zip")
    ('rows.npy', 'rows.npy', 'rows.npy')
    """
    parts, k = ([address], 0) if os.path.exists(address) else _parts_of(address)
    return parts[k].rstrip("/").replace(os.sep, "/").rpartition("/")[2]


def plain_path(path: str | os.PathLike[str]) -> str:
    """Return the path as text, with ``file://`` addresses as local paths.

    >>> plain_path("file:///data/rows.npy")
    '/data/rows.npy'
    """
    return os.fspath(path).removeprefix("file://")


def split_member(path: str | os.PathLike[str]) -> tuple[str, str | None]:
    """Split a path at ``::`` into the file and the member; the member is None where there is no ``::``.

    Addresses of several parts, which are joined by ``::`` too, stay whole, and so does a name that exists.

    >>> split_member("mnist.npz::x_train")
    ('mnist.npz', 'x_train')
    >>> split_member("simplecache::s3://bucket/mnist.npz")
    ('simplecache::s3://bucket/mnist.npz', None)
    >>> split_member("zip://mnist.npz::data.zip"), split_member("zip://mnist.npz::data.zip::x_train")
    (('zip://mnist.npz::data.zip', None), ('zip://mnist.npz::data.zip', 'x_train'))
    """
    text = plain_path(path)
    file, mark, member = text.rpartition("::")
    in_archive = file.rpartition("::")[2].startswith(_ARCHIVES)
    is_whole = not mark or is_address(member) or in_archive or os.path.exists(text)
    return (text, None) if is_whole else (file, member)


def existing_file(path: str | os.PathLike[str]) -> DataFile:
    """Return the file, if it exists and is not empty.

    Raises FileNotFoundError if it does not exist, and DataError for a folder or an empty file.
    """
    address = plain_path(path)
    if is_folder(address):
        raise DataError(f"{address} is a folder; expected a data file. Name a file in it.")
    try:
        file = _current_file(address)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"No such file: {address}. Check the spelling; relative paths start at the working directory."
        ) from error
    if file.size == 0:
        raise DataError(f"{address} is empty (0 bytes). Write or copy it again.")
    return file


def is_folder(address: str) -> bool:
    """Return whether an address is an existing folder."""
    if not is_address(address):
        return os.path.isdir(address)
    with _reaching(address):
        system, path = _system(address)
        return bool(system.isdir(path))


def has_file(folder: str, name: str) -> bool:
    """Return whether a folder contains a file of this name."""
    if not is_address(folder):
        return os.path.isfile(os.path.join(folder, name))
    with _reaching(folder):
        system, path = _system(folder)
        return bool(system.isfile(f"{path.rstrip('/')}/{name}"))


def names_in(folder: str) -> list[str]:
    """Return the names of the files directly in a folder, sorted."""
    if not is_address(folder):
        return sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    with _reaching(folder):
        system, path = _system(folder)
        entries = system.ls(path, detail=True)
        return sorted(entry["name"].rpartition("/")[2] for entry in entries if entry["type"] == "file")


def files_under(folder: str) -> dict[str, DataFile]:
    """Return all files in a folder and its subfolders by their relative paths, with ``/`` and sorted."""
    if is_address(folder):
        with _reaching(folder):
            system, path = _system(folder)
            system.invalidate_cache()
            files = {name[len(path) :].strip("/"): info for name, info in system.find(path, detail=True).items()}
        return {inner: _stamped(_inside(folder, inner), files[inner]) for inner in sorted(files)}
    names = [os.path.join(folder_path, name) for folder_path, _, names in os.walk(folder) for name in names]
    return {os.path.relpath(name, folder).replace(os.sep, "/"): _current_file(name) for name in sorted(names)}


def file_digest(file: DataFile) -> str:
    """Return the hexadecimal digest of ten evenly spaced windows of 64 KiB, from the first bytes to the last."""
    last = max(0, file.size - WINDOW)
    total = hashlib.blake2b(digest_size=16)
    with file.open() as opened:
        for k in range(10):
            opened.seek(last * k // 9)
            total.update(opened.read(WINDOW))
    return total.hexdigest()


def needed(module: str, what: str, extra: str = "data") -> ModuleType:
    """Return an optional module. Raises ImportError that names the extra to install for ``what``, a plural."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module if module.startswith("backports.") else module.partition(".")[0]
        raise MissingPackageError(
            f'{what} need the package {package}, which is not installed: pip install "chimap[{extra}]".'
        ) from error


def _current_file(address: str) -> DataFile:
    if not is_address(address):
        status = Path(address).stat()
        return DataFile(address, status.st_size, str(status.st_mtime_ns))
    with _reaching(address):
        system, path = _system(address)
        system.invalidate_cache()
        return _stamped(address, system.info(path))


def _stamped(address: str, info: JSON) -> DataFile:
    stamps = [info[key] for key in STAMPS if key in info]
    # The memory file system reports a time as a date or as seconds, depending on the call.
    stamp = str([s.timestamp() if isinstance(s, datetime) else s for s in stamps])
    return DataFile(address, int(info["size"] or 0), stamp)


def _parts_of(address: str) -> tuple[list[str], int]:
    """Split an address at ``::``, and find the part that holds the path: the first address, or the only part."""
    parts = address.split("::")
    return parts, next((k for k, part in enumerate(parts) if is_address(part)), 0)


def _inside(folder: str, inner: str) -> str:
    """Return the address of a file in a folder that is an address."""
    parts, k = _parts_of(folder)
    parts[k] += inner if parts[k].endswith("/") else f"/{inner}"
    return "::".join(parts)


def _system(address: str) -> tuple[AbstractFileSystem, str]:
    """Return the file system of an address, and the path in it."""
    if address.startswith(_ARCHIVES) and "::" not in address:
        raise DataError(f"{address} is in an archive, but the archive is not named. Add it: {address}::ARCHIVE.")
    from fsspec.core import url_to_fs  # slow to import, and local paths do without it

    return cast("tuple[AbstractFileSystem, str]", url_to_fs(address))


def _extra_of(address: str) -> str:
    """Return the extra of fsspec that brings what an address needs: extras have the names of protocols."""
    protocol = address.split("::")[-1].partition("://")[0]
    return "http" if protocol == "https" else protocol


@contextmanager
def _reaching(address: str) -> Iterator[None]:
    """Turn errors of a file system, whose types differ by system, into errors that name the address and the remedy."""
    try:
        yield
    except (FileNotFoundError, DataError):
        raise
    except ImportError as error:
        raise MissingPackageError(
            f"{address}: {str(error).rstrip('.')}. Install it (pip install 'fsspec[{_extra_of(address)}]'), or give a "
            "local path."
        ) from error
    except ValueError as error:
        raise DataError(f"{address}: {error}. Give a local path, or an address that fsspec knows.") from error
    except Exception as error:
        raise DataError(
            f"{address}: cannot be reached ({type(error).__name__}: {error}). Check the address, the network and "
            "your permission to read there."
        ) from error


COMPRESSIONS = ("", ".gz", ".bz2", ".xz", ".zst")
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

    Reading raises DataError where a compressed file unpacks to more than any table does, or to blanks, and EOFError or
    OSError where it is cut off or damaged.
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
    except (EOFError, OSError) as error:
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
        with self._damage():
            piece = self._stream.read(self._left + 1 if size < 0 else size)
        return self._counted(piece)

    def readline(self, size: int = -1) -> bytes:
        with self._damage():
            line = self._stream.readline(self._left + 1 if size < 0 else size)
        return self._counted(line)

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

    @contextmanager
    def _damage(self) -> Iterator[None]:
        """Turn the errors of decompressors, each of which has its own, into OSError."""
        try:
            yield
        except (EOFError, OSError, MemoryError):
            raise
        except Exception as error:
            raise OSError(str(error)) from error

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
    """Return the stream that decompresses a file by its ending; a file of no such ending as it is."""
    if file.suffix == ".gz":
        return cast(IO[bytes], gzip.GzipFile(fileobj=opened))
    if file.suffix == ".bz2":
        return bz2.BZ2File(opened)
    if file.suffix == ".xz":
        return lzma.LZMAFile(opened)
    if file.suffix == ".zst":
        return cast(IO[bytes], _zstd().ZstdFile(opened))
    return opened


def _zstd() -> ModuleType:
    """Return the module of Zstandard, which Python has since 3.14."""
    if sys.version_info >= (3, 14):
        return importlib.import_module("compression.zstd")
    return needed("backports.zstd", "files that end in .zst")
