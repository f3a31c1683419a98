"""What do a dozen tasks with missing labels cost, compared with one of them?

The shape is that of Tox21: 8000 fingerprints of molecules (2048 counts; those of HIV), 12 tasks, a quarter of the
labels missing. One fit of all tasks is compared with one fit of the first task, on the rows that have its label and
on all rows. Races differ by a factor of two from task to task and from seed to seed. So for races the mean of five
seeds is compared with the mean of one race of each task, on the rows that have its label. Labels are generated: a
sparse linear function of log counts plus as much noise, whose largest tenth is 1. Everything runs in one process,
after a small fit that compiles.

    python -m benchmarks.speed.several_tasks landmarks exact
    python -m benchmarks.speed.several_tasks default           # with the race; its candidates differ by task
"""

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.measure import report
from benchmarks.sets import SETS
from chimap import HistogramClassifier

SEEDS = 5  # seeds of a race
KINDS: dict[str, dict[str, Any]] = {
    "landmarks": {"kernel": "exp-chi2", "features": "landmarks", "n_components": 1000},
    "exact": {"kernel": "exp-chi2", "features": "exact"},
    "default": {},
}


def tasks(n_rows, n_tasks, missing, seed=0):
    """Return counts (n, 2048), labels (n, tasks) with NaN if missing, and the labels of the first task on all rows."""
    X = SETS["hiv"]().some(n_rows, seed).X
    rng = np.random.default_rng(seed)
    shape = (X.shape[1], n_tasks)
    scores = X.log1p() @ (rng.normal(size=shape) * (rng.random(shape) < 0.02))
    scores += rng.normal(size=scores.shape) * scores.std()
    Y = (scores > np.quantile(scores, 0.9, axis=0)).astype(float)
    first = Y[:, 0].astype(int)
    Y[rng.random(Y.shape) < missing] = np.nan
    return X, Y, first


def seconds(kind, *given):
    """Return the seconds of a fit for each data set, in turns; the median of five if a fit takes under 2 s."""
    taken = [[_once(kind, *each)] for each in given]
    for _ in range(4 if max(taken)[0] < 2 else 0):
        for own, each in zip(taken, given, strict=True):
            own.append(_once(kind, *each))
    return [float(np.median(own)) for own in taken]


def _once(kind, X, Y, seed=0):
    began = time.perf_counter()
    HistogramClassifier(**KINDS[kind], random_state=seed).fit(X, Y)
    return time.perf_counter() - began


def _alone(X, y):
    """Return the rows of a task, and their labels."""
    seen = np.flatnonzero(~np.isnan(y))
    return X[seen], y[seen].astype(int)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=["landmarks", "exact"])
    parser.add_argument("--rows", type=int, default=8000)
    options = parser.parse_args()
    X, Y, first = tasks(options.rows, 12, 0.25)
    seen = np.flatnonzero(~np.isnan(Y[:, 0]))
    for kind in options.kinds:
        seconds(kind, (X[:1000], Y[:1000]), (X[:1000], first[:1000]))
        of_seen, of_all, together = seconds(kind, (X[seen], first[seen]), (X, first), (X, Y))
        if kind == "default":
            others = [_once(kind, *_alone(X, y), seed=task % SEEDS) for task, y in enumerate(Y.T) if task]
            of_seen = float(np.mean([of_seen, *others]))
            together = float(np.mean([together, *(_once(kind, X, Y, seed=seed) for seed in range(1, SEEDS))]))
        print(
            f"{kind}: {of_seen:.1f} s of {seen.size} rows, {of_all:.1f} s of {len(first)}, {together:.1f} s of 12 tasks"
        )
        report(f"{kind}: 12 tasks / one on the rows of its labels", round(together / of_seen, 2), "<= 1.5")
        report(f"{kind}: 12 tasks / one on all rows", round(together / of_all, 2), "<= 1.5")


if __name__ == "__main__":
    main()
