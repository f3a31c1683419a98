"""Files as arguments: local paths and addresses, members, and whether a file is still what it was.

Every source opens its files here. A local path needs nothing more; an address such as ``s3://bucket/rows.npy``,
``memory://rows.npy`` or ``https://...`` goes through fsspec, which the extra ``data`` installs.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any, cast

from chimap._validation import DataError

WINDOW = 2**16
# What file systems of fsspec say about the last change of a file, each in words of its own.
STAMPS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created", "md5Hash")


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
        return self.address.rstrip("/").replace(os.sep, "/").rpartition("/")[2]

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
        system, path = _system(self.address)
        return cast(IO[bytes], system.open(path, "rb"))

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
    """
    text = plain_path(path)
    file, mark, member = text.rpartition("::")
    return (file, member) if mark and not is_address(member) else (text, None)


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
    system, path = _system(address)
    return bool(system.isdir(path))


def has_file(folder: str, name: str) -> bool:
    """Whether a file of this name lies in a folder."""
    if not is_address(folder):
        return os.path.isfile(os.path.join(folder, name))
    system, path = _system(folder)
    return bool(system.isfile(f"{path.rstrip('/')}/{name}"))


def files_under(folder: str) -> dict[str, DataFile]:
    """All files in a folder and the folders in it, by their path from there with ``/``, sorted."""
    if is_address(folder):
        system, path = _system(folder)
        system.invalidate_cache()
        return {
            name[len(path) :].strip("/"): _stamped(str(system.unstrip_protocol(name)), info)
            for name, info in sorted(system.find(path, detail=True).items())
        }
    found = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    return {os.path.relpath(name, folder).replace(os.sep, "/"): _look(name) for name in sorted(found)}


def file_digest(file: DataFile) -> str:
    """Hexadecimal digest of ten evenly spaced windows of 64 KiB, the first and the last bytes among them."""
    last = max(0, file.size - WINDOW)
    total = hashlib.blake2b(digest_size=16)
    with file.open() as opened:
        for k in range(10):
            opened.seek(last * k // 9)
            total.update(opened.read(WINDOW))
    return total.hexdigest()


def needed(module: str, what: str, extra: str = "data") -> Any:
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
    system, path = _system(address)
    system.invalidate_cache()
    return _stamped(address, system.info(path))


def _stamped(address: str, info: dict[str, Any]) -> DataFile:
    stamps = [info[key] for key in STAMPS if key in info]
    # the memory file system gives a moment as a date or as seconds, depending on how it is asked
    stamp = str([s.timestamp() if isinstance(s, datetime) else s for s in stamps])
    return DataFile(address, int(info["size"] or 0), stamp)


def _system(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    core = needed("fsspec.core", "addresses with ://")
    try:
        return cast(tuple[Any, str], core.url_to_fs(address))
    except ValueError as error:
        raise DataError(f"{address}: {error}. Give a local path, or an address that fsspec knows.") from error
