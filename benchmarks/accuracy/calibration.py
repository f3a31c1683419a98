"""Do probabilities mean what they say, and what do they cost? Compared with CalibratedClassifierCV on the same model.

A model is fitted to some rows of each set. Its own probabilities come from rows that the choice of its strength held
out. scikit-learn calibrates the same estimator on the outputs of five folds, with ensemble=False, so that both sides
answer with one model. If a set has groups, they are held out together.

Newsgroups are split by date, and no calibration on the earlier rows can foresee the later ones; "newsgroups, random
rows" draws the test rows from all rows. The benchmark prints accuracy, log-loss and expected calibration error (ten
bands of the largest probability) on held-out rows, and the time that calibration adds to a fit.

python -m benchmarks.accuracy.calibration                    # four sets, some minutes
python -m benchmarks.accuracy.calibration --sets hmp --rows 1000
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import vstack
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold

from benchmarks.sets import SETS, LabelledSet
from chimap import HistogramClassifier
from chimap.models.answers import ClassAnswers

METHODS = ("temperature", "sigmoid")  # the first exists only in newer versions of scikit-learn
_BANDS = 10
_RANDOM = ", random rows"


def _rows(name: str, n: int, seed: int) -> LabelledSet:
    """Return training and test rows of a set, at most n of each."""
    data = SETS[name.removesuffix(_RANDOM)]()
    if name.endswith(_RANDOM):
        X, y = vstack([data.X, data.X_test]).tocsr(), np.concatenate([data.y, data.y_test])
        train, test = np.split(np.random.default_rng(seed).permutation(y.size)[: 2 * n], [n])
        return LabelledSet(name, X[train], y[train], X[test], y[test])
    places = np.random.default_rng(seed).permutation(data.X_test.shape[0])[:n]
    return replace(data.some(n, seed), X_test=data.X_test[places], y_test=data.y_test[places])


def calibration_error(probabilities: np.ndarray, right: np.ndarray) -> float:
    """Return the expected calibration error.

    It is the mean over rows of |mean probability - share right| in the band of the row's largest probability.
    """
    band = np.minimum((probabilities * _BANDS).astype(int), _BANDS - 1)
    sums = np.bincount(band, probabilities - right, _BANDS)
    return float(np.abs(sums).sum() / right.size)


def measured(model: Any, classes: np.ndarray, X: Any, y: np.ndarray) -> tuple[float, float, float]:
    """Return accuracy, log-loss and calibration error."""
    P = model.predict_proba(X)
    right = classes[P.argmax(axis=1)] == y
    return float(right.mean()), float(log_loss(y, P, labels=classes)), calibration_error(P.max(axis=1), right)


def _timed(owner: Any, name: str) -> list[float]:
    """Record the seconds of each future call of a method of an object."""
    method, seconds = getattr(owner, name), []

    def timed(*given: Any, **settings: Any) -> Any:
        began = time.perf_counter()
        result = method(*given, **settings)
        seconds.append(time.perf_counter() - began)
        return result

    setattr(owner, name, timed)
    return seconds


def main() -> None:
    """Print two or three lines per set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["mnist", "newsgroups", f"newsgroups{_RANDOM}", "hmp"])
    parser.add_argument("--features", choices=("exact", "landmarks"), default="exact")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{'set':<24} {'probabilities':<34} {'accuracy':>8} {'log-loss':>8} {'error':>6} {'seconds added':>13}")
    for name in options.sets:
        data = _rows(name, options.rows, options.seed)
        settings: dict[str, Any] = {"features": options.features, "random_state": options.seed}
        settings |= {"normalize": None if name == "mnist" else "l1"}
        settings |= {"n_components": 500} if options.features == "landmarks" else {}
        own = HistogramClassifier("exp-chi2", **settings)
        own.fit(data.X, data.y, groups=data.groups)  # compiles the loops
        calibrating = _timed(ClassAnswers, "of")
        began = time.perf_counter()
        own.fit(data.X, data.y, groups=data.groups)
        took = time.perf_counter() - began
        rows = [("own", own, own.stage_seconds_.get("held out", 0.0) + calibrating[-1])]
        for method in METHODS:
            folds = 5 if data.groups is None else list(GroupKFold(5).split(data.X, data.y, data.groups))
            machine = HistogramClassifier("exp-chi2", **settings)
            other = CalibratedClassifierCV(machine, method=method, cv=folds, ensemble=False)
            began = time.perf_counter()
            try:
                other.fit(data.X, data.y)
            except ValueError:  # this version of scikit-learn does not know the method
                continue
            rows.append((f"CalibratedClassifierCV {method}", other, time.perf_counter() - began - took))
        for words, model, added in rows:
            accuracy, loss, error = measured(model, own.classes_, data.X_test, data.y_test)
            print(f"{name:<24} {words:<34} {accuracy:>8.3f} {loss:>8.4f} {error:>6.3f} {added:>10.2f}", flush=True)


if __name__ == "__main__":
    main()
