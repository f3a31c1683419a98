"""Tell whether a path holds images or rows of bins, before anything that opens images is imported."""

from __future__ import annotations

import os

from chimap.readers.arrow_files import PARQUET, ArrowPart, find_parts
from chimap.readers.io.containers import is_store
from chimap.readers.io.files import existing_file, files_under, is_folder, split_member

ENDINGS = (
    ".jpg",
    ".jpeg",
    ".jpe",
    ".jfif",
    ".png",
    ".gif",
    ".bmp",
    ".tif",
    ".tiff",
    ".webp",
    ".ppm",
    ".pgm",
    ".pbm",
    ".pnm",
    ".jp2",
    ".avif",
)
TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
ZIP = (".zip",)
TABLES = (".csv", ".tsv")
_FIRST_VALUES = 8  # of a column of bytes, which tell whether it is text


def is_image_name(path: str) -> bool:
    """Return whether the ending of a file name is that of an image.

    >>> is_image_name("cat/image_0001.JPG"), is_image_name("README.txt")
    (True, False)
    """
    return path.lower().endswith(ENDINGS)


def holds_images(path: str | os.PathLike[str]) -> bool:
    """Return whether ``open_images`` should open a path, rather than ``open_source``.

    It should for an archive, for a folder with images in it, for a table of text that names images in its first lines,
    and for Parquet with a column of bytes that are not text, and none of lists. Raises FileNotFoundError if the path
    does not exist.
    """
    address = split_member(path)[0]
    if is_folder(address):
        if is_store(address):
            return False
        inner = files_under(address)
        return any(map(is_image_name, inner)) or (
            any(name.endswith(PARQUET) for name in inner) and _holds_bytes(address)
        )
    name = existing_file(address).name.lower()
    if name.endswith(TABLES):
        with existing_file(address).open() as file:
            lines = file.read(2**16).decode("utf-8", "replace").splitlines()[:2]
        fields = [field.strip(' "') for line in lines for field in line.replace("\t", ",").split(",")]
        return any(map(is_image_name, fields))
    if name.endswith(PARQUET):
        return _holds_bytes(address)
    return name.endswith(TAR + ZIP) and not name.endswith(".zarr.zip")


def _holds_bytes(address: str) -> bool:
    from pyarrow import types

    part = find_parts(address)[0]
    kinds = {field.name: field.type for field in part.schema}
    if any(types.is_list(t) or types.is_fixed_size_list(t) for t in kinds.values()):
        return False
    of_bytes = [name for name, t in kinds.items() if types.is_binary(t) or types.is_large_binary(t)]
    return any(map(types.is_struct, kinds.values())) or any(not _is_text(part, name) for name in of_bytes)


def _is_text(part: ArrowPart, column: str) -> bool:
    """Return whether the first values of a column of bytes are text, as labels are where a program wrote no types."""
    first = next(part.batches(0, [column], _FIRST_VALUES), None) if part.group_rows else None
    values = [] if first is None else [value for value in first.column(0).to_pylist() if value is not None]
    try:
        return bool(values) and not any("\0" in value.decode() for value in values)
    except UnicodeDecodeError:
        return False
