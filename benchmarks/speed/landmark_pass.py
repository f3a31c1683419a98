"""How far is the landmark pass (map, kernel values, whitening, moments) from the matrix products in it?

The bound is the same products and nothing else, on arrays of the same shapes, piece by piece and in one process: rows
times landmarks (2 p m operations per row; for sparse rows the product of their stored entries), a triangle (m^2), and
half of Z'Z (m^2). The arguments are numbers of landmarks (default 1000 2000 4000).
"""

import sys
import time
from functools import partial

import numpy as np

from benchmarks.measure import counts, mnist, ratio, report
from chimap import LandmarkFeatures, _arrays, _blas
from chimap.backends.host import PIECE_ROWS
from chimap.moments import BatchProduct

_REPEATS = 9


def products_of(features, rows, Z, product):
    """Return the bare products of the pass, by name."""
    landmarks, triangle = features._mapped, features.projection_
    if _arrays.is_sparse(rows):
        mapped = features.unit_map_.mapped(rows)
        multiply = partial(_blas.sparse_product, mapped, landmarks, Z)
    else:
        mapped = np.random.default_rng(0).random((rows.shape[0], landmarks.shape[0]), np.float32)
        multiply = partial(_blas.multiply, mapped, landmarks, Z)
    return {
        "rows by landmarks": multiply,
        "triangle": partial(_blas.multiply_triangle, Z, triangle),
        "moments": partial(product.add, Z),
    }


def timed(calls):
    """Return the seconds of each call."""
    found = []
    for call in calls:
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return found


def measure(name, X, m):
    features = LandmarkFeatures(n_components=m, landmarks="uniform", random_state=0)
    m = features.fit(X[: max(4096, 2 * m)]).n_landmarks_
    rows = X[:PIECE_ROWS]
    Z, product = np.zeros((rows.shape[0], m), np.float32), BatchProduct(m, np.dtype(np.float32))
    bare = products_of(features, rows, Z, product)
    pieces = {"features": partial(features.features_into, rows, Z, np.zeros(m)), "moments": partial(product.add, Z)}
    timed([*bare.values(), *pieces.values()])
    # in turns, so that both see the machine in the same state
    times = np.array([timed([*bare.values(), *pieces.values()]) for _ in range(_REPEATS)])
    split = len(bare)
    report(
        f"{name}, {m} landmarks: pass / products",
        ratio(np.sort(times[:, split:].sum(axis=1)), np.sort(times[:, :split].sum(axis=1))),
        "<= 1.2",
    )
    best = 1e3 * times.min(axis=0)
    stages = [f"{stage} {t:.1f}" for stage, t in zip([*bare, *pieces], best, strict=True)]
    print(f"  least ms of {rows.shape[0]} rows: {', '.join(stages[:split])}; of the pass {', '.join(stages[split:])}")
    print(f"  ratio of the least times {best[split:].sum() / best[:split].sum():.2f}")


def main():
    sizes = [int(a) for a in sys.argv[1:]] or [1000, 2000, 4000]
    X, *_ = mnist(normalize=True)
    words = counts("newsgroups20_counts.npz").astype(np.float32)
    for m in sizes:
        measure("MNIST", X, m)
        measure("newsgroups", words, m)


if __name__ == "__main__":
    main()
