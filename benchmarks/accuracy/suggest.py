"""Accuracy by the number of labels: rows that ``chimap.suggest`` names, beside random rows.

    python -m benchmarks.accuracy.suggest

Of each table a third of the rows is the test, drawn anew for each seed; all others are the pool, of which 20 random rows
are labelled at first and 20 more at each step, up to 120. Both ways begin with the same rows. The machine is
``HistogramClassifier(KERNEL, features="exact")``, whose strength is chosen by left-out rows, fitted anew at each step.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_digits

from benchmarks.measure import csr_of, data_file
from chimap import HistogramClassifier, suggest

FIRST, STEP, LAST = 20, 20, 120
MOST_ROWS = 1500  # of a table, drawn with seed 0


def tables() -> Iterator[tuple[str, np.ndarray, np.ndarray, str]]:
    """Yield name, rows, labels and the normalisation that the field uses."""
    X, y = load_digits(return_X_y=True)
    yield "digits", X, y, "l1"
    for name, normalize in (("cell_pbmc68k", "log-cp10k"), ("cell_seg", "log-cp10k"), ("pep_apml_tox", "l1")):
        with np.load(data_file(f"domains/{name}.npz")) as z:
            yield name, csr_of(z).toarray(), z["y"], normalize
    with np.load(data_file("fashion_mnist.npz")) as z:
        yield "fashion", z["x_train"].reshape(len(z["x_train"]), -1), z["y_train"], "l1"


def curve(X: np.ndarray, y: np.ndarray, normalize: str, seed: int, is_random: bool) -> list[float]:
    """Return the accuracies on the test by the number of labels."""
    order = np.random.default_rng(seed).permutation(len(y))
    test, pool = order[: len(y) // 3], order[len(y) // 3 :]
    known, left = pool[:FIRST], pool[FIRST:]
    scores = []
    while True:
        model = HistogramClassifier("exp-chi2", normalize=normalize, features="exact", random_state=0)
        model.fit(X[known], y[known])
        scores.append(float(np.mean(model.predict(X[test]) == y[test])))
        if known.size >= LAST:
            return scores
        places = np.arange(STEP) if is_random else np.concatenate(suggest(model, X[left], STEP).places)
        known, left = np.append(known, left[places]), np.delete(left, places)


def main() -> None:
    """Print the mean accuracies and the steps at which suggested rows are ahead."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds, from 0 on")
    parser.add_argument("--tables", help="names of tables with commas between them; all by default")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    labels = range(FIRST, LAST + 1, STEP)
    print(f"{arguments.seeds} seeds{'':<18}" + "".join(f"{n:>7}" for n in labels))
    for name, X, y, normalize in tables():
        if arguments.tables and name not in arguments.tables.split(","):
            continue
        some = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
        means = {}
        for way in ("random", "suggested"):
            runs = [curve(X[some], y[some], normalize, seed, way == "random") for seed in range(arguments.seeds)]
            means[way] = np.mean(runs, axis=0)
            print(f"{name:<14} {way:<10}" + "".join(f"{100 * score:7.1f}" for score in means[way]), flush=True)
        ahead = int((means["suggested"] > means["random"])[1:].sum())
        print(f"{name:<14} ahead at {ahead} of {len(labels) - 1} steps", flush=True)


if __name__ == "__main__":
    main()
