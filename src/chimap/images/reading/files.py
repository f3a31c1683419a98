"""The files of a set of images: a folder, or an archive that is read in place."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
import threading
import zipfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import IO, cast

from chimap._validation import DataError
from chimap.images.reading.decoding import MAX_FILE_BYTES, ImageError
from chimap.readers.image_names import TAR, ZIP
from chimap.readers.io.files import DataFile, existing_file, files_under, is_address, is_folder, plain_path
from chimap.readers.io.numpy_files import ARCHIVE_ERRORS


class ImageFiles(ABC):
    """Files of a folder or an archive; several threads may read at once.

    name: the folder or archive, for messages. paths: sorted paths of all files but hidden ones, relative to the top and
    with ``/`` as separator.
    """

    name: str
    paths: list[str]

    @abstractmethod
    def read(self, path: str) -> bytes:
        """Return the content of a file; raises ImageError, naming the file, if it cannot be read."""

    def where(self, path: str) -> str:
        """Return the name of the file for messages."""
        return f"{self.name}::{path}"


class FolderFiles(ImageFiles):
    """The files of a folder and its subfolders; the folder may be a remote address."""

    def __init__(self, folder: str) -> None:
        self.name = folder
        self._addresses: dict[str, DataFile] = files_under(folder) if is_address(folder) else {}
        self.paths = _visible(self._addresses or _walk(folder))

    def read(self, path: str) -> bytes:
        """Return the content of a file, see ``ImageFiles``."""
        try:
            if path in self._addresses:
                with self._addresses[path].open() as file:
                    return file.read(MAX_FILE_BYTES + 1)
            with open(self.where(path), "rb") as file:
                return file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise ImageError(
                f"{self.where(path)}: cannot be read ({error.strerror or error}). Check that it is a file, and its "
                "permissions."
            ) from error

    def where(self, path: str) -> str:
        """Return the name of the file for messages, see ``ImageFiles``."""
        return f"{self.name.rstrip('/')}/{path}"


class TarFiles(ImageFiles):
    """The files of a tar archive, located once and then read from their offsets.

    A compressed archive has no offsets to seek to: it is unpacked to a temporary file without a name, which vanishes
    with the object.
    """

    def __init__(self, path: str) -> None:
        file = existing_file(path)
        self.name = str(file)
        self._lock = threading.Lock()
        try:
            self._opened = file.open() if file.name.lower().endswith(".tar") else _unpacked(file)
            with tarfile.open(fileobj=self._opened, mode="r:") as archive:
                members = {m.name.removeprefix("./"): (m.offset_data, m.size) for m in archive if m.isfile()}
        except (tarfile.TarError, *ARCHIVE_ERRORS) as error:
            raise DataError(f"{self.name}: not a tar archive, or cut off ({error}). Copy it again.") from error
        self._members = members
        self.paths = _visible(members)

    def read(self, path: str) -> bytes:
        """Return the content of a file, see ``ImageFiles``."""
        start, size = self._members[path]
        with self._lock:
            self._opened.seek(start)
            content = self._opened.read(min(size, MAX_FILE_BYTES + 1))
        if len(content) < min(size, MAX_FILE_BYTES + 1):
            raise ImageError(f"{self.where(path)}: the archive is cut off here. Copy it again.")
        return content


class ZipFiles(ImageFiles):
    """The files of a zip archive."""

    def __init__(self, path: str) -> None:
        file = existing_file(path)
        self.name = str(file)
        try:
            self._archive = zipfile.ZipFile(file.open())
        except ARCHIVE_ERRORS as error:
            raise DataError(f"{self.name}: not a zip archive, or cut off ({error}). Copy it again.") from error
        self.paths = _visible(i.filename for i in self._archive.infolist() if not i.is_dir())

    def read(self, path: str) -> bytes:
        """Return the content of a file, see ``ImageFiles``."""
        try:
            with self._archive.open(path) as member:
                return member.read(MAX_FILE_BYTES + 1)  # a limit, whatever size the archive states
        except ARCHIVE_ERRORS as error:
            raise ImageError(
                f"{self.where(path)}: cannot be read ({error}). The archive is damaged or encrypted; copy it again."
            ) from error


def open_files(path: str | os.PathLike[str]) -> ImageFiles:
    """Return the files of a folder, a tar or a zip archive.

    Raises FileNotFoundError if the path does not exist, and DataError for any other kind of file.
    """
    address = plain_path(path)
    if is_folder(address):
        return FolderFiles(address)
    name = existing_file(address).name.lower()
    if name.endswith(TAR):
        return TarFiles(address)
    if name.endswith(ZIP):
        return ZipFiles(address)
    raise DataError(f"{address}: expected a folder or an archive ({', '.join(TAR + ZIP)}) of images.")


def _visible(paths: object) -> list[str]:
    """Return the paths in order, without hidden files and those that file managers and archivers leave behind."""
    return sorted(
        path
        for path in paths  # type: ignore[attr-defined]
        if not any(step.startswith(".") or step == "__MACOSX" for step in path.split("/"))
    )


def _walk(folder: str) -> list[str]:
    names_below, seen = [], set()
    for at, folders, names in os.walk(folder, followlinks=True):
        seen.add(os.path.realpath(at))
        folders[:] = [
            f for f in folders if os.path.realpath(os.path.join(at, f)) not in seen
        ]  # skips links that form a cycle
        names_below += [Path(at, name).relative_to(folder).as_posix() for name in names]
    return names_below


def _unpacked(file: DataFile) -> IO[bytes]:
    with file.open() as packed, tarfile.open(fileobj=packed, mode="r:*") as archive:
        plain: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  stays open as long as the object
        stream = cast(IO[bytes], archive.fileobj)  # decompressed stream of the archive's reader
        stream.seek(0)
        shutil.copyfileobj(stream, plain, 2**20)
    plain.seek(0)
    return plain
