"""PERMANOVA of 100,000 rows against its matrix products, and of few rows against scikit-bio, where that is installed.

    python -m benchmarks.speed.permanova [--rows 100000] [--bins 300] [--permutations 999] [--groups 4]

Rows are made: Poisson counts of gamma rates, 5 rows a subject, groups within subjects. The bound of the permutations is
the time of their product, 2 n r k B operations for B orders of the k columns of all terms and r landmarks, at the rate of
one such product. Seconds of cores stand beside seconds, for machines that do other work meanwhile.
"""

from __future__ import annotations

import argparse
import importlib
import time

from benchmarks.measure import report  # first: it sets up the BLAS

import numpy as np  # isort: skip

from chimap import permanova
from chimap._progress import Progress
from chimap.cli.show import peak_memory, size
from chimap.data import ArraySource
from chimap.diagnostics.coordinates import LANDMARKS
from chimap.kernels import chi2


class Stages(Progress):
    """Keeps the seconds of each stage."""

    def __init__(self) -> None:
        self.began: list[tuple[str, float]] = []

    def stage(self, name: str, total: int | None, unit: str = "rows") -> None:
        self.began.append((name, time.perf_counter()))

    def seconds(self) -> dict[str, float]:
        ends = [began for _, began in self.began[1:]] + [time.perf_counter()]
        return {name: end - began for (name, began), end in zip(self.began, ends, strict=True)}


def made(n: int, bins: int, groups: int, seed: int = 0) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(0.5, 4, (n, bins)).astype(np.float32)).astype(np.float32)
    X[:, 0] += 1
    group, subject = rng.integers(groups, size=n), np.arange(n) // 5
    X[group == 1, 1] += rng.poisson(1, np.count_nonzero(group == 1))
    return X, {"group": np.char.add("g", group.astype(str)), "age": rng.random(n), "subject": subject}


def many_rows(n: int, bins: int, groups: int, permutations: int) -> None:
    X, about = made(n, bins, groups)
    permanova(X[:5000], "group", about_of(about, 5000), permutations=9)  # compiles
    stages, began, used = Stages(), time.perf_counter(), time.process_time()
    found = permanova(
        ArraySource(X), "group + age", about, strata="subject", permutations=permutations, progress=stages
    )
    seconds = time.perf_counter() - began
    rows = f"{n:,} rows, {bins} bins, {permutations} permutations"
    report(f"{rows}: seconds", f"{seconds:.1f}", "60")
    report("  seconds of cores", f"{time.process_time() - used:.1f}", "-")
    print("  " + ", ".join(f"{name} {value:.1f} s" for name, value in stages.seconds().items()))
    r, k = int(found.data["landmarks"] or LANDMARKS), groups
    V, Z = np.ones((40, n), np.float32), np.ones((n, r), np.float32)
    V @ Z
    start = time.perf_counter()
    V @ Z
    rate = 2 * 40 * n * r / (time.perf_counter() - start)
    bound = 2 * n * r * k * permutations / rate
    permuting = stages.seconds()["permuting"]
    report("  permutations and dispersion, times the product at the rate of one", f"{permuting / bound:.2f}", "2")
    report("  permutations a second, of all terms and of the dispersion", f"{2 * permutations / permuting:,.0f}", "-")
    report("  peak memory, the rows included", size(peak_memory()), "-")
    print(f"  rate of products {rate / 1e9:.0f} Gflop/s; {found.sentence}")


def about_of(about: dict[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
    return {name: values[:n] for name, values in about.items()}


def few_rows(n: int, permutations: int) -> None:
    X, about = made(n, 200, 3)
    stages = Stages()
    began = time.perf_counter()
    found = permanova(X, "group", about, permutations=permutations, progress=stages)
    seconds = time.perf_counter() - began
    each = permutations / stages.seconds()["permuting"]
    report(f"{n:,} rows, exact: permutations a second, dispersion with them", f"{2 * each:,.0f}", "1000")
    try:
        peers = importlib.import_module("skbio.stats.distance")
    except ImportError:
        print("skipped: scikit-bio is not installed")
        return
    P = X.astype(np.float64) / X.sum(axis=1, keepdims=True)
    D2 = chi2.distance(P)
    D = np.sqrt((D2 + D2.T) / 2)
    np.fill_diagonal(D, 0)
    began = time.perf_counter()
    other = peers.permanova(peers.DistanceMatrix(D), about["group"], permutations=permutations, seed=0)
    its_seconds = time.perf_counter() - began
    f = float(other["test statistic"])
    df, left = found.terms[0].df, found.residual_df
    report("  F, relative difference from scikit-bio's", f"{abs(found.terms[0].f / f - 1):.1e}", "1e-10")
    r2 = 1 / (1 + left / (df * f))
    report("  R2, relative difference", f"{abs(found.terms[0].r2 / r2 - 1):.1e}", "1e-10")
    report("  p, and scikit-bio's", f"{found.terms[0].p:.3f}, {other['p-value']:.3f}", "-")
    report("  times as fast, kernel and dispersion included", f"{its_seconds / seconds:.1f}", "-")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--bins", type=int, default=300)
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--permutations", type=int, default=999)
    asked = parser.parse_args()
    few_rows(1000, asked.permutations)
    many_rows(asked.rows, asked.bins, asked.groups, asked.permutations)
