"""Files that a command will write, checked before any work against what it reads and against each other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

Given = str | Path | None


def check_outputs(
    outputs: Mapping[str, Path | None],
    inputs: Iterable[Given],
    overwrite: bool,
    *,
    resumed: Mapping[str, Path | None] | None = None,
    stores: tuple[str, ...] = (),
) -> None:
    """Refuse, before any work, files that could not be written after it, or that would destroy one another.

    outputs: paths by flag. inputs: what is read; paths, addresses, and members of archives. resumed: files by flag
    that the command writes and also goes on from, which may exist. stores: endings that are folders.

    Two names of one file are the same file: links are followed, and inodes compared. Raises OSError naming the flag.
    """
    given = {str(each): Path(_file_of(each)) for each in inputs if each}
    taken: dict[str, Path] = {}
    for flag, path in {**outputs, **(resumed or {})}.items():
        if path is None:
            continue
        is_store = path.suffix.lower() in stores
        if path.is_dir() and not is_store:
            raise IsADirectoryError(
                f"{flag} {path} is a folder; name a file in it, such as {path / 'my.model'}."
            )
        for name, file in given.items():
            if file.exists() and _same(file, path):
                raise FileExistsError(f"{flag} {path} is the input {name} itself; choose another name.")
        for other, earlier in taken.items():
            if _same(earlier, path):
                raise FileExistsError(f"{flag} {path} and {other} {earlier} are one file; choose two names.")
        taken[flag] = path
        if path.exists() and not path.is_file() and not is_store:
            raise FileExistsError(f"{flag} {path} is not a regular file, and is not replaced; name a file.")
        if flag in outputs and path.exists() and not overwrite:
            raise FileExistsError(
                f"{flag} {path} exists; choose another name, or add --overwrite to replace it."
            )
        check_folder((path.resolve() if path.is_symlink() else path).parent, f"{flag} {path}")


def check_folder(folder: Path, where: str) -> None:
    """Refuse a folder that is not there, is a file, or may not be written to."""
    if not folder.exists():
        raise FileNotFoundError(f"{where}: the folder {folder} does not exist; create it first.")
    if not folder.is_dir():
        raise NotADirectoryError(f"{where}: {folder} is a file, not a folder; choose another place.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{where}: no permission to write in the folder {folder}; choose another place."
        )


def _file_of(given: str | Path) -> str:
    """The file on this machine that a path, an address or a member of an archive is read from."""
    from chimap.data.io.files import plain_path, split_member

    return plain_path(split_member(given)[0].rpartition("::")[2])


def _same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)
