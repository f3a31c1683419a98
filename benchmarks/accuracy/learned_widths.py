"""Real data with several descriptors: do learned widths beat the best single width of a grid of 20, and in less time?

Each width of the grid (gamma from 1/300 to 10 times 1 / mean distance) is one fit, with its strength chosen by exact
folds. The best width is the one with the least cross-validated error. The learned widths are one fit. Its error and
those of the grid use the same folds, rows and features. ``--full`` takes all training rows and D = 2048. The data are
MNIST in cells of 7 x 7 pixels, visual words of CIFAR-10 in quadrants, Caltech-101 words in levels of a pyramid, and
MOSES molecules as character and pair counts (regression).
"""

import argparse
import itertools
import time

import numpy as np
import scipy.sparse as sp

from benchmarks.measure import counts, data_file, mnist, report
from chimap import FourierKernelLearner, FourierKernelRegressor, HistogramClassifier, HistogramRegressor

KERNEL = "exp-chi2"
GRID = np.geomspace(1 / 300, 10, 20)


def by_blocks(X, blocks):
    """Return the columns of the blocks side by side, with each block of a row summing to 1."""
    parts = []
    for columns in blocks:
        part = X[:, columns]
        sums = np.asarray(part.sum(axis=1)).ravel()
        parts.append(sp.diags(1 / np.where(sums > 0, sums, 1)) @ part)
    ends = np.cumsum([part.shape[1] for part in parts])
    return sp.hstack(parts, format="csr").astype(np.float32), [
        slice(e - p.shape[1], e) for e, p in zip(ends, parts, strict=True)
    ]


def digits():
    X, y, Xt, yt = mnist(normalize=True)
    cells = np.arange(784).reshape(4, 7, 4, 7).transpose(0, 2, 1, 3).reshape(16, 49)
    blocks = [cell for cell in cells if X[:2000, cell].any()]
    return X, y, Xt, yt, blocks


def words(name, blocks):
    with np.load(data_file(name)) as z:
        y, train = z["y"], z["is_train"]
    X = counts(name)
    X, blocks = by_blocks(X, blocks(X))
    return X[train], y[train], X[~train], y[~train], blocks


def cifar():
    return words("cifar10_bow.npz", lambda X: [slice(500 * j, 500 * j + 500) for j in range(4)])


def caltech():
    with np.load(data_file("caltech101_45_bow.npz")) as z:
        y, train = z["y"], z["is_train"]
    cells = [counts("caltech101_45_bow.npz")[:, 600 * k : 600 * k + 600] for k in range(16)]
    two = [sum(cells[4 * r + q] for r in (a, a + 1) for q in (b, b + 1)) for a in (0, 2) for b in (0, 2)]
    levels = [sum(cells), sp.hstack(two), sp.hstack(cells)]
    ends = np.cumsum([0, *(level.shape[1] for level in levels)])
    spans = [slice(a, b) for a, b in itertools.pairwise(ends)]
    X, blocks = by_blocks(sp.hstack(levels, format="csr"), spans)
    return X[train], y[train], X[~train], y[~train], blocks


def moses(n_rows=60_000):
    with np.load(data_file("moses750k_smiles.npz")) as z:
        lengths, chars, y = z["lengths"].astype(np.int64), z["chars"], z["logp_milli"] / 1000
    row = np.repeat(np.arange(lengths.size), lengths)
    kept = row < n_rows
    row, (letters, code) = row[kept], np.unique(chars[kept], return_inverse=True)
    same, V = row[1:] == row[:-1], letters.size
    pairs = code[:-1] * V + code[1:]
    pair = sp.csr_matrix((np.ones(same.sum()), (row[1:][same], pairs[same])), shape=(n_rows, V * V))
    single = sp.csr_matrix((np.ones(row.size), (row, code)), shape=(n_rows, V))
    X = sp.hstack([single, pair[:, np.unique(pairs[same])]], format="csr")
    X, blocks = by_blocks(X, [slice(0, V), slice(V, X.shape[1])])
    X = sp.hstack([X, sp.csr_matrix(lengths[:n_rows, None] / 50.0)], format="csr").astype(np.float32)
    blocks.append(slice(X.shape[1] - 1, X.shape[1]))
    test = np.arange(n_rows) % 6 == 0
    return X[~test], y[:n_rows][~test], X[test], y[:n_rows][test], blocks


DATA = {"mnist cells": digits, "cifar10 quadrants": cifar, "moses": moses, "caltech101 levels": caltech}


def held_out(model):
    """Return the cross-validated squared error relative to that of the mean."""
    scores = model.selection_
    return float(scores.means[scores.chosen] / scores.baseline)


def compare(name, n_rows, n_components):
    X, y, Xt, yt, blocks = DATA[name]()
    chosen = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:n_rows])
    X, y = X[chosen], y[chosen]
    if sp.issparse(X) and X.shape[1] < 3000:
        X, Xt = X.toarray(), Xt.toarray()
    is_class = y.dtype.kind != "f"
    plain, learner = (
        (HistogramClassifier, FourierKernelLearner) if is_class else (HistogramRegressor, FourierKernelRegressor)
    )
    settings = {"kernel": KERNEL, "n_components": n_components, "selection": 5, "memory": "4GiB", "random_state": 0}
    single = settings | {"features": "fourier"}  # as the learner has them
    some = slice(None, None, -(-len(y) // 2000))  # of all classes, though rows may lie in the order of labels
    warm = plain(**single | {"n_components": 64}).fit(X[some], y[some])  # loads the compiled loops
    mean = warm.describe()["gamma"]
    began = time.perf_counter()
    fits = []
    for factor in GRID:
        model = plain(gamma=mean * factor, **single).fit(X, y)
        fits.append((held_out(model), factor, model))
    grid_s = time.perf_counter() - began
    error, factor, best = min(fits, key=lambda fit: fit[0])
    rounds = learner(blocks=blocks, objective="gradients", **settings).fit(X, y)
    began = time.perf_counter()
    learned = learner(blocks=blocks, **settings).fit(X, y)
    learned_s = time.perf_counter() - began
    report(
        f"{name}, {len(y):,} rows: cross-validated error / best of the grid", f"{held_out(learned) / error:.3f}", "< 1"
    )
    report(
        "  test score less that of the best of the grid", f"{learned.score(Xt, yt) - best.score(Xt, yt):+.4f}", "> 0"
    )
    report("  the same of rounds of gradients", f"{rounds.score(Xt, yt) - best.score(Xt, yt):+.4f}", ">= 0")
    report("  time / the grid's", f"{learned_s / grid_s:.2f}", "< 1")
    print(
        f"  grid: error {error:.4f} at {factor:.2f} times the mean gamma, score {best.score(Xt, yt):.4f}, {grid_s:.1f} s; "
        f"learned: {held_out(learned):.4f}, {learned.score(Xt, yt):.4f}, {learned_s:.1f} s, {learned.n_iter_} iterations; "
        f"widths over initial ones {np.round(learned.widths_ / learned.start_widths_, 2)[:16].tolist()}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="use all training rows, and D = 2048")
    parser.add_argument("--only", choices=list(DATA), help="run only this data set")
    options = parser.parse_args()
    n_rows, n_components = (10**6, 2048) if options.full else (4000, 512)
    for name in [options.only] if options.only else list(DATA)[:3]:
        compare(name, n_rows, n_components)


if __name__ == "__main__":
    main()
