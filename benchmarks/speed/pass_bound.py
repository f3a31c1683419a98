"""How far is one pass (map + random features + moments) from the matrix products in it, at the best rate for them?

The bound is 2 n p m operations for the projection (p mapped bins, m frequencies) and n D^2 for the symmetric product,
which is half of a full one, at the best SGEMM rate that this machine shows. For newsgroups the bound is the same as
if the rows were dense, which sparse rows should beat; the moments alone are measured too. The argument is D (default
4096).
"""

import sys

import numpy as np

from benchmarks.measure import Spread, counts, mnist, report, seconds, sgemm_rates
from benchmarks.one_pass import one_pass
from chimap import FourierFeatures, OptimalMap
from chimap._types import Rows
from chimap.backends.host import HOST
from chimap.moments import FoldMoments

CHUNK_ROWS = 8192


def passed(features: FourierFeatures, X: Rows, y: np.ndarray, n_classes: int, D: int) -> dict[str, float]:
    """Run one pass over the rows, and return the seconds of its stages."""
    moments = FoldMoments(1, D, n_classes, np.zeros(D), np.zeros(n_classes), np.dtype(np.float32))
    return one_pass(HOST.sums(features, moments), X, y, n_classes, CHUNK_ROWS)


def measure(name: str, features: FourierFeatures, X, y, D: int, rate: float, target: str, repeats: int) -> None:
    p, m = features.frequencies_.shape
    n = X.shape[0]
    moments, projection = n * D * D / rate, 2 * n * p * m / rate
    n_classes = int(y.max()) + 1
    times = seconds(lambda: passed(features, X, y, n_classes, D), repeats) / (moments + projection)
    spread = Spread(*map(float, (np.median(times), *np.quantile(times, [0.25, 0.75]))))
    report(f"{name}, D = {D}: pass / SGEMM bound", spread, target)
    stages = ", ".join(f"{k} {v:.2f}" for k, v in passed(features, X, y, n_classes, D).items())
    print(f"  bound {moments + projection:.2f} s = projection {projection:.2f} + moments {moments:.2f}; {stages}")


def main():
    D = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
    rates = sgemm_rates()
    best = max(rates, key=lambda name: rates[name])
    print(", ".join(f"{name} {rate / 1e9:.0f}" for name, rate in rates.items()), "GFLOP/s")
    print(f"bound: {rates[best] / 1e9:.0f} GFLOP/s by {best}")
    X, y, _, _ = mnist(normalize=True)
    for form in ("pair", "offset"):
        features = FourierFeatures(n_components=D, form=form, map=OptimalMap(n_terms=2), random_state=0)
        measure(f"MNIST, {form}", features.fit(X[:4096]), X, y, D, rates[best], "<= 1.10", 5)
    X, y = counts("newsgroups20_counts.npz", labels=True)
    X = X.astype(np.float32)
    features = FourierFeatures(n_components=D, map=OptimalMap(n_terms=2), sampling="iid", random_state=0)
    measure("newsgroups", features.fit(X[:2048]), X, y, D, rates[best], "< 1", 3)


if __name__ == "__main__":
    main()
