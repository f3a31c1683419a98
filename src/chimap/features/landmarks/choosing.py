"""Ways to choose the landmarks of Nystrom's approximation; ``CATALOGUE`` lists them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, solve_triangular

from chimap import _arrays, _blas, _products
from chimap._types import MatrixLike, Rows
from chimap._validation import DataError, check_width
from chimap.kernels import Kernel

_PROPOSED = 64  # pivots proposed together
_KMEANS_ROUNDS = 5
_SAMPLE_ROWS, _ROWS_A_LANDMARK = 4096, 4  # that k-means sees: the larger number
BLOCK_NUMBERS = 2**21  # products of rows and centres that are in memory together


def uniform(kernel: Kernel, rows: Rows, n_landmarks: int, rng: np.random.Generator) -> Rows:
    """Rows at random, none equal to another."""
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
    """Centres of k-means on the rows, by a few of Lloyd's rounds from rows at random: the first ones gain the most."""
    mean = None if _arrays.is_sparse(rows) else rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)
    if mean is not None:  # distances by products cancel where the mean dominates
        rows = rows - mean
    centres = _arrays.to_dense(uniform(kernel, rows, n_landmarks, rng))
    for _ in range(_KMEANS_ROUNDS):
        nearest = _nearest(rows, centres)
        counts = np.bincount(nearest, minlength=centres.shape[0])
        members = sp.csr_matrix(
            (np.ones(nearest.size, rows.dtype), nearest, np.arange(nearest.size + 1)),
            shape=(nearest.size, centres.shape[0]),
        ).T.tocsr()
        means = _arrays.to_dense(members @ rows)
        means /= np.maximum(counts, 1).astype(rows.dtype)[:, None]
        means[counts == 0] = centres[counts == 0]  # a centre without rows stays where it is
        centres = means
    centres = centres if mean is None else centres + mean
    return centres if kernel.is_signed else np.maximum(centres, 0)  # rounding may leave the domain


def _nearest(rows: Rows, centres: np.ndarray) -> np.ndarray:
    """The nearest centre of each row, (n,)."""
    across = np.ascontiguousarray(centres.T)
    halves = (np.einsum("ij,ij->i", centres, centres, dtype=np.float64) / 2).astype(centres.dtype)
    size = max(1, BLOCK_NUMBERS // centres.shape[0])
    products = np.empty((min(size, rows.shape[0]), centres.shape[0]), centres.dtype)
    nearest = np.empty(rows.shape[0], np.int64)
    for first in range(0, rows.shape[0], size):
        block = _arrays.take_rows(rows, slice(first, first + size))
        own = products[: block.shape[0]]
        if _arrays.is_sparse(block):
            _products.sparse_product(block, across, own)
        else:
            _blas.multiply(block, across, own)
        own -= halves
        nearest[first : first + size] = own.argmax(axis=1)
    return nearest


def rpcholesky(kernel: Kernel, rows: Rows, n_landmarks: int, rng: np.random.Generator) -> Rows:
    """Rows drawn one after the other, each with a chance in proportion to what of its K(x, x) is not yet explained.

    Pivots are proposed many at a time by the chances of the moment, and accepted one after the other with the share of
    the residual that they still have, which draws from the same law as one at a time and evaluates kernels by blocks.

    Source: Epperly, Tropp and Webber, Embrace rejection: kernel matrix approximation by accelerated randomly pivoted
    Cholesky.
    """
    n, given, rows = rows.shape[0], rows, _arrays.as_rows(rows, np.float64)
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
        # pivots were accepted by these very numbers: the jitter is below what counts as explained
        corner[np.diag_indices_from(corner)] += 0.01 * least
        block = solve_triangular(cholesky(corner, lower=True), columns.T, lower=True).T
        factor[:, k : k + new.size] = block
        residual = np.maximum(residual - np.square(block).sum(axis=1), 0)
        residual[new] = 0
        if (
            not pivots
        ):  # what all rows share is explained now: the rounding of what tells them apart is what counts
            least = max(least, n * float(np.finfo(given.dtype).eps) * float(residual.max()))
        pivots.extend(int(p) for p in new)
    return _arrays.take_rows(given, np.sort(pivots) if pivots else [0])


def _accepted(
    kernel: Kernel,
    rows: Rows,
    proposed: np.ndarray,
    residual: np.ndarray,
    factor: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Those of the proposed pivots that a drawing one by one would have taken, at least the first."""
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
    """Landmarks that the user gives, as rows of the kind and dtype of ``rows``.

    Raises ValueError for what is no matrix of such rows, and DataError for landmarks that repeat each other.
    """
    given = _arrays.as_rows(landmarks, rows.dtype)
    if given.ndim != 2 or given.shape[0] == 0:
        raise ValueError(
            f"landmarks must be one of {', '.join(map(repr, CATALOGUE))}, or rows (m, bins); got {landmarks!r}."
        )
    check_width(given, rows.shape[1], f"landmarks of {owner}")
    dense, numbers = np.unique(_arrays.to_dense(given), axis=0, return_inverse=True)
    if dense.shape[0] < given.shape[0]:
        first, second = np.flatnonzero(numbers == np.argmax(np.bincount(numbers)))[:2]
        raise DataError(
            f"landmarks, rows {first} and {second} are equal: each landmark must differ from the others. "
            "Give it once."
        )
    return _arrays.like(given, rows)


def sample_rows(n_components: int) -> int:
    """How many rows landmarks, gamma and the centre are taken from, where there are so many."""
    return max(_SAMPLE_ROWS, _ROWS_A_LANDMARK * n_components)
