"""What does one iteration of learning widths cost, by number of rows, and the whole of it compared with plain fits?

The benchmark measures the seconds of an evaluation (objective and gradient, ``--features`` D, five descriptors of 20
bins). It fits a line to those of the Fourier form, and a power of n to those of the exact kernel (KRR-GD): the left
of Fig. 1 of the paper, which ``--plot`` draws. ``--full`` goes to 10^5 rows at D = 3000. ``--tune`` compares a fit
with widths with one plain fit on the same rows and features: the bound is 20 plain fits.
"""

import argparse
import time
from typing import Any

import numpy as np
from tests.references.exact_widths import ExactWidths

from benchmarks.measure import report
from chimap import FourierKernelRegressor, HistogramRegressor

BLOCKS = {f"descriptor {j}": slice(20 * j, 20 * j + 20) for j in range(5)}


def rows(n, seed=0):
    """Return histograms of five descriptors, of which one matters much, one matters little and three do not matter."""
    rng = np.random.default_rng(seed)
    X = rng.dirichlet(np.full(20, 0.5), size=(n, 5)).reshape(n, 100).astype(np.float32)
    y = np.sin(8 * X[:, 0]) + np.sqrt(X[:, 1]) + 0.3 * X[:, 20] + 0.05 * rng.standard_normal(n)
    return X, y


def fourier_seconds(n, n_components):
    X, y = rows(n)
    model = FourierKernelRegressor(
        blocks=BLOCKS,
        n_components=n_components,
        n_tune_components=None,
        n_tune_rows=None,
        max_iter=1,
        memory="4GiB",
        random_state=0,
    ).fit(X, y)
    start, first = model.history_  # the start, which loads what is compiled, is one evaluation
    return (first["seconds"] - start["seconds"]) / (model.n_evaluations_ - 1)


def exact_seconds(n):
    X, y = rows(n)
    model = ExactWidths(blocks=BLOCKS, objective="training", max_iter=1).fit(X, y)
    return model.history_[-1]["seconds"] / model.n_evaluations_


def cost(full, n_components, plot):
    sizes = [1000, 3000, 10_000, 30_000, 100_000] if full else [1000, 2000, 4000, 8000, 16_000]
    exact_sizes = [500, 1000, 2000, 4000] if full else [250, 500, 1000, 2000]
    ours = np.array([fourier_seconds(n, n_components) for n in sizes])
    slope, fixed = np.polyfit(sizes, ours, 1, w=1 / ours)
    line = np.polyval([slope, fixed], sizes)
    explained = 1 - np.square(ours - line).sum() / np.square(ours - ours.mean()).sum()
    print("  rows: " + ", ".join(f"{n:,} {s:.2f} s" for n, s in zip(sizes, ours, strict=True)))
    report(f"an evaluation at D = {n_components}: share that a line in the rows explains", f"{explained:.4f}", "> 0.98")
    report("  the power of n over the last two sizes", f"{_power(sizes[-2:], ours[-2:]):.2f}", "1")
    theirs = np.array([exact_seconds(n) for n in exact_sizes])
    print("  KRR-GD, rows: " + ", ".join(f"{n:,} {s:.2f} s" for n, s in zip(exact_sizes, theirs, strict=True)))
    report("KRR-GD: the power of n", f"{_power(exact_sizes[1:], theirs[1:]):.2f}", ">= 2")
    if plot:
        _draw(plot, sizes, ours, line, exact_sizes, theirs, n_components)


def _power(sizes, seconds):
    return np.polyfit(np.log(sizes), np.log(seconds), 1)[0]


def _draw(path, sizes, ours, line, exact_sizes, theirs, n_components):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.loglog(sizes, ours, "o", color="#0072b2", label=f"Fourier features, D = {n_components}")
    axes.loglog(sizes, line, color="#0072b2", linewidth=1, label="its line a + b n")
    axes.loglog(exact_sizes, theirs, "s-", color="#d55e01", label="exact kernel (KRR-GD)")
    axes.set(xlabel="rows", ylabel="seconds per iteration")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=110)


def tune(full, n_components):
    n = 100_000 if full else 10_000
    X, y = rows(n)
    Xt, yt = rows(5000, seed=1)
    settings: dict[str, Any] = {"n_components": n_components, "random_state": 0, "memory": "4GiB"}
    common = settings | {"kernel": "exp-chi2", "features": "fourier"}
    HistogramRegressor(**common | {"n_components": 256}).fit(X[:3000], y[:3000])  # loads what is compiled
    began = time.perf_counter()
    plain = HistogramRegressor(**common).fit(X, y)
    plain_s = time.perf_counter() - began
    began = time.perf_counter()
    learned = FourierKernelRegressor(blocks=BLOCKS, **settings).fit(X, y)
    learned_s = time.perf_counter() - began
    report(f"{n:,} rows x {n_components}: tuned fit / plain fit", f"{learned_s / plain_s:.2f}", "< 20")
    print(
        f"  plain {plain_s:.1f} s, R2 {plain.score(Xt, yt):.4f}; with widths {learned_s:.1f} s, "
        f"R2 {learned.score(Xt, yt):.4f}, {learned.n_iter_} iterations; stages "
        f"{ {k: round(v, 1) for k, v in learned.stage_seconds_.items()} }"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="10^5 rows at D = 3000")
    parser.add_argument("--tune", action="store_true", help="compare the whole fit with a plain fit")
    parser.add_argument("--features", type=int, help="D")
    parser.add_argument("--plot", help="PNG file to write")
    options = parser.parse_args()
    n_components = options.features or (3000 if options.full else 500)
    tune(options.full, n_components) if options.tune else cost(options.full, n_components, options.plot)


if __name__ == "__main__":
    main()
