"""Two Dask workers of one thread each, for an exact machine in blocks: how many times as fast are they as one?

Workers multiply and factorise; this process solves the first block, on which strength and gamma are chosen, and sends
rows. One worker and two have the same blocks. The time is that of the sweep over the blocks after the first, the least
of some rounds, on a cluster that has been warmed up. Where other work takes the cores, the processor seconds of the
busier worker, in the same sweep, say what two free cores could reach at best. The operations say it for more rows. The
answers must be those of one process, to rounding.
"""

import argparse
import os
import time
from contextlib import contextmanager

import numpy as np
from distributed import Client, LocalCluster

from benchmarks.measure import report
from chimap import AutomaticFeatures, HistogramRegressor
from chimap.data import ArraySource
from chimap.engines import Progress
from chimap.solvers.blocks import core_rows

parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, default=29_000)
parser.add_argument("--bins", type=int, default=784)
parser.add_argument("--memory", default="400MiB")
parser.add_argument("--rounds", type=int, default=3)
options = parser.parse_args()


class Timed(Progress):
    """Counts the seconds of the stage "blocks", and the processor seconds of each worker in it."""

    def __init__(self, client):
        self.client, self.name = client, ""
        self.seconds = np.zeros(1)

    def stage(self, name, total, unit="rows"):
        if "blocks" in (name, self.name):
            used = {} if self.client is None else self.client.run(time.process_time)
            now = np.array([time.perf_counter(), *(used[worker] for worker in sorted(used))])
            self.seconds = now if name == "blocks" else now - self.seconds
        self.name = name


def fit(source, client=None):
    """Return the model, and the seconds of its sweep: of the clock, and of the processor for each worker."""
    timed = Timed(client)
    model = HistogramRegressor(
        "exp-chi2", features=AutomaticFeatures("exact", n_terms=1), alpha=0.1, memory=options.memory, random_state=0
    ).fit_source(source, timed, engine=client or "local")
    timed.stage("", 0)
    return model, timed.seconds


@contextmanager
def workers(number):
    quiet = {"dashboard_address": "127.0.0.1:0", "silence_logs": 50, "env": {"OPENBLAS_NUM_THREADS": "1"}}
    with LocalCluster(n_workers=number, threads_per_worker=1, **quiet) as cluster, Client(cluster) as client:
        yield client


def measure(source, small):
    """Return the model of one worker and of two, and the least seconds of the clock and of the busiest worker.

    Both take turns, so that other work on the machine disturbs both.
    """
    with workers(1) as one, workers(2) as two:
        for client in (one, two):
            fit(small, client)  # loads imports and compiled loops
        rounds = [[fit(source, client) for client in (one, two)] for _ in range(options.rounds)]
    seconds = np.min([[(own[0], own[1:].max()) for _, own in turn] for turn in rounds], axis=0)
    return [model for model, _ in rounds[0]], seconds


def operations(n, p, block, n_workers):
    """Return the operations of the busiest of so many workers in a sweep of n rows of p columns, after its first block."""
    core = core_rows(block)
    n_blocks = -(-(n - block) // (block - core))
    m = core + (n - block) / n_blocks
    factors = -(-n_blocks // n_workers) * (m**3 / 3 + m**2 * p)
    return (n**2 - block**2) * p / n_workers + factors


def main():
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(options.rows, options.bins)).astype(np.float32)
    X /= X.sum(axis=1, keepdims=True)
    y = np.sqrt(X[:, :8]).sum(axis=1)
    source, small = ArraySource(X, y), ArraySource(X[:16_000], y[:16_000])
    alone, _ = fit(source)
    (one, two), ((seconds, work), (shared_seconds, shared_work)) = measure(source, small)
    report("two workers: times as fast as one, for the sweep", f"{seconds / shared_seconds:.2f}", ">= 1.8")
    report("one worker's processor seconds / those of the busier of two", f"{work / shared_work:.2f}", ">= 1.8")
    ratio = operations(60_000, 784, 10_000, 1) / operations(60_000, 784, 10_000, 2)
    report("the same by operations, 60 000 x 784 in blocks of 10 000", f"{ratio:.2f}", ">= 1.8")
    scale = np.abs(alone.predict(X[:500])).max()
    for name, model in (("one worker", one), ("two workers", two)):
        off = np.abs(model.predict(X[:500]) - alone.predict(X[:500])).max() / scale
        report(f"answers of {name}, off those of one process by", f"{off:.1e}", "<= 1e-4")
    print(f"  {options.rows:,} rows in blocks of {alone.block_rows_.tolist()}")
    print(f"  sweep: {seconds:.2f} and {shared_seconds:.2f} s; busiest worker: {work:.2f} and {shared_work:.2f} s")
    print(
        f"  tasks that ran or waited for a core in the last minute: {os.getloadavg()[0]:.1f} (1 to 2 if this is alone)"
    )
    for n, p in ((60_000, 784), (430_000, 784), (1_000_000, 784)):
        block = 10_000
        ratios = [operations(n, p, block, 1) / operations(n, p, block, w) for w in (2, 4, 8)]
        print(f"  by operations, {n:,} x {p} in blocks of {block:,}: 2, 4, 8 workers", *(f"{r:.2f}" for r in ratios))


if __name__ == "__main__":
    main()
