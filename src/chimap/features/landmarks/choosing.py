"""Functions that choose the landmarks of Nystrom's approximation; ``CATALOGUE`` lists them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, solve_triangular

from chimap import _arrays, _blas
from chimap._errors import InputError
from chimap._pieces import in_pieces
from chimap._types import MatrixLike, Rows
from chimap._validation import DataError, check_width
from chimap.kernels import Kernel

_PROPOSED = 64  # pivots proposed at once
_KMEANS_ROUNDS = 3  # scores of 5 rounds are no better; those of 2 are .1 point worse for 8000 landmarks
_SAMPLE_ROWS, _ROWS_A_LANDMARK = 4096, 4  # rows of the sample: in all, or for each landmark if that is more
PIECE_ROWS = 512  # rows whose nearest centres are found at once, on one thread
_BLOCK_NUMBERS = 2**21  # products of rows and landmarks that are computed at once, to stay in cache
_BLOCK_ROWS = 1024  # fewer rows slow down BLAS: by a quarter for 256 rows and 8000 landmarks


def uniform(kernel: Kernel, rows: Rows, n_landmarks: int, rng: np.random.Generator) -> Rows:
    """Choose rows at random, all distinct."""
    order = rng.permutation(rows.shape[0])
    chosen: list[int] = []
    seen: set[bytes] = set()
    for row in order:
        if len(chosen) == n_landmarks:
            break
        content = _arrays.row_content(rows, row)
        if content not in seen:
            seen.add(content)
            chosen.append(int(row))
    return _arrays.take_rows(rows, np.sort(chosen))


def kmeans(kernel: Kernel, rows: Rows, n_landmarks: int, rng: np.random.Generator) -> Rows:
    """Return the centres of a few of Lloyd's rounds from random rows: the first rounds gain the most."""
    mean = None if _arrays.is_sparse(rows) else rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)
    if mean is not None:  # distances computed from products cancel where the mean dominates
        rows = rows - mean
    centres = _arrays.to_dense(uniform(kernel, rows, n_landmarks, rng))
    pieces = in_pieces(rows, PIECE_ROWS)
    for _ in range(_KMEANS_ROUNDS):
        halves = np.einsum("ij,ij->i", centres, centres, dtype=np.float64) / 2
        shared = np.ascontiguousarray(centres.T), halves.astype(centres.dtype)
        nearest = np.concatenate(pieces.map(_nearest, shared))
        counts = np.bincount(nearest, minlength=centres.shape[0])
        members = sp.csr_matrix(
            (np.ones(nearest.size, rows.dtype), nearest, np.arange(nearest.size + 1)),
            shape=(nearest.size, centres.shape[0]),
        ).T.tocsr()
        means = _arrays.to_dense(members @ rows)
        means /= np.maximum(counts, 1).astype(rows.dtype)[:, None]
        means[counts == 0] = centres[counts == 0]  # a centre without rows stays
        centres = means
    centres = centres if mean is None else centres + mean
    return centres if kernel.is_signed else np.maximum(centres, 0)  # rounding may make centres negative


def block_rows(n_landmarks: int) -> int:
    """Return for how many rows products with landmarks are computed at once."""
    return max(_BLOCK_ROWS, _BLOCK_NUMBERS // n_landmarks)


def _nearest(rows: Rows, centres: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return the index of the nearest centre of each row, (n,): that of the largest x.c - |c|^2 / 2.

    Centres are columns (p, m), C-contiguous, with half of their squared norms (m,).
    """
    across, halves = centres
    products = np.empty((rows.shape[0], halves.size), across.dtype)
    if _arrays.is_sparse(rows):
        _blas.sparse_product(rows, across, products)
    else:
        _blas.multiply(rows, across, products)
    products -= halves
    return products.argmax(axis=1)


def rpcholesky(kernel: Kernel, rows: Rows, n_landmarks: int, rng: np.random.Generator) -> Rows:
    """Draw rows one after the other, with probabilities proportional to the part of K(x, x) that is not yet explained.

    Many pivots are proposed at once from the current probabilities. They are accepted one after the other with the
    share of the residual that they still have. This draws from the same distribution as one at a time, and evaluates
    the kernel in blocks.

    Source: Epperly, Tropp and Webber, Embrace rejection: kernel matrix approximation by accelerated randomly pivoted
    Cholesky.
    """
    n, input_rows, rows = rows.shape[0], rows, _arrays.as_rows(rows, np.float64)
    factor = np.empty((n, n_landmarks))
    residual = kernel.diagonal(rows)
    least = n * np.finfo(np.float64).eps * max(float(residual.max(initial=0.0)), 0.0)
    pivots: list[int] = []
    while len(pivots) < n_landmarks and residual.max(initial=0.0) > least:
        k = len(pivots)
        proposed = rng.choice(n, _PROPOSED, p=residual / residual.sum())
        new = _accepted(kernel, rows, proposed, residual, factor[:, :k], rng)[: n_landmarks - k]
        columns = kernel(rows, _arrays.take_rows(rows, new)).astype(np.float64)
        columns -= factor[:, :k] @ factor[new, :k].T
        corner = columns[new]
        # The pivots were accepted on these numbers; the jitter is below the residual that counts as explained.
        corner[np.diag_indices_from(corner)] += 0.01 * least
        block = solve_triangular(cholesky(corner, lower=True), columns.T, lower=True).T
        factor[:, k : k + new.size] = block
        residual = np.maximum(residual - np.square(block).sum(axis=1), 0)
        residual[new] = 0
        if not pivots:  # the part that all rows share is explained now; the rounding of the rest sets the tolerance
            least = max(least, n * float(np.finfo(input_rows.dtype).eps) * float(residual.max()))
        pivots.extend(int(p) for p in new)
    return _arrays.take_rows(input_rows, np.sort(pivots) if pivots else [0])


def _accepted(
    kernel: Kernel, rows: Rows, proposed: np.ndarray, residual: np.ndarray, factor: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return the proposed pivots that drawing one by one would have taken, with at least the first."""
    chosen = _arrays.take_rows(rows, proposed)
    left = kernel(chosen).astype(np.float64) - factor[proposed] @ factor[proposed].T
    started = residual[proposed]
    accepted: list[int] = []
    for i in range(proposed.size):
        if left[i, i] > max(rng.random(), 1e-3) * started[i] or i == 0:
            accepted.append(int(proposed[i]))
            column = left[:, i] / np.sqrt(max(left[i, i], np.finfo(float).tiny))
            left -= np.outer(column, column)
    return np.array(accepted)


CATALOGUE: dict[str, Callable[[Kernel, Rows, int, np.random.Generator], Rows]] = {
    "rpcholesky": rpcholesky,
    "uniform": uniform,
    "kmeans": kmeans,
}


def given_landmarks(landmarks: MatrixLike, rows: Rows, owner: str) -> Rows:
    """Return landmarks that the user gives, as rows of the kind and dtype of ``rows``.

    Raises ValueError unless they are a matrix of such rows, and DataError for landmarks that repeat each other.
    """
    matrix = _arrays.as_rows(landmarks, rows.dtype)
    if matrix.ndim != 2 or matrix.shape[0] == 0:
        raise InputError(
            f"landmarks must be one of {', '.join(map(repr, CATALOGUE))}, or rows (m, bins); got {landmarks!r}."
        )
    check_width(matrix, rows.shape[1], f"landmarks of {owner}")
    dense, numbers = np.unique(_arrays.to_dense(matrix), axis=0, return_inverse=True)
    if dense.shape[0] < matrix.shape[0]:
        first, second = np.flatnonzero(numbers == np.argmax(np.bincount(numbers)))[:2]
        raise DataError(
            f"landmarks, rows {first} and {second} are equal: each landmark must differ from the others. Pass it once."
        )
    return _arrays.like(matrix, rows)


def sample_rows(n_components: int) -> int:
    """Return how many rows landmarks, gamma and the centre are computed from, if there are that many."""
    return max(_SAMPLE_ROWS, _ROWS_A_LANDMARK * n_components)
