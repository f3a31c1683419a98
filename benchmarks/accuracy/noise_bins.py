"""What do useless bins cost, and how much of the loss do learned weights win back?

As many noise bins as there are bins are added to each shared set. Each noise bin is one of the bins with its rows in
another order, so it has the same values and says nothing. The benchmark prints the scores on all test rows, as means
over seeds, of the default without noise, with noise and equal weights, and with noise and learned weights. It also
prints the share of the loss that is left (target: a fifth at most), and what trying the weights costs without noise
(target: .002 at most).

python -m benchmarks.accuracy.noise_bins                       # every set, 2000 rows, three seeds
python -m benchmarks.accuracy.noise_bins --sets mnist,hmp --rows 1000 --kernel exp-chi2
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import get_scorer

from benchmarks.sets import SETS, LabelledSet
from chimap import HistogramClassifier, HistogramRegressor


def with_noise(X: Any, seed: int) -> Any:
    """Return the bins, and each bin a second time with its rows in another order."""
    rng = np.random.default_rng(seed)
    if not sp.issparse(X):
        return np.hstack([X, rng.permuted(X, axis=0)])
    columns = X.tocsc()
    sizes = np.diff(columns.indptr)
    rows = np.concatenate([rng.choice(X.shape[0], n, replace=False) for n in sizes])
    noise = sp.csc_matrix((columns.data, rows, columns.indptr), shape=X.shape)
    return sp.hstack([X, noise], format="csr")


def score(data: LabelledSet, X: Any, X_test: Any, kernel: str, bin_weights: Any, seed: int) -> float:
    """Return the score on the test rows."""
    made = HistogramRegressor if data.scoring == "r2" else HistogramClassifier
    # Twice the bins take twice the memory. Under the budget of a default fit, the features would change too.
    model = made(kernel, bin_weights=bin_weights, memory="4GiB", random_state=seed)
    model.fit(X, data.y, **({} if data.groups is None else {"groups": data.groups}))
    return float(get_scorer(data.scoring)(model, X_test, data.y_test))


def measure(data: LabelledSet, kernel: str, seed: int) -> dict[str, float]:
    """Return the four scores."""
    noisy, noisy_test = with_noise(data.X, seed), with_noise(data.X_test, seed + 1)
    learns = "learn" if kernel != "auto" else "auto"
    return {
        "clean": score(data, data.X, data.X_test, kernel, None, seed),
        "clean, learned": score(data, data.X, data.X_test, kernel, learns, seed),
        "noise": score(data, noisy, noisy_test, kernel, None, seed),
        "noise, learned": score(data, noisy, noisy_test, kernel, learns, seed),
    }


def line(name: str, scores: dict[str, float]) -> str:
    """Return one line of the table: scores, share of the loss that is left, cost of trying without noise."""
    loss = scores["clean"] - scores["noise"]
    left = (scores["clean"] - scores["noise, learned"]) / loss if loss > 0 else float("nan")
    cost = scores["clean"] - scores["clean, learned"]
    return f"{name:<14}" + "".join(f"{s:>16.4f}" for s in scores.values()) + f"{left:>10.2f}{cost:>9.4f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rows", type=int, default=2000, help="rows to learn from")
    parser.add_argument("--kernel", default="auto")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    heads = ("clean", "clean, learned", "noise", "noise, learned")
    print(f"{'set':<14}" + "".join(f"{head:>16}" for head in heads) + f"{'left':>10}{'cost':>9}")
    for name in options.sets.split(","):
        whole = SETS[name]()
        found = [measure(whole.some(options.rows, seed), options.kernel, seed) for seed in range(options.seeds)]
        print(line(name, {way: float(np.mean([each[way] for each in found])) for way in found[0]}), flush=True)


if __name__ == "__main__":
    main()
