"""Matrix products on views: rows may be apart in memory, and results may be added to existing values.

The products call the BLAS of scipy at the addresses that scipy publishes (``scipy.linalg.cython_blas``), because
scipy's Python functions copy whatever is not contiguous. One BLAS serves all products of the passes; NumPy has another,
whose threads go on spinning for a while after each product and would take the cores from those of scipy's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from chimap import _arrays, _loops, _threads
from chimap._types import CSR, Rows

if TYPE_CHECKING:
    from _ctypes import _CArgObject


Reference: TypeAlias = "_CArgObject"
Number: TypeAlias = ctypes.c_float | ctypes.c_double


def multiply(A: np.ndarray, B: np.ndarray, out: np.ndarray, *, transpose: bool = False, add: bool = False) -> None:
    """Write out = A B, or A B' with ``transpose``; with ``add``, add that to out. All are floats of one dtype.

    Only an A or B whose rows are scattered is copied. Raises ValueError for shapes, types or an ``out`` that do not
    fit.
    """
    A, B = _by_rows(A), _by_rows(B)
    (n, k), (inner, m) = A.shape, B.shape[::-1] if transpose else B.shape
    _check_out(out, (n, m), A, B)
    if inner != k:
        raise ValueError(f"a matrix of {k} columns does not multiply one of {inner} rows.")
    # Fortran reads every matrix as its transpose: out' = B' A'.
    op = _YES if transpose else _NO
    if n == 1:  # a product for matrices would copy B first, which takes longer than the product
        (gemv, number), one = _routine("gemv", out.dtype), _int(1)
        gemv(op, _int(B.shape[1]), _int(B.shape[0]), number(1), *_at(B), A.ctypes, one, number(add), out.ctypes, one)
        return
    gemm, number = _routine("gemm", out.dtype)
    gemm(op, _NO, _int(m), _int(n), _int(k), number(1), *_at(B), *_at(A), number(add), *_at(out))


def add_square(Z: np.ndarray, out: np.ndarray, *, add: bool) -> None:
    """Write the upper triangle of out = Z'Z, or of out += Z'Z: half the work of ``multiply``, with the same errors."""
    _add_square(Z, out, 1, add)


def _add_square(Z: np.ndarray, out: np.ndarray, factor: int, add: bool) -> None:
    Z = _by_rows(Z)
    _check_out(out, (Z.shape[1], Z.shape[1]), Z)
    syrk, number = _routine("syrk", out.dtype)
    syrk(_LOWER, _NO, _int(Z.shape[1]), _int(Z.shape[0]), number(factor), *_at(Z), number(add), *_at(out))


def factorise(square: np.ndarray) -> bool:
    """Overwrite the upper triangle of a symmetric matrix with R, square = R'R. False if it is not positive definite."""
    _check_out(square, (square.shape[0],) * 2)
    potrf, _ = _routine("potrf", square.dtype)
    info = ctypes.c_int()
    potrf(_LOWER, _int(square.shape[0]), *_at(square), ctypes.byref(info))
    return info.value == 0


def divide(R: np.ndarray, B: np.ndarray, *, left: bool = False, transpose: bool = False) -> None:
    """Overwrite B with B R^-1, or R^-1 B (``left``), for the upper triangle of R; ``transpose`` puts R' for R."""
    n, m = B.shape
    _check_out(B, (n, m), R)
    if R.shape != (n if left else m,) * 2:
        raise ValueError(f"a triangle of shape {R.shape} does not divide an array of {B.shape} with left={left}.")
    trsm, number = _routine("trsm", B.dtype)
    # Fortran reads R as its transpose, a lower triangle, and the sides are swapped.
    side, op = _RIGHT if left else _LEFT, _YES if transpose else _NO
    trsm(side, _LOWER, op, _NO, _int(m), _int(n), number(1), *_at(R), *_at(B))


def subtract_product(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
    """Subtract A'B from out, with the errors of ``multiply``."""
    A, B = _by_rows(A), _by_rows(B)
    _check_out(out, (A.shape[1], B.shape[1]), A, B)
    gemm, number = _routine("gemm", out.dtype)
    (k, n), m = A.shape, B.shape[1]
    gemm(_NO, _YES, _int(m), _int(n), _int(k), number(-1), *_at(B), *_at(A), number(1), *_at(out))


def subtract_square(Z: np.ndarray, out: np.ndarray) -> None:
    """Subtract Z'Z from the upper triangle of out, as ``add_square``."""
    _add_square(Z, out, -1, True)


def multiply_triangle(A: np.ndarray, T: np.ndarray) -> None:
    """Overwrite A with A T for an upper triangle T (m, m), whose entries below the diagonal are not read.

    This takes half the work of ``multiply``, with the same errors.
    """
    T = _by_rows(T)
    m = T.shape[0]
    _check_out(A, (A.shape[0], m), T)
    if T.shape != (m, m):
        raise ValueError(f"a triangle must be square; got shape {T.shape}.")
    trmm, number = _routine("trmm", A.dtype)
    # Fortran reads this as A' = T' A' with the lower triangle T'.
    trmm(_LEFT, _LOWER, _NO, _NO, _int(m), _int(A.shape[0]), number(1), *_at(T), *_at(A))


_NO, _YES, _LOWER, _LEFT, _RIGHT = (ctypes.byref(ctypes.c_char(letter)) for letter in (b"N", b"T", b"L", b"L", b"R"))
_ARGUMENTS = {"gemm": 13, "gemv": 11, "syrk": 10, "trsm": 11, "potrf": 5, "trmm": 11}
_LETTERS: dict[np.dtype, tuple[str, type[Number]]] = {
    np.dtype(np.float32): ("s", ctypes.c_float),
    np.dtype(np.float64): ("d", ctypes.c_double),
}
_routines: dict[str, Callable[..., None]] = {}


def _has_rows(matrix: np.ndarray) -> bool:
    """Return whether the numbers of a row lie side by side, and the rows one after the other."""
    n, m = matrix.shape
    step, item = matrix.strides
    return (m < 2 or item == matrix.itemsize) and (n < 2 or step >= m * matrix.itemsize)


def _by_rows(matrix: np.ndarray) -> np.ndarray:
    return matrix if _has_rows(matrix) else np.ascontiguousarray(matrix)


def _check_out(out: np.ndarray, shape: tuple[int, int], *factors: np.ndarray) -> None:
    dtypes = {out.dtype, *(factor.dtype for factor in factors)}
    if out.shape != shape or len(dtypes) > 1 or out.dtype not in _LETTERS or not _has_rows(out):
        raise ValueError(
            f"the product is {shape}, of one floating type and row by row; got {out.shape}, strides {out.strides}, "
            f"of {', '.join(sorted(map(str, dtypes)))}."
        )


def _int(value: int) -> Reference:
    return ctypes.byref(ctypes.c_int(value))


def _at(matrix: np.ndarray) -> tuple[object, Reference]:
    """Return the address and the leading dimension, which is the count of numbers from one row to the next."""
    return matrix.ctypes, _int(max(1, matrix.strides[0] // matrix.itemsize, matrix.shape[1]))


def _routine(name: str, dtype: np.dtype) -> tuple[Callable[..., None], Callable[[float], Reference]]:
    letter, number = _LETTERS[dtype]
    full = letter + name
    if full not in _routines:
        from numba.extending import get_cython_function_address

        library = "cython_lapack" if name == "potrf" else "cython_blas"
        address = get_cython_function_address(f"scipy.linalg.{library}", full)
        _routines[full] = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * _ARGUMENTS[name])(address)
    return _routines[full], lambda value: ctypes.byref(number(value))


_SPARSE_BELOW = 0.04  # density of the rows below which the sparse product is faster than the dense one


def project(rows: Rows, W: np.ndarray, buffer: np.ndarray, out: np.ndarray) -> None:
    """Write out[:, :m] = rows @ W for rows (n, d), dense or CSR, and W (d, m), all of one dtype.

    out (n, m or more) is C-contiguous; ``buffer`` (n, d) holds CSR rows that are dense enough to be expanded.
    """
    if not is_short(rows):
        rows = rows.toarray(out=buffer) if _arrays.is_sparse(rows) else rows
        multiply(rows, W, out[:, : W.shape[1]])
    elif _arrays.is_sparse(rows):
        sparse_product(rows, W, out)
    else:
        _loops.row_times_dense(rows, W, out)


def is_short(rows: Rows) -> bool:
    """Whether rows have so few entries that reading the matching rows of a matrix is most of the work of a product."""
    alone = rows.shape[0] == 1
    if _arrays.is_sparse(rows):
        return alone or rows.nnz < _SPARSE_BELOW * rows.shape[0] * rows.shape[1]
    return alone


def sparse_product(A: CSR, B: np.ndarray, out: np.ndarray) -> None:
    """Write out[:, :m] = A @ B for CSR A and C-contiguous B (d, m), on all threads, without densifying."""
    _threads.over_rows(
        A.shape[0],
        max(1, A.nnz // max(1, A.shape[0])) * B.shape[1],
        lambda rows: _loops.sparse_times_dense(A.data, A.indices, A.indptr[rows.start : rows.stop + 1], B, out[rows]),
    )
