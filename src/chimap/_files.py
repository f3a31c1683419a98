"""Files that appear whole or not at all, with arrays and plain metadata."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy
from safetensors import SafetensorError, safe_open

from chimap._types import JSON
from chimap._validation import DataError
from chimap._version import __version__

FORMAT = 4  # incremented when the contents of a file change their meaning
_AGAIN = "Write it again, or take another copy."
_DTYPES = {
    "b1": "BOOL",
    "i1": "I8",
    "u1": "U8",
    "i2": "I16",
    "u2": "U16",
    "i4": "I32",
    "u4": "U32",
    "i8": "I64",
    "u8": "U64",
    "f2": "F16",
    "f4": "F32",
    "f8": "F64",
}
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a path to write to, which replaces ``path`` if the block ends well and vanishes otherwise.

    Where the system has files without a name (Linux), the new file has none until it is whole, so that even a killed
    process leaves nothing behind. A symbolic link stays, and the file that it points to is replaced.

    Raises OSError for a path that cannot be written, that is a folder, a device or a pipe, and for a full disk.
    """
    path = Path(path)
    target = _target(path)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    handle, unfinished = _unfinished(target)
    named = None if handle is not None else unfinished
    try:
        yield unfinished
        if mode is not None:
            os.chmod(unfinished if handle is None else handle, mode)
        if handle is not None:
            named = _new_name(target)
            # Only with a folder handle is the link followed; as the path is absolute, any handle will do.
            os.link(unfinished, named, src_dir_fd=handle, follow_symlinks=True)
        assert named is not None
        os.replace(named, target)
    except OSError as error:
        if error.errno in _NO_ROOM and error.filename in (None, str(unfinished)):
            raise _no_room(path, os.strerror(error.errno or 0).lower()) from error
        raise
    finally:
        if named is not None:
            named.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def check_writable(path: str | Path) -> None:
    """Raise OSError if the path cannot be written, before any work that would be lost."""
    handle, unfinished = _unfinished(_target(Path(path)))
    if handle is None:
        unfinished.unlink()
    else:
        os.close(handle)


def check_free(path: str | Path, overwrite: bool) -> None:
    """Raise FileExistsError if something is at the path, unless it may be overwritten."""
    if Path(path).exists() and not overwrite:
        raise FileExistsError(f"{path} exists; choose another name, or pass overwrite=True to replace it.")


def claim(path: str | Path) -> IO[bytes]:
    """Return a lock file that this process holds until it is closed. Raises OSError if another process holds it."""
    file = open(path, "ab")  # noqa: SIM115
    with suppress(ImportError):  # Windows has no such locks
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise OSError(
                f"{Path(path).parent} is in use by another process. Wait until it ends, or name another output."
            ) from None
    return file


def _target(path: Path) -> Path:
    """Return the file that ``path`` stands for, links followed.

    Raises OSError where no regular file is or can be made.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it.")
    if path.exists() and not path.is_file():
        kind = _KINDS.get(stat.S_IFMT(path.stat().st_mode), "no file")
        raise OSError(f"{path} is {kind}, not a regular file, and is not replaced; name a file.")
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {target.parent} does not exist; create it first.")
    return target


def _unfinished(target: Path) -> tuple[int | None, Path]:
    """Make an empty file in the folder of ``target``: its handle and path if it has no name, else None and its path."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with suppress(OSError):  # the file system has no such files, or the folder is not writable
            handle = os.open(target.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
            return handle, Path(f"/proc/self/fd/{handle}")
    named = _new_name(target)
    os.close(os.open(named, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o666))
    return None, named


def _new_name(target: Path) -> Path:
    """Return an unused name beside ``target``."""
    return target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.part")


def _no_room(path: Path, reason: object) -> OSError:
    return OSError(f"{path} could not be written ({reason}); no partial file is left. Make room, or name another disk.")


def plain_json(value: JSON) -> JSON:
    """Return a value as JSON reads it back: tuples are lists, keys are strings."""
    return json.loads(json.dumps(value))


def write_tensors(path: str | Path, kind: str, meta: JSON, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays and JSON metadata to a safetensors file; ``kind`` says what it holds.

    The metadata list the arrays with their digests, and have a digest themselves, so that ``read_tensors`` can tell a
    changed or damaged file from an intact one. Raises OSError for a full disk.
    """
    ordered = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    listed = {name: {"shape": list(a.shape), "digest": _digest(a)} for name, a in ordered.items()}
    text = json.dumps({"kind": kind, "format": FORMAT, "version": __version__, **meta, "arrays": listed})
    header: JSON = {"__metadata__": {"chimap": text, "digest": _digest(text.encode())}}
    start = 0
    for name, a in ordered.items():
        end = start + a.nbytes
        header[name] = {"dtype": _DTYPES[a.dtype.str[1:]], "shape": list(a.shape), "data_offsets": [start, end]}
        start = end
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for a in ordered.values():
            file.write(a.astype(a.dtype.newbyteorder("<"), copy=False).reshape(-1).view(np.uint8).data)


def write_npy_header(file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Write what precedes the numbers of a ``.npy`` file."""
    npy.write_array_header_1_0(file, {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape})


def read_header(path: str | Path) -> JSON:
    """Return the metadata of a file written by ``write_tensors``. Raises DataError for any other file."""
    with _opened(path) as (meta, _):
        return meta


def read_tensors(path: str | Path, *kinds: str) -> tuple[JSON, dict[str, np.ndarray]]:
    """Return the metadata and arrays of a file of one of these kinds. DataError for any other, or a changed one."""
    with _opened(path) as (meta, file):
        if meta.get("kind") not in kinds:
            raise DataError(
                f"{path} holds {kind_named(meta.get('kind'))}, not {kind_named(kinds[0])}. Name another file."
            )
        arrays = {name: file.get_tensor(name) for name in meta["arrays"]}
        for name, a in arrays.items():
            if _digest(np.ascontiguousarray(a)) != meta["arrays"][name].get("digest"):
                raise DataError(f"{path} is damaged: {name} is not as it was written. {_AGAIN}")
        return meta, arrays


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[JSON, safe_open]]:
    """Yield the metadata and the file with the arrays that they list, after checking both."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    try:
        with safe_open(path, framework="numpy") as file:
            texts = file.metadata() or {}
            if "chimap" not in texts:
                raise DataError(f"{path} is a safetensors file, but not one of chimap. Name a file that it wrote.")
            meta = _parsed(texts["chimap"], path)
            _check_format(meta, path)
            if texts.get("digest") != _digest(texts["chimap"].encode(errors="surrogatepass")):
                raise DataError(f"{path} is damaged: its metadata are not as they were written. {_AGAIN}")
            there = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
            if there != _listed_shapes(meta.get("arrays")):
                raise DataError(f"{path} is damaged: its arrays are not those that its metadata list. {_AGAIN}")
            yield meta, file
    except SafetensorError as error:
        raise DataError(
            f"{path} is not a chimap file, or it is cut off or damaged ({error}). Name a "
            "file that chimap wrote, or write it again."
        ) from error


def _listed_shapes(listed: object) -> JSON | None:
    if not isinstance(listed, dict) or not all(isinstance(entry, dict) for entry in listed.values()):
        return None
    return {name: entry.get("shape") for name, entry in listed.items()}


def _check_format(meta: JSON, path: Path) -> None:
    number, version = meta.get("format"), meta.get("version")
    if number == FORMAT:
        return
    writer = f"chimap {version}" if isinstance(version, str) else "another version of chimap"
    message = f"{path} was written by {writer} in format {number}; chimap {__version__} reads format {FORMAT}. "
    if isinstance(number, int) and number > FORMAT:
        raise DataError(message + "Upgrade chimap (pip install --upgrade chimap), or write it again with this version.")
    raise DataError(message + "Write it again with this version, or read it with the one that wrote it.")


def kind_named(kind: object) -> str:
    """Return the name of a kind of file, as used in sentences."""
    names = {"words": "visual words", "estimator": "an estimator that only Python opens (chimap.load)"}
    return names.get(str(kind), f"a chimap {kind}")


def _parsed(header: str, path: Path) -> JSON:
    try:
        meta = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is damaged: its metadata are not JSON ({error}). {_AGAIN}") from error
    if not isinstance(meta, dict):
        raise DataError(f"{path} is damaged: its metadata are a {type(meta).__name__}. {_AGAIN}")
    return meta


def _digest(content: np.ndarray | bytes) -> str:
    data = content.reshape(-1).view(np.uint8).data if isinstance(content, np.ndarray) else content
    return hashlib.sha256(data).hexdigest()
