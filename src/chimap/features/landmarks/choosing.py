"""Ways to choose the landmarks of Nystrom's approximation; ``CATALOGUE`` lists them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from chimap import _arrays
from chimap.kernels import Kernel

_PROPOSED = 64  # pivots proposed together
_KMEANS_ROUNDS = 20


def uniform(kernel: Kernel, rows: Any, n_landmarks: int, rng: np.random.Generator) -> Any:
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


def kmeans(kernel: Kernel, rows: Any, n_landmarks: int, rng: np.random.Generator) -> Any:
    """Centres of k-means on the rows: of non-negative rows they are non-negative too."""
    from sklearn.cluster import KMeans

    distinct = uniform(kernel, rows, n_landmarks, rng)  # no more centres than different rows
    found = KMeans(
        distinct.shape[0],
        init="random",
        n_init=1,
        max_iter=_KMEANS_ROUNDS,
        random_state=int(rng.integers(2**31)),
    ).fit(_arrays.with_short_indices(rows))
    centres = np.maximum(found.cluster_centers_, 0) if not kernel.is_signed else found.cluster_centers_
    return _arrays.like(centres.astype(rows.dtype), rows)


def rpcholesky(kernel: Kernel, rows: Any, n_landmarks: int, rng: np.random.Generator) -> Any:
    """Rows drawn one after the other, each with a chance in proportion to what of its K(x, x) is not yet explained.

    Pivots are proposed many at a time by the chances of the moment, and accepted one after the other with the share of
    the residual that they still have, which draws from the same law as one at a time and evaluates kernels by blocks.

    Source: Epperly, Tropp and Webber, Embrace rejection: kernel matrix approximation by accelerated randomly pivoted
    Cholesky.
    """
    n = rows.shape[0]
    factor = np.empty((n, n_landmarks))
    residual = kernel.diagonal(rows).astype(np.float64)
    least = n * np.finfo(rows.dtype).eps * max(float(residual.max(initial=0.0)), 0.0)
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
        pivots.extend(int(p) for p in new)
    return _arrays.take_rows(rows, np.sort(pivots) if pivots else [0])


def _accepted(
    kernel: Kernel,
    rows: Any,
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


CATALOGUE: dict[str, Callable[[Kernel, Any, int, np.random.Generator], Any]] = {
    "rpcholesky": rpcholesky,
    "uniform": uniform,
    "kmeans": kmeans,
}
