"""Files as arguments: paths with members, files that must be there, digests of their content."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from chimap._validation import DataError

WINDOW = 2**16


def split_member(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """The file and the member of a path with ``::``; the member is None where there is no ``::``.

    >>> split_member("mnist.npz::x_train")[1]
    'x_train'
    """
    file, mark, member = os.fspath(path).rpartition("::")
    return (Path(file), member) if mark else (Path(member), None)


def existing_file(path: str | os.PathLike[str]) -> Path:
    """The path, if a file with content is there.

    Raises FileNotFoundError if nothing is there, DataError for a folder or an empty file.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"No such file: {path}. Check the spelling; relative paths start at the working directory."
        )
    if path.is_dir():
        raise DataError(f"{path} is a folder; expected a data file. Name a file in it.")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty (0 bytes). Write or copy it again.")
    return path


def file_digest(path: Path) -> str:
    """Hexadecimal digest of ten evenly spaced windows of 64 KiB, the first and the last bytes among them."""
    last = max(0, path.stat().st_size - WINDOW)
    total = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        for k in range(10):
            file.seek(last * k // 9)
            total.update(file.read(WINDOW))
    return total.hexdigest()
