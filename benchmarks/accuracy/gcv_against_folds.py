"""Does generalised cross-validation cost accuracy? It needs one factor per strength; we compare it with five folds.

Official splits of six shared sets, at most 6000 training rows, 1000 landmarks, three seeds.

python -m benchmarks.accuracy.gcv_against_folds [--rows 6000] [--seeds 3]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.sets import SETS
from chimap import HistogramClassifier

CHOSEN = ("mnist", "fashion_mnist", "caltech words", "cifar words", "newsgroups", "hmp")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="+", choices=CHOSEN, default=CHOSEN)
    options = parser.parse_args()
    print(f"{'set':16}{'gcv':>9}{'folds':>9}{'points':>9}{'seconds, gcv / folds':>24}")
    for name in options.sets:
        whole, scores, seconds = SETS[name](), {"gcv": [], 5: []}, {"gcv": 0.0, 5: 0.0}
        for seed in range(options.seeds):
            data = whole.some(options.rows, seed)
            for selection in scores:
                model = HistogramClassifier(
                    "exp-chi2",
                    features="landmarks",
                    n_components=1000,
                    normalize="l1",
                    selection=selection,
                    memory="4GiB",
                    random_state=seed,
                )
                began = time.perf_counter()
                model.fit(data.X, data.y)
                seconds[selection] += time.perf_counter() - began
                scores[selection].append(float(np.mean(model.predict(data.X_test) == data.y_test)))
        gcv, folds = np.mean(scores["gcv"]), np.mean(scores[5])
        ratio = seconds["gcv"] / seconds[5]
        print(f"{name:16}{gcv:9.4f}{folds:9.4f}{100 * (gcv - folds):9.2f}{ratio:24.2f}", flush=True)


if __name__ == "__main__":
    main()
