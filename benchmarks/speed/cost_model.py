"""Does the cost model of docs/concepts/cost.md predict measured runs, and what does it say about 10^9 and 10^12 rows?

The rates of this machine are measured on bare operations: products, values of the map, cosines, float64 sums,
reading. From these rates and the formulas of the page follow the seconds per row for fits of several shapes, which
are then run. For a Dask cluster of two workers follow the number of tasks, and the bytes that workers send each other
and this process. Last, the benchmark prints the table of the page.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from distributed import Future

from benchmarks.measure import report, seconds
from chimap import FourierFeatures, HistogramClassifier, _blas, open_source
from chimap.data.synthetic import write_histograms
from chimap.engines.dask import _groups_of_parts
from chimap.engines.dask_cluster import dask_engine
from chimap.engines.dask_tasks import added, merged
from chimap.engines.dask_workers import Workers
from chimap.engines.local import LocalEngine
from chimap.engines.memory import chunk_rows_within
from chimap.features.additive import OptimalMap
from chimap.fit.fit import fit
from chimap.machines.jobs import largest_job
from chimap.machines.method import Method
from chimap.moments import Symmetric
from chimap.moments.symmetric import BatchProduct
from chimap.recipe import Recipe

TERMS, FOLDS, CLASSES = 2, 5, 10
SHAPES = ((64, 1024), (256, 2048), (784, 2048))  # bins, features
PASS = ("read", "check", "features", "moments")


@dataclass(frozen=True)
class Shape:
    """A fit: bins, D features, rows per chunk, K folds, t targets."""

    bins: int
    D: int
    chunk_rows: int
    K: int = FOLDS
    t: int = CLASSES

    @property
    def flops(self):
        """Operations per row: the projection on D/2 frequencies, and half of the square of the features."""
        return 2 * (TERMS * self.bins) * (self.D // 2), self.D**2

    @property
    def moments_bytes(self):
        """Bytes of the moments of all folds: what a merge moves, and what a group of parts sends home."""
        return self.K * (Symmetric.nbytes(self.D) + 8 * (self.D * (self.t + 2)))


@dataclass(frozen=True)
class Machine:
    """Seconds of one unit of work on this machine.

    The units are one float32 operation in a product, one in Z'Z, one mapped value, one feature, one entry of a
    float64 sum and one byte read.
    """

    gemm: float
    square: float
    mapped: float
    feature: float
    entry: float
    byte: float

    def row(self, shape):
        """Return the seconds per row on this machine; reading goes on at the same time."""
        gemm, square = shape.flops
        computed = self.gemm * gemm + self.square * square + self.mapped * TERMS * shape.bins + self.feature * shape.D
        computed += self.entry * shape.D**2 * shape.K / shape.chunk_rows  # one sum for each fold of each chunk
        return max(computed, self.byte * 4 * shape.bins)


def measured_machine():
    rng = np.random.default_rng(0)
    A, B, C = (np.full(shape, 0.5, np.float32) for shape in ((512, 512), (512, 512), (512, 512)))
    gemm = np.median(seconds(lambda: _blas.multiply(A, B, C))) / (2 * 512**3)
    Z, product, sums = np.full((2048, 1024), 0.5, np.float32), BatchProduct(1024, np.float32), Symmetric(1024)
    square_s = np.median(seconds(lambda: product.add(Z)))

    def add_and_move():
        product.add(Z)
        product.move_to(sums)

    entry = (np.median(seconds(add_and_move)) - square_s) / 1024**2
    X = rng.dirichlet(np.ones(256), size=4096).astype(np.float32)
    psi, out = OptimalMap(n_terms=TERMS).fit(X), np.empty((4096, 256 * TERMS), np.float32)
    mapped = np.median(seconds(lambda: psi.features_into(X, out))) / out.size
    random = FourierFeatures(n_components=2048, map=OptimalMap(n_terms=TERMS), random_state=0).fit(X)
    features = np.empty((4096, 2048), np.float32)
    all_s = np.median(seconds(lambda: random.features_into(X, features)))
    feature = all_s / features.size - gemm * TERMS * 256 - mapped * 256 * TERMS / 2048
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", np.tile(X, (20, 1)))
        source = open_source(f"{folder}/X.npy")
        byte = np.median(seconds(lambda: [None for _ in source.chunks(10_240)], 3)) / (source.n_rows * 1024)
    return Machine(gemm, square_s / (2048 * 1024**2), mapped, max(feature, 0.0), max(entry, 0.0), byte)


def random_features(D, memory):
    """Return the model that the formulas describe: random features, and the moments of folds."""
    return HistogramClassifier(
        "exp-chi2", features="fourier", selection=FOLDS, n_components=D, memory=memory, random_state=0
    )


def planned_rows(recipe, source, engine):
    """Return the rows of a chunk of a fit."""
    job = largest_job(Method.of(recipe), source, CLASSES)
    return chunk_rows_within(replace(job, n_waiting=engine.n_waiting), recipe.budget)


def check_rows(machine, folder, n_rows):
    for bins, D in SHAPES:
        path = Path(folder) / f"{bins}.npy"
        source = open_source(path, write_histograms(path, n_rows, bins, CLASSES, seed=0))
        recipe = Recipe.of(random_features(D, "1GiB"))
        seconds_of_stages = fit(recipe, source).learned.stage_seconds
        measured = sum(seconds_of_stages[name] for name in PASS) / n_rows
        foretold = machine.row(Shape(bins, D, planned_rows(recipe, source, LocalEngine())))
        report(
            f"{bins} bins, D = {D}: foretold / measured  ({1e6 * measured:.1f} us per row)",
            f"{foretold / measured:.2f}",
            "0.75 to 1.33",
        )


def sent_bytes(dask_worker):
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)


def parts_of(n_rows, chunk_rows):
    """Return the parts that so many rows are divided into, in groups."""
    return _groups_of_parts(SimpleNamespace(n_rows=n_rows, stored_rows=1), chunk_rows, 0)


def messages(n_parts, workers):
    """Return how many moments of a group go from one worker to another, if each adds up a run of neighbours."""
    places, sent = [k * workers // n_parts for k in range(n_parts)], 0
    while len(places) > 1:
        sent += sum(left != right for left, right in zip(places[::2], places[1::2], strict=False))
        places = places[::2]
    return sent


def check_messages(folder, n_rows=400_000, D=512):
    path = Path(folder) / "dask.npy"
    source = open_source(path, write_histograms(path, n_rows, 64, CLASSES, seed=0))
    submitted: list[Callable[..., object]] = []

    class Counting(Workers):
        def submit(self, task: Callable[..., object], priority: int, *arguments: object, **where: Any) -> Future:
            if task in (added, merged):  # the others send the source and the empty sums
                submitted.append(task)
            return super().submit(task, priority, *arguments, **where)

    with dask_engine("dask") as engine:
        client = engine.workers.client
        engine.workers = Counting(client)
        recipe = Recipe.of(random_features(D, "72MiB"))
        fit(recipe, source, engine)
        chunk_rows = planned_rows(recipe, source, engine)
        moved = sum(client.run(sent_bytes).values())
        workers = len(engine.workers.of_threads())
    groups = parts_of(n_rows, chunk_rows)
    parts = sum(map(len, groups))
    merges = parts - len(groups)
    report("tasks: foretold / submitted", f"{(parts + merges) / len(submitted):.2f}", "1")
    sent = sum(messages(len(group), workers) for group in groups)
    foretold = Shape(64, D, chunk_rows).moments_bytes * sent
    report(
        f"bytes between workers: foretold / moved  ({moved / 2**20:.0f} MiB, {parts} parts)",
        f"{foretold / max(moved, 1):.2f}",
        "0.5 to 2",
    )


def table(machine):
    """Print seconds and bytes for 10^9 and 10^12 rows on workers of one core, each like half of this machine."""
    from chimap._threads import available

    core = available()
    print(
        f"\n  {'rows':>6} {'bins':>5} {'D':>5} {'workers':>8} {'hours':>9} {'read a worker':>14} {'merged a worker':>16} {'tasks':>9} {'home':>9} {'labels':>9}"
    )
    for n_rows, workers in ((10**9, 1), (10**9, 64), (10**12, 64), (10**12, 4096)):
        for bins, D in ((64, 1024), (1000, 4096)):
            shape = Shape(bins, D, 10_240)
            dealt = parts_of(n_rows, shape.chunk_rows)
            parts, groups = sum(map(len, dealt)), len(dealt)
            print(
                f"  {n_rows:>6.0e} {bins:>5} {D:>5} {workers:>8} {machine.row(shape) * core * n_rows / workers / 3600:>9.2f} "
                f"{4 * bins * n_rows / workers / 2**30:>10,.0f} GiB {shape.moments_bytes * parts / workers / 2**30:>12,.0f} GiB "
                f"{2 * parts:>9,} {groups * shape.moments_bytes / 2**30:>5,.1f} GiB {8 * n_rows / 2**30:>5,.0f} GiB"
            )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=60_000)
    options = parser.parse_args()
    began = time.perf_counter()
    machine = measured_machine()
    print(
        f"  SGEMM {1e-9 / machine.gemm:.0f}, Z'Z {1e-9 / machine.square:.0f} GFLOP/s; {1e9 * machine.mapped:.2f} ns a mapped "
        f"value, {1e9 * machine.feature:.2f} a feature, {1e9 * machine.entry:.2f} an entry summed; {1e-9 / machine.byte:.1f} GB/s read"
    )
    with tempfile.TemporaryDirectory() as folder:
        check_rows(machine, folder, options.rows)
        check_messages(folder)
    table(machine)
    print(f"  {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
