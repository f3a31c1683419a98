"""Turn stored numbers into rows of floats: the types, shapes and row borders that all sources share."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from chimap import _arrays
from chimap import _sparse as sp
from chimap._types import DTypeLike, Rows
from chimap._validation import DataError, check_positive

LARGEST_WIDTH, LARGEST_HEIGHT = 2**28, 2**40


def check_distinct(names: Iterable[str], where: str) -> None:
    """Raise DataError if two columns have the same name."""
    known: set[str] = set()
    for name in names:
        if name in known:
            raise DataError(f"{where}: two columns are called {name!r}. Rename one of them.")
        known.add(name)


def chunk_dtype(dtype: DTypeLike, where: str) -> np.dtype:
    """Return the float type of the chunks for a stored type.

    float32 and float64 stay; bool, float16 and integers of up to 16 bits become float32, which holds them exactly; all
    other real numbers become float64. Raises DataError for a type that is not a real number.

    >>> chunk_dtype("uint8", "X"), chunk_dtype("int64", "X")
    (dtype('float32'), dtype('float64'))
    """
    dtype = np.dtype(dtype).newbyteorder("=")
    if dtype.kind not in "fiub":
        raise DataError(f"{where}: expected numbers, got dtype {dtype}. Encode the columns as numbers.")
    return _arrays.exact_dtype(dtype)


def check_exact(names: np.ndarray, what: str) -> None:
    """Raise DataError for float64 labels or ids of 2**53 or more, where two whole numbers become one float."""
    large = names[np.isfinite(names) & (np.abs(names) >= 2.0**53)]
    if large.size and np.all(names == np.round(names)):
        raise DataError(
            f"{what} {large[0]:.0f} is too large to be read exactly among floats: from 2**53 on, two numbers become "
            "one. Give such names in a file or array of their own, or as text in a column of a table."
        )


def matrix_shape(shape: tuple[int, ...], where: str) -> tuple[int, int]:
    """Return (n_rows, n_features) of an array with rows along its first axis; the other axes are flattened.

    Raises DataError for fewer than two axes, and for no rows or no columns.

    >>> matrix_shape((60000, 28, 28), "X")
    (60000, 784)
    """
    if len(shape) < 2:
        raise DataError(
            f"{where}: expected rows of bins, an array with 2 axes or more, got shape {shape}. "
            "Use X.reshape(1, -1) for a single row, X.reshape(-1, 1) for a single bin per row."
        )
    n_rows, n_features = int(shape[0]), math.prod(int(s) for s in shape[1:])
    check_size(n_rows, n_features, where)
    if n_rows == 0 or n_features == 0:
        raise DataError(f"{where}: empty, shape {shape}. At least one row and one column are needed.")
    return n_rows, n_features


def check_size(n_rows: int, n_features: int, where: str) -> None:
    """Refuse sizes that only damaged or hostile files promise, before any memory is allocated for them."""
    for size, largest, what in ((n_rows, LARGEST_HEIGHT, "rows"), (n_features, LARGEST_WIDTH, "columns")):
        if not 0 <= size <= largest:
            raise DataError(
                f"{where}: it promises {size:,} {what}; at most {largest:,} can be read. Is the number right? "
                "Write the file again, or hash the columns into fewer."
            )


def row_ranges(n_rows: int, chunk_rows: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of consecutive chunks. Raises ValueError if chunk_rows is not a positive whole number.

    >>> list(row_ranges(5, 2))
    [(0, 2), (2, 4), (4, 5)]
    """
    check_positive(chunk_rows, "chunk_rows", integer=True)
    for start in range(0, n_rows, chunk_rows):
        yield start, min(start + chunk_rows, n_rows)


def csr_rows(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_features: int, dtype: np.dtype
) -> sp.csr_matrix:
    """Return canonical CSR rows of ``dtype`` from a range of CSR parts, with int32 indices where they fit.

    ``data`` and ``indices`` have shape (nnz,), ``indptr`` has shape (rows + 1,) and may start at any offset. ``data``
    is not copied if it already fits.
    """
    fits = max(n_features, data.size) <= np.iinfo(np.int32).max
    index = np.dtype(np.int32 if fits else np.int64)
    parts = (data, indices.astype(index, copy=False), (indptr - indptr[0]).astype(index))
    return _arrays.as_rows(sp.csr_matrix(parts, shape=(indptr.size - 1, n_features)), dtype)


def check_columns(indices: np.ndarray, borders: np.ndarray, start: int, n_features: int, where: str) -> None:
    """Raise DataError, naming the row, for a column outside of the shape; ``start`` is the first of the rows."""
    if not indices.size or (indices.min() >= 0 and indices.max() < n_features):
        return
    place = int(np.flatnonzero((indices < 0) | (indices >= n_features))[0])
    row = start + int(np.searchsorted(borders - borders[0], place, side="right")) - 1
    raise DataError(
        f"{where}, row {row}: column {indices[place]} lies outside the {n_features} columns of its shape. Write the "
        "file again."
    )


def csr_row_bytes(nnz: int, n_rows: int, dtype: np.dtype) -> float:
    """Return the mean bytes of a CSR row: values, int32 columns and one int32 row border."""
    return nnz / n_rows * (dtype.itemsize + 4) + 4


def regroup(blocks: Iterable[Rows], chunk_rows: int, n_rows: int) -> Iterator[Rows]:
    """Yield the rows of ``blocks`` in order, ``chunk_rows`` at a time; the last chunk may be shorter.

    Dense blocks are copied into a chunk as they come, so that never more than a chunk and a block are in memory. No
    chunk allocates memory for more than ``n_rows``, the expected rows of all blocks together.
    """
    check_positive(chunk_rows, "chunk_rows", integer=True)
    size = min(chunk_rows, n_rows)
    gather: Any = None  # _SparseChunk or _DenseChunk, like the blocks
    for block in blocks:
        if gather is None:
            gather = (_SparseChunk if _arrays.is_sparse(block) else _DenseChunk)(size)
        first = 0
        while first < block.shape[0]:
            last = min(block.shape[0], first + size - gather.filled)
            gather.add(block[first:last])
            first = last
            if gather.filled == size:
                yield gather.release()
    if gather is not None and gather.filled:
        yield gather.release()


class _DenseChunk:
    """A chunk that dense blocks are copied into; a block of full size becomes the chunk without a copy."""

    def __init__(self, size: int) -> None:
        self._size, self._rows, self.filled = size, np.empty((0, 0)), 0

    def add(self, block: np.ndarray) -> None:
        if block.shape[0] == self._size:
            self._rows = block
        elif self.filled == 0:
            self._rows = np.empty((self._size, block.shape[1]), block.dtype)
        if self._rows is not block:
            self._rows[self.filled : self.filled + block.shape[0]] = block
        self.filled += block.shape[0]

    def release(self) -> np.ndarray:
        rows, self._rows = self._rows[: self.filled], np.empty((0, 0))
        self.filled = 0
        return rows


class _SparseChunk:
    """A chunk of CSR blocks, which are stacked when it is full."""

    def __init__(self, size: int) -> None:
        self._blocks: list[Rows] = []
        self.filled = 0

    def add(self, block: Rows) -> None:
        self._blocks.append(block)
        self.filled += block.shape[0]

    def release(self) -> Rows:
        rows = self._blocks[0] if len(self._blocks) == 1 else _arrays.stack_rows(self._blocks)
        self._blocks, self.filled = [], 0
        return rows


def digest(*arrays: np.ndarray) -> str:
    """Return the hexadecimal digest of the bytes of arrays."""
    total = hashlib.blake2b(digest_size=16)
    for array in arrays:
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


class RunningDigest:
    """The digest of rows that come in chunks; where these begin makes no difference."""

    def __init__(self) -> None:
        self._totals = [hashlib.blake2b(digest_size=16) for _ in range(3)]

    def add(self, rows: Rows) -> None:
        """Add rows, dense or CSR."""
        parts = (rows.data, rows.indices, np.diff(rows.indptr)) if _arrays.is_sparse(rows) else (rows,)
        for total, array in zip(self._totals, parts, strict=False):
            total.update(np.ascontiguousarray(array).tobytes())

    def result(self) -> str:
        """Return the digest of the rows so far."""
        return "".join(total.hexdigest() for total in self._totals)
