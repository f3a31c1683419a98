"""Do the top-ranked bins matter the most? The held-out score that is lost when the first ten are emptied.

On each shared set a model is fitted to some rows of the fullest bins. Bins are ranked by ``importance`` (removal and
gradient, on rows without their labels), by permutation importance on the same rows with their labels, and by the
weights of a linear model. The first ten bins of each ranking are set to zero in other held-out rows. The benchmark
prints the score that the model loses, as a mean over seeds, and how much it loses when it is fitted again without
these bins.

python -m benchmarks.accuracy.top_bins                       # eight sets, some minutes
python -m benchmarks.accuracy.top_bins --sets mnist,hmp --rows 500
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import get_scorer
from sklearn.preprocessing import MaxAbsScaler

from benchmarks.sets import SETS, LabelledSet
from chimap import HistogramClassifier, HistogramRegressor

REMOVED = 10
OURS, OTHERS = ("removal", "gradient"), ("permutation", "linear")


def dense(X: Any) -> np.ndarray:
    """Return rows as a dense float32 matrix."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float32)


def reduced(data: LabelledSet, n_rows: int, n_bins: int, seed: int) -> tuple[Any, ...]:
    """Return training rows, rows to rank on and rows to measure on, with the fullest bins only, and their labels."""
    data = data.some(n_rows, seed)
    rank, measure = np.split(np.random.default_rng(seed).permutation(data.X_test.shape[0]), [n_rows // 2])
    means = np.asarray(data.X.mean(axis=0)).ravel()
    bins = np.sort(np.argsort(-means, kind="stable")[:n_bins])
    X, X_test = dense(data.X[:, bins]), dense(data.X_test[:, bins])
    return X, data.y, X_test[rank], data.y_test[rank], X_test[measure], data.y_test[measure]


def rankings(model: Any, is_regression: bool, X: Any, y: Any, X_rank: Any, y_rank: Any) -> dict[str, Any]:
    """Return the first bins of each ranking."""
    scaler = MaxAbsScaler().fit(X)
    linear = (Ridge(1.0) if is_regression else RidgeClassifier(1.0)).fit(scaler.transform(X), y)
    weights = np.sqrt(np.square(np.atleast_2d(linear.coef_)).sum(axis=0))
    return {
        "removal": model.importance(X_rank, kind="removal").bins[:REMOVED],
        "gradient": model.importance(X_rank).bins[:REMOVED],
        "permutation": model.importance(X_rank, y_rank, kind="permutation").bins[:REMOVED],
        "linear": np.argsort(-weights, kind="stable")[:REMOVED],
    }


def without(X: np.ndarray, bins: np.ndarray) -> np.ndarray:
    """Return a copy of the rows with these bins emptied."""
    X = X.copy()
    X[:, bins] = 0
    return X


def measured(name: str, n_rows: int, n_bins: int, seed: int) -> dict[str, tuple[float, float]]:
    """Return the score lost by the model as it is and when fitted again, for each ranking, and the score itself."""
    data = SETS[name]()
    X, y, X_rank, y_rank, X_test, y_test = reduced(data, n_rows, n_bins, seed)
    is_regression, score = data.scoring == "r2", get_scorer(data.scoring)
    make = HistogramRegressor if is_regression else HistogramClassifier

    def fitted(X: np.ndarray) -> Any:
        return make(
            "exp-chi2", features="landmarks", n_components=min(300, len(X)), normalize=None, random_state=seed
        ).fit(X, y)

    model = fitted(X)
    best = score(model, X_test, y_test)
    out = {"score": (best, best)}
    for way, bins in rankings(model, is_regression, X, y, X_rank, y_rank).items():
        anew = fitted(without(X, bins))
        emptied = without(X_test, bins)
        out[way] = (best - score(model, emptied, y_test), best - score(anew, emptied, y_test))
    return out


def main() -> None:
    """Print one line per set, and on how many sets each of our rankings beats both others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rows", type=int, default=1500, help="rows to train on; half as many test rows rank")
    parser.add_argument("--bins", type=int, default=128)
    parser.add_argument("--seeds", default="0,1,2")
    options = parser.parse_args()
    ways = (*OURS, *OTHERS)
    ahead: dict[tuple[str, str], list[bool]] = {}
    print(f"{'set':<15} {'score':>6}   " + "   ".join(f"{way:>11} (anew)" for way in ways))
    for name in options.sets.split(","):
        runs = [measured(name, options.rows, options.bins, int(seed)) for seed in options.seeds.split(",")]
        found = {way: np.mean([run[way] for run in runs], axis=0) for way in runs[0]}
        lost = "   ".join(f"{found[way][0]:>11.3f} {found[way][1]:>6.3f}" for way in ways)
        print(f"{name:<15} {found['score'][0]:>6.3f}   {lost}", flush=True)
        for i, sense in enumerate(("as it is", "fitted anew")):
            best = max(found[way][i] for way in OTHERS)
            for way in OURS:
                ahead.setdefault((sense, way), []).append(found[way][i] > best)
    for (sense, way), wins in ahead.items():
        print(f"{sense}: the ten of {way} cost more than both others on {sum(wins)} of {len(wins)} sets")


if __name__ == "__main__":
    main()
