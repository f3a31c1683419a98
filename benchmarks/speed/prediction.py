"""How long does a loaded model take to predict one row (median, and 99th of 100), and many rows at once?

The bound is the time that the matrix products in a prediction take alone, on rows that are mapped already; compiled
tables have no products. The competitor is a scikit-learn pipeline of the same size.
"""

import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.kernel_approximation import AdditiveChi2Sampler, RBFSampler
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

import chimap
from benchmarks.measure import mnist, ratio, report, seconds
from chimap import HistogramClassifier, OptimalMap

ROWS, COMPONENTS, LANDMARKS, SINGLE = 6000, 4096, 1000, 500
RANDOM, BY_LANDMARKS, ADDITIVE = (f"exp-chi2, D = {COMPONENTS}", f"exp-chi2, {LANDMARKS} landmarks", "chi2, 3 terms")

X, y, X_test, _ = mnist(normalize=True)
X, y, X_test = X[:ROWS], y[:ROWS], X_test[:ROWS]
kinds = {"dense": X_test, "sparse": sp.csr_matrix(X_test)}


def loaded(model):
    """Return the model as a service has it: loaded from its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.model"
        model.save(path)
        return chimap.load(path)


def latencies(call, rows):
    """Return the microseconds of single rows, sorted; the first calls are not counted."""
    single = [rows[i : i + 1] for i in range(SINGLE)]
    for row in single[:50]:
        call(row)
    times = np.empty(SINGLE)
    for i, row in enumerate(single):
        began = time.perf_counter()
        call(row)
        times[i] = time.perf_counter() - began
    return np.sort(times) * 1e6


def line(name, kind, call, rows):
    one, many = latencies(call, rows), seconds(lambda: call(rows), 3)
    rate = rows.shape[0] / np.median(many)
    print(
        f"{name:<44} {kind:<7} one row {np.median(one):8.0f} us, p99 {one[int(0.99 * SINGLE)]:8.0f} us;"
        f" {rate:12,.0f} rows/s",
        flush=True,
    )
    return one, many


fitted = {
    RANDOM: HistogramClassifier("exp-chi2", features="fourier", n_components=COMPONENTS, alpha=1.0, random_state=0),
    BY_LANDMARKS: HistogramClassifier(
        "exp-chi2", features="landmarks", n_components=LANDMARKS, alpha=1.0, random_state=0
    ),
    ADDITIVE: HistogramClassifier("chi2", features=OptimalMap(n_terms=3), alpha=1.0),
}
models = {name: loaded(model.fit(X, y)) for name, model in fitted.items()}
models["chi2, compiled to tables"] = loaded(fitted[ADDITIVE].compile())
found = {
    (name, kind): line(name, kind, model.predict, rows)
    for name, model in models.items()
    for kind, rows in kinds.items()
}

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    peers = {
        RANDOM: make_pipeline(
            AdditiveChi2Sampler(sample_steps=2),
            RBFSampler(gamma=1.0, n_components=COMPONENTS, random_state=0),
            RidgeClassifier(1.0),
        ).fit(X, y),
        ADDITIVE: make_pipeline(AdditiveChi2Sampler(sample_steps=2), RidgeClassifier(1.0)).fit(X, y),
    }
for name, peer in peers.items():
    for kind, rows in kinds.items():
        if kind == "sparse" and name.startswith("exp"):
            continue  # RBFSampler turns the sampler's sparse features into a product that takes minutes
        one, many = line(f"scikit-learn: {name}", kind, peer.predict, rows)
        report(f"{name}, {kind}: times as fast, one row", ratio(one, found[name, kind][0]), "1")
        report(f"{name}, {kind}: times as fast, all rows", ratio(many, found[name, kind][1]), "1")

# --- the bound: the products alone, on rows that are mapped already

for name, model in fitted.items():
    _, weights, _ = model.fitted.merged
    matrix = inputs = None
    if name == RANDOM:
        matrix, inputs = model.features_.projection_.matrix, model.features_.map_.transform(X_test)
    elif name == BY_LANDMARKS:
        matrix, inputs = model.features_._mapped, model.features_.unit_map_.values(X_test)
    Z = np.ones((ROWS, weights.shape[0]), np.float32)

    def products(n, matrix=matrix, inputs=inputs, Z=Z, weights=weights):
        if matrix is not None:
            np.matmul(inputs[:n], matrix)
        np.matmul(Z[:n], weights)

    one, many = seconds(lambda: products(1), 101) * 1e6, seconds(lambda: products(ROWS), 3)
    for kind in kinds:
        report(
            f"{name}, {kind}: one row / bare products ({np.median(one):.0f} us)", ratio(found[name, kind][0], one), "-"
        )
        report(f"{name}, {kind}: all rows / bare products", ratio(found[name, kind][1], many), "-")
