"""Do sets and intervals hold the truth as often as they promise?

On each shared set a model is fitted to random rows, and ``predict_set`` is called on other random rows, because the
promise is for rows from the same source. For each share alpha the benchmark prints how many truths are held, as a
mean over several draws, beside 1 - alpha. It also prints the standard deviation that one draw has by chance, from the
scores that give the threshold and from the rows it is tried on, and the size of the sets, or the width of the
intervals in standard deviations of the targets.

python -m benchmarks.accuracy.coverage                       # three sets, a minute or two
python -m benchmarks.accuracy.coverage --sets mnist --draws 10
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.sets import SETS
from chimap import HistogramClassifier, HistogramRegressor

ALPHAS = (0.05, 0.1, 0.2)


def drawn(name: str, features: str, n_rows: int, n_test: int, seed: int) -> dict[float, tuple[float, float, float]]:
    """Return (share of truths held, deviation by chance, mean size) for each alpha, for one draw of rows."""
    data = SETS[name]()
    order = np.random.default_rng(seed).permutation(data.X.shape[0])
    train, test = order[:n_rows], order[n_rows : n_rows + n_test]
    is_regression = data.scoring == "r2"
    settings: dict[str, Any] = {"features": features, "random_state": seed}
    if features == "landmarks":
        settings["n_components"] = min(500, n_rows)
    make = HistogramRegressor if is_regression else HistogramClassifier
    model = make("exp-chi2", **settings).fit(data.X[train], data.y[train])
    out = {}
    for alpha in ALPHAS:
        found, y = model.predict_set(data.X[test], alpha=alpha), data.y[test]
        if is_regression:
            held = (found[:, 0] <= y) & (y <= found[:, 1])
            size = (found[:, 1] - found[:, 0]) / data.y.std()
        else:
            held = found[np.arange(y.size), np.searchsorted(model.classes_, y)]
            size = found.sum(axis=1)
        n_scores = model._conformal.scores.shape[0]
        chance = np.sqrt(alpha * (1 - alpha) * (1 / n_scores + 1 / y.size))
        out[alpha] = float(held.mean()), float(chance), float(size.mean())
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="mnist,newsgroups,moses logP")
    parser.add_argument("--features", default="exact", choices=("exact", "landmarks", "fourier"))
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--test-rows", type=int, default=1500)
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    print(f"{'set':12} {'alpha':>6} {'nominal':>8} {'held':>8} {'deviation':>10} {'off by':>8} {'size':>8}")
    for name in options.sets.split(","):
        draws = [drawn(name, options.features, options.rows, options.test_rows, seed) for seed in range(options.draws)]
        for alpha in ALPHAS:
            held, chance, size = np.mean([draw[alpha] for draw in draws], axis=0)
            off = (held - (1 - alpha)) / chance
            print(
                f"{name:12} {alpha:6.2f} {1 - alpha:8.3f} {held:8.3f} {chance:10.3f} {off:+8.2f} {size:8.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
