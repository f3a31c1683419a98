"""The triangle that turns kernel values with landmarks into features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from chimap import _cholesky, _threads


@dataclass(frozen=True)
class Whitening:
    """The whitening z(x) = kap(x) T of kernel values kap(x) (m,) with m landmarks; T inverts their Cholesky factor.

    ``kept`` are the landmarks in use, in the order of the factor. ``triangle`` is T, upper triangular. ``ones`` is (1,
    .., 1) T in float64, so that z(x) is (kap(x) - 1) T + ones.
    """

    kept: np.ndarray
    triangle: np.ndarray
    ones: np.ndarray


def whitening(less_one: np.ndarray, dtype: np.dtype) -> Whitening:
    """Return the whitening for K_LL - 1 (m, m), float64; the triangle has the dtype of the kernel values to whiten.

    K_LL = R'R by Cholesky. The first landmark is a pivot in closed form. With e = K - 1, the remainder of entry i, j is

        K_ij - K_i1 K_1j = e_ij - e_i1 - e_1j - e_i1 e_1j,

    the Gram matrix of the landmarks about the first. So kernels that are nearly 1 throughout keep all of their digits.
    Landmarks whose remainder is below the rounding of the dtype times the trace of that matrix are left out: dividing
    by it would make rounding errors a feature.

    All is computed in the memory of ``less_one``, C-contiguous: at 4096 landmarks each further matrix would be 128 MiB.
    """
    first = less_one[0, 1:].copy()
    about = _packed(less_one, 1, first.size)
    for row, value in zip(about, first, strict=True):
        row -= value
        row -= first
        row -= value * first
    least = float(np.finfo(dtype).eps) * float(np.trace(about))
    factor, kept = _factor(about, least)
    n = kept.size
    if n:
        _cholesky.invert(factor)
    for place, row in enumerate(factor):
        row[:place] = 0
    ones = np.ones(n + 1)
    ones[1:] = -first[kept] @ factor
    triangle = np.empty((n + 1, n + 1), dtype)
    triangle[:, 0] = np.eye(n + 1, 1)[:, 0]
    triangle[0, 1:] = ones[1:] - factor.sum(axis=0)
    triangle[1:, 1:] = factor
    return Whitening(np.concatenate([[0], kept + 1]), triangle, ones)


def _factor(gram: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Return R in the upper triangle, where gram = R'R, and the rows that it has.

    These are all rows in order; or, where a pivot would be below ``least``, the rows that complete pivoting finds above
    it. R is in the memory of the matrix, C-contiguous.
    """
    n = gram.shape[0]
    if not n or not least > 0:
        return gram[:0, :0], np.zeros(0, np.int64)
    diagonal = gram.diagonal().copy()
    if _cholesky.factorise(gram) and np.square(gram.diagonal()).min() > least:
        return gram, np.arange(n)
    for place, row in enumerate(gram):  # the failed factorisation left the lower triangle intact
        row[place + 1 :] = gram[place + 1 :, place]
    np.fill_diagonal(gram, diagonal)
    with _threads.blas_alone():  # C order is the transpose of Fortran order
        _, pivots, rank, _ = lapack.dpstrf(gram.T, tol=least, lower=1, overwrite_a=1)
    return _packed(gram, 0, rank), pivots[:rank] - 1


def _packed(matrix: np.ndarray, first: int, size: int) -> np.ndarray:
    """Return the square of rows and columns from ``first`` on, moved to the start of the matrix's memory.

    Its rows lie one after the other.
    """
    square = matrix.reshape(-1)[: size * size].reshape(size, size)
    for place, row in enumerate(square):
        row[:] = matrix[first + place, first : first + size]
    return square
