"""Files as arguments: local paths and addresses, members, and whether a file is still what it was.

Every source opens its files here. A local path needs nothing more; an address such as ``s3://bucket/rows.npy``,
``memory://rows.npy`` or ``https://...`` goes through fsspec, which the extra ``data`` installs. Addresses are joined
by ``::`` as fsspec joins them: ``zip://rows.npy::s3://bucket/archive.zip``, ``simplecache::s3://bucket/rows.npy``.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, cast

from chimap._types import JSON
from chimap._validation import DataError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


WINDOW = 2**16
# What file systems of fsspec say about the last change of a file, each in words of its own.
STAMPS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created", "md5Hash", "CRC")
_ARCHIVES = ("zip://", "tar://", "libarchive://")  # their addresses go on, after ::, with that of the archive


@dataclass(frozen=True)
class DataFile:
    """A file as it was when it was first looked at.

    address: local path, or address with ``://``. size: in bytes. stamp: what changes when it is written anew, its
    time of modification or what the file system has in place of it.
    """

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
        """Ending with its dot, in small letters; "" if there is none."""
        return os.path.splitext(self.name)[1].lower()

    @property
    def is_local(self) -> bool:
        """Whether the address is a path of this machine."""
        return not is_address(self.address)

    def open(self) -> IO[bytes]:
        """The bytes from the start, seekable. Raises DataError if the file is not what it was."""
        self.check_unchanged()
        if self.is_local:
            return open(self.address, "rb")
        with _reaching(self.address):
            system, path = _system(self.address)
            opened = cast(IO[bytes], system.open(path, "rb"))
        # a file system of an archive closes it when it is let go: it must live as long as the file
        weakref.finalize(opened, id, system)
        return opened

    def check_unchanged(self) -> None:
        """Raise DataError if the file has been written anew, has another size or is gone."""
        try:
            now = _look(self.address)
        except FileNotFoundError as error:
            raise DataError(
                f"{self}: the file has changed since it was opened: it is gone. Put it back."
            ) from error
        if now != self:
            sizes = (
                f"it had {self.size} bytes and has {now.size}" if now.size != self.size else "written anew"
            )
            raise DataError(
                f"{self}: the file has changed since it was opened ({sizes}). All passes must read the same rows; "
                "let what writes it finish, then open it again."
            )


def is_address(path: str) -> bool:
    """Whether a path is an address for fsspec.

    >>> is_address("s3://bucket/rows.npy"), is_address("rows.npy::X")
    (True, False)
    """
    return "://" in path


def base_name(address: str) -> str:
    """The name without folders of what an address is of.

    >>> base_name("data/rows.npy"), base_name("simplecache::s3://bucket/rows.npy"), base_name("zip://rows.npy::a.zip")
    ('rows.npy', 'rows.npy', 'rows.npy')
    """
    parts, k = _parts_of(address)
    return parts[k].rstrip("/").replace(os.sep, "/").rpartition("/")[2]


def plain_path(path: str | os.PathLike[str]) -> str:
    """The path as text; ``file://`` addresses become local paths.

    >>> plain_path("file:///data/rows.npy")
    '/data/rows.npy'
    """
    return os.fspath(path).removeprefix("file://")


def split_member(path: str | os.PathLike[str]) -> tuple[str, str | None]:
    """The file and the member of a path with ``::``; the member is None where there is no ``::``.

    Addresses of several parts, which ``::`` joins as well, stay whole.

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
    return (file, member) if mark and not is_address(member) and not in_archive else (text, None)


def existing_file(path: str | os.PathLike[str]) -> DataFile:
    """The file, if one with content is there.

    Raises FileNotFoundError if nothing is there, DataError for a folder or an empty file.
    """
    address = plain_path(path)
    if is_folder(address):
        raise DataError(f"{address} is a folder; expected a data file. Name a file in it.")
    try:
        file = _look(address)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"No such file: {address}. Check the spelling; relative paths start at the working directory."
        ) from error
    if file.size == 0:
        raise DataError(f"{address} is empty (0 bytes). Write or copy it again.")
    return file


def is_folder(address: str) -> bool:
    """Whether a folder is there."""
    if not is_address(address):
        return os.path.isdir(address)
    with _reaching(address):
        system, path = _system(address)
        return bool(system.isdir(path))


def has_file(folder: str, name: str) -> bool:
    """Whether a file of this name lies in a folder."""
    if not is_address(folder):
        return os.path.isfile(os.path.join(folder, name))
    with _reaching(folder):
        system, path = _system(folder)
        return bool(system.isfile(f"{path.rstrip('/')}/{name}"))


def files_under(folder: str) -> dict[str, DataFile]:
    """All files in a folder and the folders in it, by their path from there with ``/``, sorted."""
    if is_address(folder):
        with _reaching(folder):
            system, path = _system(folder)
            system.invalidate_cache()
            files = {
                name[len(path) :].strip("/"): info for name, info in system.find(path, detail=True).items()
            }
        return {inner: _stamped(_inside(folder, inner), files[inner]) for inner in sorted(files)}
    names = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    return {os.path.relpath(name, folder).replace(os.sep, "/"): _look(name) for name in sorted(names)}


def file_digest(file: DataFile) -> str:
    """Hexadecimal digest of ten evenly spaced windows of 64 KiB, the first and the last bytes among them."""
    last = max(0, file.size - WINDOW)
    total = hashlib.blake2b(digest_size=16)
    with file.open() as opened:
        for k in range(10):
            opened.seek(last * k // 9)
            total.update(opened.read(WINDOW))
    return total.hexdigest()


def needed(module: str, what: str, extra: str = "data") -> ModuleType:
    """An optional module. Raises ImportError that names the extra to install for ``what``, a plural."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{what} need the package {module.partition('.')[0]}, which is not installed: "
            f'pip install "chimap[{extra}]".'
        ) from error


def _look(address: str) -> DataFile:
    if not is_address(address):
        status = Path(address).stat()
        return DataFile(address, status.st_size, str(status.st_mtime_ns))
    with _reaching(address):
        system, path = _system(address)
        system.invalidate_cache()
        return _stamped(address, system.info(path))


def _stamped(address: str, info: JSON) -> DataFile:
    stamps = [info[key] for key in STAMPS if key in info]
    # the memory file system gives a moment as a date or as seconds, depending on how it is asked
    stamp = str([s.timestamp() if isinstance(s, datetime) else s for s in stamps])
    return DataFile(address, int(info["size"] or 0), stamp)


def _parts_of(address: str) -> tuple[list[str], int]:
    """What ``::`` joins, and which of it says the path: the first address, or all there is."""
    parts = address.split("::")
    return parts, next((k for k, part in enumerate(parts) if is_address(part)), 0)


def _inside(folder: str, inner: str) -> str:
    """The address of a file in a folder that is an address."""
    parts, k = _parts_of(folder)
    parts[k] += inner if parts[k].endswith("/") else f"/{inner}"
    return "::".join(parts)


def _system(address: str) -> tuple[AbstractFileSystem, str]:
    """The file system of an address, and the path in it."""
    if address.startswith(_ARCHIVES) and "::" not in address:
        raise DataError(f"{address} is in an archive, but in which? Add it: {address}::ARCHIVE.")
    return cast(
        "tuple[AbstractFileSystem, str]", needed("fsspec.core", "addresses with ://").url_to_fs(address)
    )


@contextmanager
def _reaching(address: str) -> Iterator[None]:
    """Errors of a file system name the address and what to do; each system has types of its own."""
    try:
        yield
    except (FileNotFoundError, DataError):
        raise
    except ImportError as error:
        raise ImportError(
            f"{address}: {str(error).rstrip('.')}. Install it, or give a local path."
        ) from error
    except ValueError as error:
        raise DataError(f"{address}: {error}. Give a local path, or an address that fsspec knows.") from error
    except Exception as error:
        raise DataError(
            f"{address}: cannot be reached ({type(error).__name__}: {error}). Check the address, the network and "
            "your permission to read there."
        ) from error
