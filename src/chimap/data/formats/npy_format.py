"""The ``.npy`` layout, a header and then the values, read without mapping and without pickles."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from tokenize import TokenError
from typing import IO

import numpy as np
from numpy.lib import format as npy

from chimap._validation import DataError

READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
PIECE = 2**22
# Errors of numpy's header reader, which parses a Python literal, on a damaged header.
_BROKEN = (
    ValueError, KeyError, TypeError, SyntaxError, EOFError, OverflowError, RecursionError, TokenError, struct.error,
)  # fmt: skip


@dataclass(frozen=True)
class Header:
    """The content of a ``.npy`` header, and the offset ``start`` of the first value."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype
    start: int

    @property
    def nbytes(self) -> int:
        """Size of all values in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(file: IO[bytes], where: str) -> Header:
    """Return the header of an open ``.npy`` file, and leave the file at the first value.

    Raises DataError if it is not ``.npy``, or holds Python objects or records.
    """
    try:
        reader = READERS[npy.read_magic(file)]
        shape, fortran_order, dtype = reader(file)
    except _BROKEN as error:
        raise DataError(f"{where}: not an .npy array, or cut off ({error}). Use numpy.save.") from error
    if dtype.hasobject or dtype.fields is not None:
        raise DataError(
            f"{where}: holds Python objects or records (dtype {dtype}), which are never unpickled. "
            "Save a plain array of numbers or text."
        )
    return Header(shape, fortran_order, dtype, file.tell())


def fill(file: IO[bytes], values: np.ndarray) -> None:
    """Read the next bytes of a file into a C-contiguous array. Raises EOFError if there are too few."""
    view, done = values.reshape(-1).view(np.uint8).data, 0
    while done < len(view):
        # Read small pieces, because a decompressor makes a copy of each.
        n_read = file.readinto(view[done : done + PIECE])  # type: ignore[attr-defined]
        if not n_read:
            raise EOFError(f"{len(view) - done} bytes are missing")
        done += n_read
