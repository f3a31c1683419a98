"""Files that appear whole or not at all, and hold arrays and plain metadata."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from chimap._validation import DataError

FORMAT = 3  # raised when what a file holds changes its meaning


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when the block ends well and vanishes when not."""
    path, beside = Path(path), _beside(path)
    try:
        yield beside
        umask = os.umask(0)
        os.umask(umask)
        beside.chmod(0o666 & ~umask)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def check_writable(path: str | Path) -> None:
    """Refuse a path that could not be written, before the work that would be lost. Raises OSError."""
    _beside(path).unlink()


def _beside(path: str | Path) -> Path:
    """A new empty file in the folder of ``path``."""
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {path.parent} does not exist; create it first.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it.")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    return Path(name)


def plain_json(value: Any) -> Any:
    """A value as it comes back from JSON: tuples are lists, keys are texts."""
    return json.loads(json.dumps(value))


def write_tensors(path: str | Path, kind: str, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Arrays and JSON metadata in one safetensors file; ``kind`` says what it holds. Raises OSError for a full disk."""
    header = {"chimap": json.dumps({"kind": kind, "format": FORMAT, **meta})}
    with replacing(path) as beside:
        try:
            save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, beside, metadata=header)
        except SafetensorError as error:
            raise OSError(
                f"{path} could not be written ({error}); nothing half-written stays. Make room, or name another disk."
            ) from error


def read_header(path: str | Path) -> dict[str, Any]:
    """Metadata of a file written by ``write_tensors``. Raises DataError for any other file."""
    with _opened(path) as (meta, _):
        return meta


def read_tensors(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Metadata and arrays of a file of this kind. Raises DataError for any other, or a damaged one."""
    with _opened(path) as (meta, file):
        if meta.get("kind") != kind:
            raise DataError(
                f"{path} holds {kind_named(meta.get('kind'))}, not {kind_named(kind)}. Name another file."
            )
        return meta, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[dict[str, Any], Any]]:
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    try:
        with safe_open(path, framework="numpy") as file:
            header = (file.metadata() or {}).get("chimap")
            if header is None:
                raise DataError(
                    f"{path} is a safetensors file, but not one of chimap. Name a file that it wrote."
                )
            meta = _parsed(header, path)
            if meta.get("format") != FORMAT:
                raise DataError(
                    f"{path} has format {meta.get('format')}; this version of chimap reads format {FORMAT}. "
                    "Write it again with this version, or read it with the one that wrote it."
                )
            yield meta, file
    except SafetensorError as error:
        raise DataError(
            f"{path} is not a chimap file, or it is cut off or damaged ({error}). Name a "
            "file that chimap wrote, or write it again."
        ) from error


def kind_named(kind: Any) -> str:
    """What a file of this kind is called in a sentence."""
    return "visual words" if kind == "words" else f"a chimap {kind}"


def _parsed(header: str, path: Path) -> dict[str, Any]:
    try:
        meta = json.loads(header)
    except json.JSONDecodeError as error:
        raise DataError(f"{path} is damaged: its metadata are no JSON ({error}).") from error
    if not isinstance(meta, dict):
        raise DataError(f"{path} is damaged: its metadata are a {type(meta).__name__}.")
    return meta
