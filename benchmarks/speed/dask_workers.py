"""Two Dask workers of one thread each: how much faster are they than one, and how much memory do they take?

Both read the same generated .npy file of float32 histograms. The benchmark times the pass, from its first row to the
merged moments, on a cluster that has been warmed up. The rest of a fit sees only moments and runs in this process.
The moments must be the same to the bit. If other work takes the cores, the processor seconds of the busiest worker
say what two free cores could reach at best.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

from benchmarks.measure import report
from chimap import HistogramClassifier, open_source
from chimap.data.synthetic import write_histograms
from chimap.engines import Progress

parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, default=1_500_000)
parser.add_argument("--bins", type=int, default=128)
parser.add_argument("--components", type=int, default=1024)
parser.add_argument("--memory", default="256MiB")
parser.add_argument("--rounds", type=int, default=3)
options = parser.parse_args()


class Timed(Progress):
    """Records the seconds of the stage "learning"."""

    def __init__(self):
        self.began = self.seconds = 0.0
        self.name = ""

    def stage(self, name, total, unit="rows"):
        if self.name == "learning":
            self.seconds = time.perf_counter() - self.began
        self.name, self.began = name, time.perf_counter()


def peak_bytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def fit(source, client, n_components=options.components):
    timed = Timed()
    model = HistogramClassifier(
        "exp-chi2", n_components=n_components, selection=2, memory=options.memory, n_jobs=1, random_state=0
    ).fit_source(source, timed, engine=client)
    return timed.seconds, model._coef


def measure(n_workers, source, small):
    quiet = {"dashboard_address": None, "silence_logs": 50}
    with LocalCluster(n_workers=n_workers, threads_per_worker=1, **quiet) as cluster, Client(cluster) as client:
        fit(small, client, 64)  # loads imports and compiled loops
        before = max(client.run(peak_bytes).values())
        runs, busiest = [], []
        for _ in range(options.rounds):
            began = client.run(time.process_time)
            runs.append(fit(source, client))
            ended = client.run(time.process_time)
            busiest.append(max(ended[worker] - began[worker] for worker in began))
        grown = max(client.run(peak_bytes).values()) - before
    return np.array([seconds for seconds, _ in runs]), np.array(busiest), runs[0][1], grown


def main():
    with tempfile.TemporaryDirectory() as folder:
        sources = []
        for n_rows in (options.rows, 20_000):
            path = Path(folder) / f"rows{n_rows}.npy"
            sources.append(open_source(path, write_histograms(path, n_rows, options.bins, 10, seed=0)))
        one, alone, coef, _ = measure(1, *sources)
        two, shared, again, grown = measure(2, *sources)
    report("two workers: times as fast as one", f"{np.median(one) / np.median(two):.2f}", ">= 1.8")
    report(
        "one worker's processor seconds / those of the busier of two",
        f"{np.median(alone) / np.median(shared):.2f}",
        ">= 1.8",
    )
    report("weights that differ between one worker and two", int((coef != again).sum()), "0")
    report(
        f"memory of a worker, above what it began with, of {options.memory}", f"{grown / 2**20:.0f} MiB", "<= budget"
    )
    print(f"  {options.rows:,} rows: one {np.median(one):.1f} s, two {np.median(two):.1f} s")


if __name__ == "__main__":
    main()
