"""Accuracy by the number of labels, or of deeper rows: those that ``chimap.suggest`` names, beside random ones.

    python -m benchmarks.accuracy.suggest
    python -m benchmarks.accuracy.suggest --deeper 4

Of each table a third of the rows is the test, drawn anew for each seed; all others are the pool, of which 20 random rows
are labelled at first and 20 more at each step, up to 120. Both ways begin with the same rows. The machine is
``HistogramClassifier(KERNEL, features="exact")``, whose strength is chosen by left-out rows, fitted anew at each step.

With ``--deeper``, half of the rows are learned from as they are. The others are thinned to the depth that is named by
their table; a tenth of them then gets so many times as many counts, and all are answered. The machine is on the
additive map of chi2.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits

from benchmarks.measure import csr_of, data_file
from chimap import HistogramClassifier, suggest
from chimap.data.depth import thinned

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


SHALLOW = (
    ("mlrepo_gevers_ileum", 10),
    ("mlrepo_gevers_ileum", 60),
    ("cell_seg", 10),
    ("cell_pbmc68k", 40),
)  # tables, and the counts of a row
MOST_DEEPENED = 500  # rows of a table


def deepened(X: np.ndarray, y: np.ndarray, depth: int, times: float, seed: int) -> list[float]:
    """Return accuracies on shallow rows, with a random tenth deeper, and with the suggested tenth; then the share of
    answers, in the same order, that are those of the whole rows.
    """
    rng = np.random.default_rng(seed)
    known, rest = np.array_split(rng.permutation(len(y)), 2)
    model = HistogramClassifier("chi2", normalize="l1", random_state=0).fit(X[known], y[known])
    more = thinned(sp.csr_matrix(X[rest]), np.full(rest.size, int(depth * times)), rng)
    few = thinned(more, np.full(rest.size, depth), rng)
    tenth = rest.size // 10
    ways = (rng.permutation(rest.size)[:tenth], np.concatenate(suggest(model, few, tenth, deeper=times).places))
    answers = [model.predict(few)]
    for chosen in ways:
        rows = few.toarray()
        rows[chosen] = more[chosen].toarray()
        answers.append(model.predict(rows))
    return [float(np.mean(each == truth)) for truth in (y[rest], model.predict(X[rest])) for each in answers]


def compare_depths(times: float, seeds: int) -> None:
    """Print mean accuracies, and how many answers are those of whole rows, with a tenth of the rows deeper."""
    print(f"{seeds} seeds, shallow, random, suggested: accuracy; answers of whole rows")
    for name, depth in SHALLOW:
        with np.load(data_file(f"domains/{name}.npz")) as z:
            X, y = csr_of(z).toarray().astype(np.float64), z["y"]
        keep = np.random.default_rng(0).permutation(len(y))[:MOST_DEEPENED]
        found = 100 * np.array([deepened(X[keep], y[keep], depth, times, seed) for seed in range(seeds)])
        told = []
        for shallow, random, suggested in (found[:, :3].T, found[:, 3:].T):
            ahead = suggested - random
            means = "".join(f"{each.mean():7.1f}" for each in (shallow, random, suggested))
            told.append(f"{means}  ahead by {ahead.mean():.1f} +- {ahead.std(ddof=1) / np.sqrt(seeds):.1f}")
        print(f"{name:<20}{depth:4}" + ";".join(told), flush=True)


def main() -> None:
    """Print the mean accuracies, and by how much suggested rows are ahead, with the standard error over the seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds, from 0 on")
    parser.add_argument("--tables", help="names of tables with commas between them; all by default")
    parser.add_argument("--deeper", type=float, help="suggest rows to sequence this many times as deep")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.deeper is not None:
        compare_depths(arguments.deeper, arguments.seeds)
        return
    labels = range(FIRST, LAST + 1, STEP)
    print(f"{arguments.seeds} seeds{'':<18}" + "".join(f"{n:>7}" for n in labels))
    for name, X, y, normalize in tables():
        if arguments.tables and name not in arguments.tables.split(","):
            continue
        some = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
        runs = {}
        for way in ("random", "suggested"):
            scores = [curve(X[some], y[some], normalize, seed, way == "random") for seed in range(arguments.seeds)]
            runs[way] = 100 * np.array(scores)
            print(f"{name:<14} {way:<10}" + "".join(f"{score:7.1f}" for score in runs[way].mean(axis=0)), flush=True)
        ahead = runs["suggested"] - runs["random"]
        errors = ahead.std(axis=0, ddof=1) / np.sqrt(arguments.seeds)
        print(f"{name:<14} {'ahead by':<10}" + "".join(f"{by:7.1f}" for by in ahead.mean(axis=0)))
        print(f"{name:<14} {'+-':<10}" + "".join(f"{error:7.1f}" for error in errors), flush=True)


if __name__ == "__main__":
    main()
