"""Check the output files of a command before any work, against its inputs and against each other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from chimap._errors import InputError

Given = str | Path | None


def check_ending(path: Path | None, flag: str, ending: str) -> None:
    """Raise InputError, naming the flag, if a file does not have this ending."""
    if path is not None and path.suffix.lower() != ending:
        raise InputError(f"{flag} must end in {ending}; got {str(path)!r}.")


def check_outputs(
    outputs: Mapping[str, Path | None],
    inputs: Iterable[Given],
    overwrite: bool,
    *,
    resumed: Mapping[str, Path | None] | None = None,
    stores: tuple[str, ...] = (),
) -> None:
    """Check, before any work, that the output files can be written and destroy neither inputs nor each other.

    Two names of the same file count as the same file: links are followed and inodes compared. ``outputs`` are by flag;
    ``resumed`` are files that the command both resumes from and writes, which may exist; ``stores`` are the endings of
    outputs that are folders. Raise OSError, naming the flag, for a file that cannot be written.
    """
    input_files = {str(source): Path(_file_of(source)) for source in inputs if source}
    taken: dict[str, Path] = {}
    for flag, path in {**outputs, **(resumed or {})}.items():
        if path is None:
            continue
        is_store = path.suffix.lower() in stores
        if path.is_dir() and not is_store:
            raise IsADirectoryError(f"{flag} {path} is a folder; name a file in it, such as {path / 'my.model'}.")
        for name, file in input_files.items():
            if file.exists() and _same(file, path):
                raise FileExistsError(f"{flag} {path} is the input {name} itself; choose another name.")
        for other_flag, earlier in taken.items():
            if _same(earlier, path):
                raise FileExistsError(f"{flag} {path} and {other_flag} {earlier} are the same file; choose two names.")
        taken[flag] = path
        if path.exists() and not path.is_file() and not is_store:
            raise FileExistsError(f"{flag} {path} is not a regular file and will not be replaced; name a file.")
        if flag in outputs and path.exists() and not overwrite:
            raise FileExistsError(f"{flag} {path} exists; choose another name, or add --overwrite to replace it.")
        check_folder((path.resolve() if path.is_symlink() else path).parent, f"{flag} {path}")


def check_folder(folder: Path, where: str) -> None:
    """Raise OSError if the folder does not exist, is a file, or is not writable."""
    if not folder.exists():
        raise FileNotFoundError(f"{where}: the folder {folder} does not exist; create it first.")
    if not folder.is_dir():
        raise NotADirectoryError(f"{where}: {folder} is a file, not a folder; choose another place.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{where}: no permission to write in the folder {folder}; choose another place.")


def _file_of(given: str | Path) -> str:
    """Return the local file that a path, an address or a member of an archive is read from."""
    from chimap.readers.io.files import plain_path, split_member

    path = split_member(given)[0]
    return path if os.path.exists(path) else plain_path(path.rpartition("::")[2])


def _same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)
