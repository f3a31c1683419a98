"""Files that hold nothing but labels: ``.npy`` arrays, text with one label a line, and tables of a single column.

Text may be compressed.
"""

from __future__ import annotations

import csv
import zlib

import numpy as np

from chimap._validation import DataError
from chimap.data.formats.npy_format import fill, read_header
from chimap.data.io.compressed import decompressed
from chimap.data.io.files import DataFile


def read_npy(path: DataFile) -> np.ndarray:
    """Return the array of a ``.npy`` file of labels."""
    with path.open() as file:
        header = read_header(file, f"labels in {path}")
        values = np.empty(header.shape, header.dtype)
        try:
            fill(file, values)
        except EOFError as error:
            raise DataError(f"labels in {path}: cut off, {error}. Copy or write it again.") from error
    return values


def read_lines(path: DataFile) -> list[str]:
    """Return the lines of a text file without surrounding blanks; a blank line is a missing label."""
    return [line.strip() for line in _read_text(path).splitlines()]


def read_table(path: DataFile, delimiter: str) -> list[str]:
    """Return the fields of a text table with a single column."""
    records = list(csv.reader(_read_text(path).rstrip("\r\n").splitlines(), delimiter=delimiter))
    for line, record in enumerate(records, 1):
        if len(record) > 1:
            raise DataError(
                f"labels in {path}, line {line}: {len(record)} columns; expected a single one. Name the column as "
                f"{path}::COLUMN, which joins its rows by their ids, or keep only the column of labels."
            )
    return ["".join(record).strip() for record in records]


def _read_text(path: DataFile) -> str:
    try:
        with decompressed(path) as file:
            return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"labels in {path}: not text in UTF-8 ({error}). Use text, plain or compressed, or .npy or .npz."
        ) from error
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(
            f"labels in {path}: cannot be read ({error}). The file is damaged or cut off; copy it again."
        ) from error
