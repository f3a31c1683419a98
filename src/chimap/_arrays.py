"""Arrays of all kinds: the only module that distinguishes dense from sparse, and NumPy's arrays from a device's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import numpy as np

from chimap import _sparse as sp
from chimap._errors import InputError
from chimap._types import CSR, Array, DeviceArray, DTypeLike, Rows

if TYPE_CHECKING:
    from typing_extensions import TypeIs


T = TypeVar("T")
KindOfRows = TypeVar("KindOfRows", bound=Rows | DeviceArray)

_PIECE = 2**16  # entries that are compared or copied at once

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def is_sparse(X: object) -> TypeIs[CSR]:
    """Return whether X is a scipy sparse matrix or array."""
    # The type is checked first, because issparse takes as long as a loop over a row.
    return type(X) is not np.ndarray and "scipy.sparse" in sys.modules and bool(sp.issparse(X))


def is_plain(X: Any) -> TypeIs[Rows]:
    """Return whether X is a float32 or float64 matrix, a NumPy array or CSR, and not of a class derived from these."""
    is_of_rows = type(X) is np.ndarray or (is_sparse(X) and type(X) in (sp.csr_matrix, sp.csr_array))
    return is_of_rows and X.ndim == 2 and X.dtype in FLOATS


def is_nameless(X: object) -> TypeIs[Rows]:
    """Return whether X is an array of NumPy or a matrix of SciPy, which has no names of columns and no ids of rows."""
    return isinstance(X, np.ndarray) or is_sparse(X)


def is_on_device(X: object) -> TypeIs[DeviceArray]:
    """Return whether X is an array of torch or cupy, wherever its memory is."""
    return type(X).__module__.partition(".")[0] in ("torch", "cupy")


def namespace(X: Array) -> ModuleType:
    """Return the module with the functions of the Python array API standard for arrays such as X."""
    from array_api_compat import array_namespace

    return array_namespace(X)


def to_host(X: T | DeviceArray) -> T | np.ndarray:
    """Return an array of a device as NumPy's, and any other X as it is."""
    if not is_on_device(X):
        return X
    array: Any = X
    return array.get() if hasattr(X, "get") else array.detach().cpu().numpy()


def as_like(values: np.ndarray, X: Array) -> Array:
    """Return NumPy values as an array of the library, device and dtype of X."""
    xp = namespace(X)
    if getattr(X, "is_cuda", False):  # torch: unless page-locked, the copy waits for all queued work
        return xp.asarray(values, dtype=X.dtype).pin_memory().to(X.device, non_blocking=True)
    return xp.asarray(values, dtype=X.dtype, device=X.device)


def device_rows(X: DeviceArray) -> DeviceArray:
    """Return X of a device as rows of float32 or float64 there; other types become float64, float16 becomes float32."""
    xp = namespace(X)
    if X.dtype in (xp.float32, xp.float64):
        return X
    return xp.astype(X, xp.float32 if "float16" in str(X.dtype) else xp.float64)


def float_bits(X: Array) -> Array:
    """Return a view of float32 or float64 numbers as integers of the same width."""
    xp = namespace(X)
    return X.view(xp.int32 if X.dtype == xp.float32 else xp.int64)


def float_dtype(dtype: DTypeLike) -> np.dtype:
    """Return the float type of numbers: float32 and float64 stay, float16 becomes float32, all others float64."""
    dtype = np.dtype(dtype)
    if dtype in FLOATS:
        return dtype
    return np.dtype(np.float32) if dtype == np.float16 else np.dtype(np.float64)


def exact_dtype(dtype: DTypeLike) -> np.dtype:
    """Return float32 for bool and integers of up to 16 bits, which it holds exactly; else as ``float_dtype``."""
    dtype = np.dtype(dtype)
    return np.dtype(np.float32) if dtype.kind in "iub" and dtype.itemsize <= 2 else float_dtype(dtype)


@overload
def as_rows(X: np.ndarray, dtype: DTypeLike = None) -> np.ndarray: ...


@overload
def as_rows(X: object, dtype: DTypeLike = None) -> Rows: ...


def as_rows(X: object, dtype: DTypeLike = None) -> Rows:
    """Return X as C-contiguous float rows, or as CSR with sorted indices and without duplicates.

    Explicit zeros stay in CSR: they are zeros for every kernel and map. X is not copied if it already fits.
    """
    if is_sparse(X):
        target = np.dtype(dtype) if dtype is not None else float_dtype(X.dtype)
        if _may_repeat(X):  # tocsr adds up in the type of the entries: 200 + 100 = 44 in uint8
            X = X.astype(target, copy=False)
        rows = X.tocsr().astype(target, copy=False)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        if rows.data.size > rows.nnz:  # the arrays have spare room behind the last entry
            rows = csr(rows.data[: rows.nnz], rows.indices[: rows.nnz], rows.indptr, rows.shape)
        return rows
    dense = np.asarray(X)
    target = np.dtype(dtype) if dtype is not None else float_dtype(dense.dtype)
    return np.ascontiguousarray(dense, dtype=target)


def as_csr(X: CSR) -> CSR:
    """Return sparse X of any format as CSR. Repeated entries are added up as floats; without repeats the type stays."""
    may_add_up = X.dtype.kind in "fiub" and _may_repeat(X)  # other types are refused elsewhere
    return cast(CSR, as_rows(X, exact_dtype(X.dtype))) if may_add_up else X.tocsr()


def _may_repeat(X: CSR) -> bool:
    """Return whether entries of sparse X may be stored in parts, whose sum they are; some formats cannot do this."""
    return not getattr(X, "has_canonical_format", True)


def conversion(is_sparse: bool, given: DTypeLike, dtype: np.dtype) -> float:
    """Return the factor of the bytes that rows take in another dtype; the indices of sparse rows do not change."""
    index = 4 * is_sparse
    return (dtype.itemsize + index) / (np.dtype(given).itemsize + index)


def flat_view(values: np.ndarray) -> np.ndarray:
    """Return the same memory as a flat array (a copy only if it is not contiguous)."""
    return values.reshape(-1)


def nonzero_values(X: Rows) -> np.ndarray:
    """Return the nonzero entries of X as a flat array."""
    stored, filled = stored_values(X), 0
    values = np.empty(np.count_nonzero(stored), stored.dtype)
    for piece in pieces(stored):
        nonzero = piece[piece != 0]
        values[filled : filled + nonzero.size] = nonzero
        filled += nonzero.size
    return values


def smallest_magnitude(X: Rows) -> float:
    """Return the smallest magnitude of the nonzero entries of X, infinite if there are none."""
    smallest = np.inf
    for piece in pieces(stored_values(X)):
        smallest = min(smallest, float(np.abs(piece).min(initial=np.inf, where=piece != 0)))
    return smallest


def slices(length: int, size: int) -> list[slice]:
    """Return slices of ``size`` that cover a length; the last may be shorter."""
    return [slice(first, min(first + size, length)) for first in range(0, length, size)]


def pieces(values: np.ndarray) -> Iterator[np.ndarray]:
    """Iterate over a flat array piece by piece, so that temporary arrays stay small."""
    return (values[first : first + _PIECE] for first in range(0, values.size, _PIECE))


def are_whole(X: Rows) -> bool:
    """Return whether all entries of X are whole numbers."""
    return all(bool(np.all(piece == np.rint(piece))) for piece in pieces(stored_values(X)))


def values_by_bin(X: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return the magnitudes of the nonzero entries of X, bin after bin, and where each bin starts.

    values (nnz,) are float64; those of bin i are values[starts[i] : starts[i + 1]], in the order of the rows.
    """
    if is_sparse(X):
        columns = without_zeros(X).tocsc()
        return np.abs(columns.data, dtype=np.float64), columns.indptr.astype(np.int64)
    starts = np.zeros(X.shape[1] + 1, np.int64)
    np.cumsum(np.count_nonzero(X, axis=0), out=starts[1:])
    values = np.empty(starts[-1])
    for column, of_bin in zip(X.T, np.split(values, starts[1:-1]), strict=True):
        of_bin[:] = column[column != 0]
    return np.abs(values, out=values), starts


def column_maxima(X: Rows) -> np.ndarray:
    """Return the largest magnitude of each column, float64; 0 for an empty column."""
    if not is_sparse(X):
        return np.maximum(X.max(axis=0), -X.min(axis=0)).astype(np.float64)
    maxima = np.zeros(X.shape[1], X.dtype)
    for values, columns in zip(pieces(X.data), pieces(X.indices), strict=True):
        np.maximum.at(maxima, columns, np.abs(values))
    return maxima.astype(np.float64)


def column_means(X: Rows) -> np.ndarray:
    """Return the mean of each column, (columns,) float64, over at least one row."""
    return np.asarray(X.mean(axis=0, dtype=np.float64)).reshape(-1)


def n_nonzero(X: Rows) -> np.ndarray:
    """Return the number of nonzero entries of each column."""
    if is_sparse(X):
        return np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
    return np.count_nonzero(X, axis=0)


def minus_row(X: Rows, row: np.ndarray) -> Rows:
    """Subtract a row (columns,) of the dtype of X from each row of X.

    Dense X changes in place; CSR gives a new matrix, in which each nonzero entry of the row fills a column.
    """
    if not is_sparse(X):
        X -= row
        return X
    columns = np.flatnonzero(row)
    n = X.shape[0]
    entries = np.tile(row[columns], n), np.tile(columns, n).astype(X.indices.dtype)
    return as_rows(X - csr(*entries, np.arange(n + 1) * columns.size, X.shape))


def stored_values(X: Rows) -> np.ndarray:
    """Return the stored numbers of X as a flat array without a copy: all of a dense array, the entries of CSR."""
    return X.data if is_sparse(X) else flat_view(X)


def stored_bytes(X: Rows) -> int:
    """Return the bytes of the array, or of the three arrays of CSR."""
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if is_sparse(X) else X.nbytes


def map_values(X: Rows, function: Callable[[np.ndarray], np.ndarray]) -> Rows:
    """Apply a function with f(0) = 0 to every entry; dense stays dense, CSR keeps its pattern."""
    return csr(function(X.data), X.indices, X.indptr, X.shape) if is_sparse(X) else function(X)


def take_rows(X: KindOfRows, rows: slice | np.ndarray | Sequence[int]) -> KindOfRows:
    """Return rows of X by slice or index, of the same kind as X."""
    return cast(KindOfRows, X[rows])


def view_rows(X: Rows, rows: slice) -> Rows:
    """Return consecutive rows (start and stop given) as a view; scipy would copy the entries of CSR."""
    if not is_sparse(X):
        return X[rows]
    entries = slice(X.indptr[rows.start], X.indptr[rows.stop])
    indptr = X.indptr[rows.start : rows.stop + 1] - entries.start
    return csr(X.data[entries], X.indices[entries], indptr, (rows.stop - rows.start, X.shape[1]))


def take_columns(X: Rows, columns: np.ndarray) -> Rows:
    """Return columns of X by index, C-contiguous, of the same kind as X; X itself if they are all columns in order."""
    if columns.size == X.shape[1] and np.array_equal(columns, np.arange(columns.size)):
        return X
    start, stop = int(columns[0]), int(columns[-1]) + 1
    if stop - start == columns.size and np.array_equal(columns, np.arange(start, stop)):
        chosen = X[:, start:stop]  # a slice is several times as fast as an index
    else:
        chosen = X[:, columns]
    return as_rows(chosen)


def stack_rows(parts: Sequence[Rows]) -> Rows:
    """Stack row blocks of the same kind, one under the other."""
    return (
        sp.vstack(parts, format="csr") if is_sparse(parts[0]) else np.concatenate([to_dense(block) for block in parts])
    )


def stack_columns(parts: Sequence[Rows]) -> Rows:
    """Stack column blocks of the same kind, side by side."""
    if is_sparse(parts[0]):
        return sp.hstack(parts, format="csr")
    return np.concatenate([to_dense(block) for block in parts], axis=1)


def to_dense(X: Rows) -> np.ndarray:
    """Return X as a dense array."""
    return X.toarray() if is_sparse(X) else X


def to_sparse(X: Rows) -> CSR:
    """Return X as CSR."""
    return X if is_sparse(X) else sp.csr_matrix(X)


def like(X: Rows, other: Rows) -> Rows:
    """Return X as CSR if ``other`` is CSR, and dense if it is dense."""
    return to_sparse(X) if is_sparse(other) else to_dense(X)


def row_content(X: Rows, row: int) -> bytes:
    """Return the bytes of a row; equal rows of the same kind have equal bytes."""
    if not is_sparse(X):
        return X[row].tobytes()
    entries = slice(X.indptr[row], X.indptr[row + 1])
    return X.indices[entries].tobytes() + X.data[entries].tobytes()


def first_equal(parts: Sequence[Rows]) -> np.ndarray:
    """Return the place of the first row that equals each row in all parts of the same n rows, (n,)."""
    first: dict[bytes, int] = {}
    n = parts[0].shape[0]
    contents = (b"".join(row_content(part, row) for part in parts) for row in range(n))
    return np.array([first.setdefault(content, row) for row, content in enumerate(contents)], dtype=np.intp)


def with_short_indices(X: Rows) -> Rows:
    """Return X with 32-bit indices if it is CSR, for libraries that take no others. ValueError if they overflow."""
    if not is_sparse(X) or X.indices.dtype == np.int32:
        return X
    if max(X.nnz, *X.shape) >= 2**31:
        raise InputError(f"{X.nnz} entries of a sparse matrix {X.shape} need indices of 64 bits; use fewer rows.")
    return csr(X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32), X.shape)


def without_zeros(X: CSR) -> CSR:
    """Return CSR X without its explicit zeros; X itself if it has none."""
    if X.data.size and not X.data.all():
        X = X.copy()
        X.eliminate_zeros()
    return X


def csr(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]) -> CSR:
    """Make a CSR matrix of arrays that are known to be sorted and without duplicates."""
    matrix = sp.csr_matrix((data, indices, indptr), shape=shape, copy=False)
    matrix.has_canonical_format = True
    return matrix


def row_norms_l1(X: Rows) -> np.ndarray:
    """Return the sum of absolute values of each row, float64 of shape (rows,)."""
    if is_sparse(X):
        return np.asarray(abs(X).sum(axis=1, dtype=np.float64)).reshape(-1)
    return np.abs(X).sum(axis=1, dtype=np.float64)


def row_squares(X: Rows) -> np.ndarray:
    """Return |x|^2 of rows, dense or CSR, of shape (n,) in their dtype."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=X.dtype).reshape(-1)
    return np.asarray(np.einsum("ij,ij->i", X, X))


def scale_rows(X: Rows, factors: np.ndarray) -> Rows:
    """Return a copy of X whose row i is multiplied by factors[i]; dtype and kind of X stay."""
    if is_sparse(X):
        return sp.csr_matrix(
            (_times(X.data, np.repeat(factors, np.diff(X.indptr))), X.indices, X.indptr), shape=X.shape
        )
    return _times(X, factors[:, None])


def scale_entries(X: Rows, columns: np.ndarray, factors: np.ndarray) -> None:
    """Multiply the entries of X in these columns by the factor of their row, (rows,), in place."""
    if is_sparse(X):
        inside = np.zeros(X.shape[1], dtype=bool)
        inside[columns] = True
        chosen = inside[X.indices]
        X.data[chosen] = _times(X.data[chosen], np.repeat(factors, np.diff(X.indptr))[chosen])
    else:
        X[:, columns] = _times(X[:, columns], factors[:, None])


def scale_columns(X: Rows, factors: np.ndarray) -> Rows:
    """Return a copy of X whose column i is multiplied by factors[i]; dtype and kind of X stay."""
    if is_sparse(X):
        return csr(_times(X.data, factors[X.indices]), X.indices, X.indptr, X.shape)
    return _times(X, factors)


def unit_rows(X: Rows) -> Rows:
    """Return float64 rows divided by their l1 norms; empty rows, and those of subnormal norm, stay below 1."""
    return scale_rows(X, 1 / np.maximum(row_norms_l1(X), np.finfo(np.float64).tiny))


def _times(values: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return the product in the dtype of the values, also where factors are beyond its range."""
    limits, sizes = np.finfo(values.dtype), np.abs(factors)
    if np.all((sizes <= limits.max) & ((sizes >= limits.tiny) | (sizes == 0))):
        return values * factors.astype(values.dtype)
    return (values * factors.astype(np.float64)).astype(values.dtype)
