"""The triangle that turns kernel values with landmarks into features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack


@dataclass(frozen=True)
class Whitening:
    """z(x) = kap(x) T: kap(x) (m,) are the kernel values of a row with m landmarks, T inverts their Cholesky factor.

    kept: the landmarks that are taken, in the order of the factor. triangle: T, upper, float64. ones: (1, .., 1) T, to
    which kernel values less 1 add what a row differs by.
    """

    kept: np.ndarray
    triangle: np.ndarray
    ones: np.ndarray


def whitening(less_one: np.ndarray, precision: float) -> Whitening:
    """Of K_LL - 1 (m, m), float64, which is overwritten, for kernel values of the given relative precision.

    K_LL = R'R by Cholesky. The first landmark is a pivot in closed form: what remains of entry i, j is
    K_ij - K_i1 K_1j = e_ij - e_i1 - e_1j - e_i1 e_1j with e = K - 1, the Gram matrix of the landmarks about the first.
    So kernels that are nearly 1 throughout keep all of their digits. Landmarks of which less remains than
    ``precision`` times the trace of that matrix are left out: divided by it, rounding would be a feature of its own.
    """
    first, about = less_one[0, 1:].copy(), less_one[1:, 1:]
    for row, value in zip(about, first, strict=True):  # no second matrix of them
        row -= value
        row -= first
        row -= value * first
    least = precision * float(np.trace(about))
    factor, kept = _factor(about, least)
    n = kept.size
    inverse, _ = lapack.dtrtri(factor, lower=0, overwrite_c=1) if n else (factor, 0)
    triangle = np.zeros((n + 1, n + 1))
    triangle[0, 0] = 1.0
    for place in range(n):
        triangle[place + 1, place + 1 :] = inverse[place, place:]
    ones = np.ones(n + 1)
    if n:
        ones[1:] = -first[kept] @ triangle[1:, 1:]
        triangle[0, 1:] = ones[1:] - triangle[1:, 1:].sum(axis=0)
    return Whitening(np.concatenate([[0], kept + 1]), triangle, ones)


def _factor(gram: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """R of gram = R'R, with all rows in their order; or, where a pivot would be below ``least``, by complete pivoting,
    of the rows whose pivots are not."""
    n = gram.shape[0]
    if not n or not least > 0:
        return np.zeros((0, 0)), np.zeros(0, np.int64)
    factor, failed = lapack.dpotrf(gram, lower=0)
    if not failed and np.square(np.diag(factor)).min() > least:
        return factor, np.arange(n)
    factor, pivots, rank, _ = lapack.dpstrf(gram, tol=least, lower=0)
    return factor[:rank, :rank], pivots[:rank] - 1
