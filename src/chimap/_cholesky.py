"""Cholesky factors of symmetric matrices in place, their inverses and blocks of these, by tiles on all threads.

The problem is A = R'R for A (n, n), and products with A^-1. A factor costs n^3/3 operations and no memory beyond A.
Each tile is the work of one thread, with BLAS on that thread alone. Measured at 5000 rows on two busy cores, a factor
takes 0.4 s, and 5 s by LAPACK with threads of BLAS, which wait for each other at every step; on idle cores both take
the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from scipy.linalg import lapack

from chimap import _blas, _threads

TILE = 384  # rows of a tile: the corners, which one thread factorises alone, are TILE / n of the work
_WHOLE = 1200  # rows up to which one thread finishes before two have synchronised
_STEP = 512  # rows of a step of a substitution on one thread
_CLOSE = 1e-3  # refinement ends when a correction is below this share of the solution
_STRIP = 1024  # rows of the factor that the threads read together


def factorise(square: np.ndarray) -> bool:
    """Overwrite the upper triangle of a C-contiguous (n, n) matrix A with R, A = R'R, in n^3/3 operations.

    Returns False, and leaves the triangle undefined, if A is not positive definite to rounding. The entries below the
    diagonal do not change.
    """
    n = square.shape[0]
    if n <= _WHOLE:
        return _factorised(square)
    for first in range(0, n, TILE):
        stop = min(first + TILE, n)
        corner = square[first:stop, first:stop]
        if not _factorised(corner):
            return False
        rest = range(stop, n, TILE)

        def divide(i: int, corner: np.ndarray = corner, first: int = first, stop: int = stop) -> None:
            _blas.divide(corner, square[first:stop, i : i + TILE], left=True, transpose=True)

        def update(i: int, first: int = first, stop: int = stop) -> None:
            rows, columns = square[first:stop], slice(i, min(i + TILE, n))
            _blas.subtract_square(rows[:, columns], square[columns, columns])
            if columns.stop < n:
                _blas.subtract_product(rows[:, columns], rows[:, columns.stop :], square[columns, columns.stop :])

        _threads.tasks(rest, divide)
        _threads.tasks(rest, update)
    return True


def invert(R: np.ndarray) -> None:
    """Overwrite the upper triangle of a C-contiguous float64 (n, n) matrix R with that of R^-1, in n^3/3 operations.

    Blocks of columns are inverted from the last to the first, so that the triangle that each needs is still that of R:

        (R^-1)_ab = -R_aa^-1 R_ab R_bb^-1,  for the rows a above the block b.

    The entries below the diagonal do not change.
    """
    n = R.shape[0]
    for first in reversed(range(0, n, TILE)):
        block = slice(first, min(first + TILE, n))
        corner, above = R[block, block], R[:first, block]
        with _threads.blas_alone():
            inverse = np.triu(lapack.dtrtri(np.ascontiguousarray(corner).T, lower=1)[0].T)
        np.copyto(corner, inverse, where=np.tri(inverse.shape[0], dtype=bool).T)

        def divide(columns: slice, above: np.ndarray = above, first: int = first) -> None:
            _blas.divide(R[:first, :first], above[:, columns], left=True)

        def multiply(rows: slice, above: np.ndarray = above, inverse: np.ndarray = inverse) -> None:
            above[rows] = -(above[rows] @ inverse)

        if first:
            _threads.tasks(_parts(0, above.shape[1]), divide)
            _threads.tasks(_parts(0, first), multiply)


def solve(R: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return (R'R)^-1 B in the dtype of R, for the upper triangle of R and B (n, columns).

    With few columns it takes about twice as long as reading R. The threads read R together, each a part of every strip.
    If the columns were divided among the threads instead, each thread would read all of R, which takes half as long
    again (measured at 3000 and 8000 rows).
    """
    X = np.array(B.T, dtype=R.dtype, order="C")  # transposed, so that each solution is a contiguous row
    n = R.shape[0] if X.size else 0
    strips = [slice(first, min(first + _STRIP, n)) for first in range(0, n, _STRIP)]
    with _threads.blas_alone():
        for strip in strips:
            _substitute(R[strip, strip], X[:, strip])
            known = -X[:, strip]

            def forward(columns: slice, strip: slice = strip, known: np.ndarray = known) -> None:
                _blas.multiply(known, R[strip, columns], X[:, columns], add=True)

            _threads.tasks(_parts(strip.stop, n), forward)
        for strip in reversed(strips):
            known = -X[:, strip.stop :]

            def backward(columns: slice, strip: slice = strip, known: np.ndarray = known) -> None:
                _blas.multiply(known, R[columns, strip.stop :], X[:, columns], transpose=True, add=True)

            _threads.tasks(_parts(strip.start, strip.stop) if known.size else [], backward)
            _substitute_back(R[strip, strip], X[:, strip])
    return X.T


def refined(
    solve: Callable[[np.ndarray], np.ndarray],
    product: Callable[[np.ndarray], np.ndarray],
    right: np.ndarray,
    steps: int,
) -> np.ndarray | None:
    """Return A^-1 of a right side (n, columns), float64, by a factor of A in less precision.

    ``solve`` returns the solution by the factor, and ``product`` A times a matrix in float64. Each of at most ``steps``
    solves for the residuals; they end early when a correction is small. Return None if they do not converge: rounding
    then makes the factor that of another matrix.
    """
    solution = solve(right).astype(np.float64)
    if not np.isfinite(solution).all():
        return None
    for _ in range(steps):
        change = solve(right - product(solution))
        solution += change
        sizes = np.abs(solution).max(axis=0), np.abs(change).max(axis=0)
        if not np.isfinite(sizes[1]).all() or (sizes[1] > 0.5 * sizes[0]).any():
            return None
        if (sizes[1] <= _CLOSE * sizes[0]).all():
            break
    return solution


def squared_norms(R: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return x'(R'R)^-1 x of rows X (m, n), shape (m,), for the upper triangle of R. X is overwritten.

    It takes m n^2 operations.
    """
    out = np.empty(X.shape[0])

    def norms_of(rows: slice) -> None:
        _substitute(R, X[rows])
        out[rows] = np.einsum("ij,ij->i", X[rows], X[rows], dtype=np.float64)

    _threads.tasks(_parts(0, X.shape[0]), norms_of)
    return out


def inverse_diagonal(R: np.ndarray, first: int = 0) -> np.ndarray:
    """Return the diagonal of (R'R)^-1 from row ``first`` on, (n - first,), in (n - first)^3/3 operations.

    With R = L', entry i is the squared norm of column i of L^-1, and the columns from ``first`` on are those of the
    inverse of the last corner alone.
    """
    n = R.shape[0]
    out = np.empty(n - first)

    def columns(start: int) -> None:
        X = inverse_columns(R, start, min(start + TILE, n))
        out[start - first : start - first + X.shape[0]] = np.einsum("ij,ij->i", X, X, dtype=np.float64)

    _threads.tasks(range(first, n, TILE), columns)
    return out


def inverse_blocks(R: np.ndarray, blocks: Sequence[np.ndarray], visit: Callable[[int, np.ndarray], None]) -> None:
    """Call visit(k, [(R'R)^-1]_gg) for each block g of row numbers, at n_g (n - min g)^2 operations per block."""
    n = R.shape[0]

    def visit_block(k: int) -> None:
        rows = blocks[k]
        start = int(rows.min())
        X = np.zeros((rows.size, n - start), dtype=R.dtype)
        X[np.arange(rows.size), rows - start] = 1
        _substitute(R[start:, start:], X)
        visit(k, (X @ X.T).astype(np.float64))

    _threads.tasks(range(len(blocks)), visit_block)


def inverse_columns(R: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Return columns start .. stop of R'^-1 from row ``start`` on, as rows: (stop - start, n - start)."""
    X = np.zeros((stop - start, R.shape[0] - start), dtype=R.dtype)
    np.fill_diagonal(X, 1)
    _substitute(R[start:, start:], X)
    return X


def _factorised(corner: np.ndarray) -> bool:
    with _threads.blas_alone():
        return _blas.factorise(corner)


def _substitute(R: np.ndarray, X: np.ndarray) -> None:
    """Overwrite X with X R^-1 by steps of products."""
    n = R.shape[0]
    for first in range(0, n, _STEP):
        stop = min(first + _STEP, n)
        known = X[:, first:stop]
        _blas.divide(R[first:stop, first:stop], known)
        if stop < n:
            _blas.multiply(-known, R[first:stop, stop:], X[:, stop:], add=True)


def _substitute_back(R: np.ndarray, X: np.ndarray) -> None:
    """Overwrite X with X R'^-1 by steps of products."""
    n = R.shape[0]
    for first in reversed(range(0, n, _STEP)):
        stop = min(first + _STEP, n)
        block = X[:, first:stop]
        if stop < n:
            _blas.multiply(-X[:, stop:], R[first:stop, stop:], block, transpose=True, add=True)
        _blas.divide(R[first:stop, first:stop], block, transpose=True)


def _parts(start: int, stop: int) -> list[slice]:
    """Divide a range of rows into slices, one for each thread."""
    edges = [start + (stop - start) * i // _threads.count() for i in range(_threads.count() + 1)]
    return [slice(a, b) for a, b in pairwise(edges) if b > a]
