"""Do probabilities mean what they say, and what do they cost? Against CalibratedClassifierCV around the same model.

A model is fitted to some rows of each set; its own probabilities come from rows that the choice of its strength held
out. scikit-learn calibrates the same estimator on the outputs of five folds, with ensemble=False, so that one model
answers on both sides. Groups that a set has are held out together.
Printed: accuracy, log-loss and expected calibration error (ten bands of the largest probability) on held-out rows, and
what calibration adds to the time of a fit.

python -m benchmarks.accuracy.calibration                    # three sets, some minutes
python -m benchmarks.accuracy.calibration --sets hmp --rows 1000
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold

from benchmarks.sets import SETS
from chimap import HistogramClassifier

METHODS = ("temperature", "sigmoid")  # the first is of newer scikit-learns
_BANDS = 10


def calibration_error(probabilities: np.ndarray, right: np.ndarray) -> float:
    """Mean over rows of |mean probability - share that is right| of the band that the row's largest one is in."""
    band = np.minimum((probabilities * _BANDS).astype(int), _BANDS - 1)
    sums = np.bincount(band, probabilities - right, _BANDS)
    return float(np.abs(sums).sum() / right.size)


def measured(model: Any, classes: np.ndarray, X: Any, y: np.ndarray) -> tuple[float, float, float]:
    """Accuracy, log-loss and calibration error."""
    P = model.predict_proba(X)
    right = classes[P.argmax(axis=1)] == y
    return float(right.mean()), float(log_loss(y, P, labels=classes)), calibration_error(P.max(axis=1), right)


def main() -> None:
    """Print two or three lines a set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", default="mnist,newsgroups,hmp")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(
        f"{'set':<12} {'probabilities':<28} {'accuracy':>8} {'log-loss':>8} {'error':>6} {'seconds added':>13}"
    )
    for name in given.sets.split(","):
        data = SETS[name]().some(given.rows, given.seed)
        places = np.random.default_rng(given.seed).permutation(data.X_test.shape[0])[: given.rows]
        X_test, y_test = data.X_test[places], data.y_test[places]
        normalize = None if name == "mnist" else "l1"
        settings = {
            "features": "landmarks",
            "n_components": 500,
            "normalize": normalize,
            "random_state": given.seed,
        }
        own = HistogramClassifier("exp-chi2", **settings)
        own.fit(data.X, data.y, groups=data.groups)  # compiles
        began = time.perf_counter()
        own.fit(data.X, data.y, groups=data.groups)
        took = time.perf_counter() - began
        rows = [("own", own, own.stage_seconds_.get("held out", 0.0))]
        for method in METHODS:
            folds = 5 if data.groups is None else list(GroupKFold(5).split(data.X, data.y, data.groups))
            machine = HistogramClassifier("exp-chi2", **settings)
            other = CalibratedClassifierCV(machine, method=method, cv=folds, ensemble=False)
            began = time.perf_counter()
            try:
                other.fit(data.X, data.y)
            except ValueError:  # a scikit-learn that does not know the method
                continue
            rows.append((f"CalibratedClassifierCV {method}", other, time.perf_counter() - began - took))
        for words, model, added in rows:
            accuracy, loss, error = measured(model, own.classes_, X_test, y_test)
            print(
                f"{name:<12} {words:<34} {accuracy:>8.3f} {loss:>8.4f} {error:>6.3f} {added:>10.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
