"""Two Dask workers of one thread each, for an exact machine in blocks: how much less does each do than one alone?

The workers multiply the rows of each block with those of the blocks before it; this process factors. On cores that other
work shares, wall time says little: the processor seconds of the busiest worker say how the products are divided, and the
operations say what that makes of a fit whose workers have a core each, by the rates of ``solvers.blocks``. The answers must be
those of one process, to rounding.
"""

import argparse
import time

import numpy as np
from distributed import Client, LocalCluster

from benchmarks.measure import report
from chimap import AutomaticFeatures, HistogramRegressor
from chimap.data import ArraySource

parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, default=12_000)
parser.add_argument("--bins", type=int, default=512)
parser.add_argument("--memory", default="80MiB")
options = parser.parse_args()

PRODUCTS, FACTORS = 1e11, 1e11  # operations per second: of products on a core, of factors on two


def fit(source, engine):
    model = HistogramRegressor(
        "exp-chi2", features=AutomaticFeatures("exact", n_terms=1), alpha=0.1, memory=options.memory, random_state=0
    )
    return model.fit_source(source, engine=engine)


def measure(n_workers, source, small):
    quiet = {"dashboard_address": None, "silence_logs": 50}
    with LocalCluster(n_workers=n_workers, threads_per_worker=1, **quiet) as cluster, Client(cluster) as client:
        fit(small, client)  # loads imports and compiled loops
        began = client.run(time.process_time)
        model = fit(source, client)
        ended = client.run(time.process_time)
    return model, max(ended[worker] - began[worker] for worker in began)


def modelled(n, p, block, n_workers):
    """Return the seconds of a sweep of n rows of p columns in blocks, with workers of a core each, by its operations."""
    return n**2 * p / PRODUCTS / n_workers + n / 0.8 * block**2 / 3 / FACTORS


def main():
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(options.rows, options.bins)).astype(np.float32)
    X /= X.sum(axis=1, keepdims=True)
    y = np.sqrt(X[:, :8]).sum(axis=1)
    source, small = ArraySource(X, y), ArraySource(X[:4500], y[:4500])
    alone = fit(source, "local")
    one, seconds = measure(1, source, small)
    two, shared = measure(2, source, small)
    report("one worker's processor seconds / those of the busier of two", f"{seconds / shared:.2f}", ">= 1.8")
    scale = np.abs(alone.predict(X[:500])).max()
    for name, model in (("one worker", one), ("two workers", two)):
        off = np.abs(model.predict(X[:500]) - alone.predict(X[:500])).max() / scale
        report(f"answers of {name}, off those of one process by", f"{off:.1e}", "<= 1e-4")
    print(f"  {options.rows:,} rows in {alone.block_rows_.size} blocks: one {seconds:.1f} s, two {shared:.1f} s")
    for n, p in ((60_000, 784), (430_000, 784), (700_000, 784), (1_000_000, 784)):
        ratio = modelled(n, p, 10_000, 1) / modelled(n, p, 10_000, 2)
        print(f"  by operations, {n:,} x {p} in blocks of 10,000: two workers are {ratio:.2f} times as fast as one")


if __name__ == "__main__":
    main()
