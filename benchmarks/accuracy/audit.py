"""Does an audit find labels that were flipped?

Of each shared table, 5 % of the labels are replaced by another class at random. A machine with a fixed kernel is fitted
to them, and ``chimap.audit`` orders the rows by how doubtful their labels are. The benchmark prints how many of the
flipped labels are among the first 5 % and 10 % of the rows, the rows that are named at a rate of false discoveries of
10 %, with the true share of right labels among them, and the seconds beyond the fit. Beside it stands ``cleanlab``
(``get_label_quality_scores``, where it is installed) with probabilities of the same machine, fitted again on nine
tenths of the rows in each of ten folds, and its seconds; without it, the same scores are the probabilities themselves.

python -m benchmarks.accuracy.audit                        # six tables, at most 1500 rows each, seeds 0 to 2
python -m benchmarks.accuracy.audit --sets hmp --seeds 1
"""

from __future__ import annotations

import argparse
import time
import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from benchmarks.measure import csr_of, data_file
from chimap import HistogramClassifier, audit

SHARE = 0.05
KERNELS = {"normalize": "l1", "kernel": "exp-chi2", "features": "exact", "loss": "square"}
FILES = {
    "hmp sites": "hmp_otu_counts.npz",
    "newsgroups": "newsgroups20_counts.npz",
    "mnist": "mnist.npz",
    "fashion": "fashion_mnist.npz",
    "pancreas cells": "domains/cell_seg.npz",
    "blood cells": "domains/cell_pbmc68k.npz",
    "web pages": "domains/text_webkb.npz",
}


def table(name: str, n_rows: int, seed: int) -> tuple[Any, np.ndarray]:
    """Return rows and labels, of classes with ten rows and more, at most so many at random."""
    with np.load(data_file(FILES[name])) as z:
        if "x_train" in z:
            X, y = z["x_train"].reshape(len(z["x_train"]), -1).astype(np.float32), z["y_train"]
        else:
            X, y = csr_of(z), z["y_site" if "y_site" in z else "y"]
        if "site_names" in z:
            y = np.where([name.endswith(b"_other") for name in z["site_names"][y]], -1, y.astype(int))
    values, counts = np.unique(y, return_counts=True)
    known = np.flatnonzero(
        np.isin(y, values[(counts >= 20) & (values.astype(int) >= 0)]) & (np.asarray(X.sum(axis=1)).ravel() > 0)
    )
    some = np.sort(np.random.default_rng(seed).permutation(known)[:n_rows])
    y = y[some]
    values, counts = np.unique(y, return_counts=True)
    some = some[np.isin(y, values[counts >= 10])]
    return X[some], y[np.isin(y, values[counts >= 10])].astype(int)


def flipped(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels of which some are another class at random, and which these are (n,)."""
    rng, classes = np.random.default_rng(seed + 100), np.unique(y)
    is_flipped = np.zeros(y.size, dtype=bool)
    is_flipped[rng.choice(y.size, round(SHARE * y.size), replace=False)] = True
    moved = (np.searchsorted(classes, y) + rng.integers(1, classes.size, y.size)) % classes.size
    return np.where(is_flipped, classes[moved], y), is_flipped


def found_in(order: np.ndarray, is_flipped: np.ndarray, share: float) -> float:
    """Return the share of the flipped labels among the first rows of an order."""
    return float(is_flipped[order[: round(share * order.size)]].sum() / is_flipped.sum())


def by_folds(model: HistogramClassifier, X: Any, y: np.ndarray) -> np.ndarray:
    """Return the order of rows by cross-validated probabilities, by cleanlab if it is there."""
    probabilities = np.empty((y.size, np.unique(y).size))
    for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(X, y):
        probabilities[test] = clone(model).fit(X[train], y[train]).predict_proba(X[test])
    place = np.searchsorted(np.unique(y), y)
    quality = probabilities[np.arange(y.size), place]
    if find_spec("cleanlab") is not None:
        quality = import_module("cleanlab.rank").get_label_quality_scores(place, probabilities)
    return np.argsort(quality, kind="stable")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="hmp sites,mnist,fashion,pancreas cells,blood cells,web pages")
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = ("table", "rows", "first 5 %", "first 10 %", "named", "right", "seconds", "folds 10 %", "seconds")
    print(" ".join(f"{head:>14}" for head in heads))
    for name in options.sets.split(","):
        lines = []
        for seed in range(options.seeds):
            X, y = table(name, options.rows, seed)
            wrong, is_flipped = flipped(y, seed)
            model = HistogramClassifier(**KERNELS, random_state=0).fit(X, wrong)
            began = time.perf_counter()
            found = audit(model, X, wrong)
            taken, began = time.perf_counter() - began, time.perf_counter()
            order = by_folds(model, X, wrong)
            named = found.doubtful.rates <= 0.1
            right = (named & ~is_flipped).sum() / max(named.sum(), 1)
            ours = [found_in(found.doubtful.order, is_flipped, share) for share in (SHARE, 2 * SHARE)]
            theirs = found_in(order, is_flipped, 2 * SHARE), time.perf_counter() - began
            lines.append((y.size, *ours, named.sum(), right, taken, *theirs))
        means = np.mean(lines, axis=0)
        print(f"{name:>14} " + " ".join(f"{mean:14.3g}" for mean in means), flush=True)


if __name__ == "__main__":
    main()
