"""Does a default find out what the truth is like, at any number of rows, and does it cost no more than that?

Tables of 50 Poisson counts x_j with means m_j, and labels sign(f(x) + noise) of four truths:

    linear     f = sum_j w_j x_j
    additive   f = sum_j w_j |x_j - m_j|
    pairwise   f = sum over pairs (j, j + 1) of w_j z_j z_(j + 1),   z_j = (x_j - m_j) / sqrt(m_j)
    noise      f = 0

with w and m from seed 0 and rows from ``--seed``; the noise has half of the deviation of f. Each is scored by ROC AUC
on 20,000 other rows, with the standard error of the difference to chimap. The rivals have all rows: logistic
regression on standardised counts with the best of three penalties, and LightGBM with early stopping on a tenth of the
rows and as many trees as it takes. Each fit runs in a process of its own; seconds are those of the processor. From a
million rows on, chimap reads a Parquet file.

python -m benchmarks.accuracy.truths                                       # 1,000 to 100,000 rows: an hour
python -m benchmarks.accuracy.truths --truths linear --rows 60000 --methods chimap,logistic
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from chimap.selection.jackknife import deviations_of, parts_of_rows, scores_without, standard_error
from chimap.selection.scoring import area_under_curve

N_BINS, N_TEST, NOISE = 50, 20_000, 0.5
MOST_IN_MEMORY = 10**6

Table = tuple[np.ndarray, np.ndarray]


def table(truth: str, n_rows: int, seed: int) -> Table:
    """Return counts (n, 50) and labels of a truth."""
    rng = np.random.default_rng(0)
    means, weights = rng.gamma(1.0, 2.0, N_BINS) + 0.2, rng.normal(size=N_BINS)
    rng = np.random.default_rng([1, seed])
    X = rng.poisson(means, (n_rows, N_BINS)).astype(np.float32)
    values, noise = TRUTHS[truth](X, means, weights), rng.normal(size=n_rows)
    return X, (values + NOISE * (values.std() or 1.0) * noise > 0).astype(int)


def _pairs(X: np.ndarray, means: np.ndarray, weights: np.ndarray) -> np.ndarray:
    Z = (X - means) / np.sqrt(means)
    return np.asarray((Z[:, ::2] * Z[:, 1::2]) @ weights[::2])


TRUTHS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "linear": lambda X, means, weights: X @ weights,
    "additive": lambda X, means, weights: np.abs(X - means) @ weights - np.abs(X - means).mean(axis=0) @ weights,
    "pairwise": _pairs,
    "noise": lambda X, means, weights: np.zeros(len(X)),
}


# --- methods: each returns outputs for the test rows, the seconds of its fit, and what it is


def chimap(train: Table, X: np.ndarray, seed: int) -> tuple[np.ndarray, float, str]:
    """Return the outputs of the default settings."""
    from chimap import HistogramClassifier, open_source

    model = HistogramClassifier(random_state=seed)
    with tempfile.TemporaryDirectory() as folder:
        if len(train[0]) >= MOST_IN_MEMORY:
            import pyarrow as pa
            import pyarrow.parquet as pq

            path = Path(folder) / "rows.parquet"
            columns = {f"bin{j}": column for j, column in enumerate(train[0].T)}
            pq.write_table(pa.table(columns | {"label": train[1]}), path)
            source = open_source(path, labels="label")
            began = time.process_time()
            model.fit_source(source)
        else:
            began = time.process_time()
            model.fit(*train)
        seconds = time.process_time() - began
    race = model.model_.learned.race
    return model.decision_function(X), seconds, f"{race.winner.name}, {model.n_rows_:,} rows learned"


def logistic(train: Table, X: np.ndarray, seed: int) -> tuple[np.ndarray, float, str]:
    """Return the outputs of logistic regression, with the penalty that is best on a tenth of the rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    began, tenth = time.process_time(), len(train[0]) // 10
    models = {
        C: make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=500)).fit(
            train[0][tenth:], train[1][tenth:]
        )
        for C in (0.01, 0.1, 1.0)
    }
    scores = {
        C: area_under_curve(train[1][:tenth] == 1, each.decision_function(train[0][:tenth]))
        for C, each in models.items()
    }
    best = max(scores, key=lambda C: scores[C])
    outputs = models[best].fit(*train).decision_function(X)
    return outputs, time.process_time() - began, f"C={best}"


def lightgbm(train: Table, X: np.ndarray, seed: int) -> tuple[np.ndarray, float, str]:
    """Return the outputs of boosting that stops when a tenth of the rows has gained nothing for 50 trees."""
    from lightgbm import LGBMClassifier, early_stopping

    began, tenth = time.process_time(), len(train[0]) // 10
    model = LGBMClassifier(n_estimators=100_000, learning_rate=0.05, random_state=seed, verbose=-1)
    model.fit(
        train[0][tenth:],
        train[1][tenth:],
        eval_set=[(train[0][:tenth], train[1][:tenth])],
        eval_metric="auc",
        callbacks=[early_stopping(50, verbose=False)],
    )
    return model.predict(X, raw_score=True), time.process_time() - began, f"{model.best_iteration_} trees"


METHODS = {"chimap": chimap, "logistic": logistic, "lightgbm": lightgbm}


def measured(method: str, truth: str, n_rows: int, seed: int) -> tuple[np.ndarray, float, str]:
    """Return the outputs of a method for the test rows, its seconds, and what it is."""
    X, y = table(truth, n_rows + N_TEST, seed)
    return METHODS[method]((X[:n_rows], y[:n_rows]), X[n_rows:], seed)


def compared(truth: str, n_rows: int, seed: int, methods: list[str]) -> None:
    """Print a line for each method on a table."""
    y, parts, first = table(truth, n_rows + N_TEST, seed)[1][n_rows:] == 1, parts_of_rows(N_TEST, None, 0), None
    for method in methods:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            outputs, seconds, what = pool.submit(measured, method, truth, n_rows, seed).result()
        deviations = deviations_of(scores_without(lambda rows, f=outputs: area_under_curve(y[rows], f[rows]), parts))
        first = deviations if first is None else first
        error = standard_error(np.subtract(deviations, first))
        line = (
            f"{truth:9} {n_rows:9,} {method:9} AUC {area_under_curve(y, outputs):.4f} +- {error:.4f} {seconds:7.1f} s"
        )
        print(f"{line}  {what}", flush=True)


def main() -> None:
    """Compare the methods that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truths", default=",".join(TRUTHS))
    parser.add_argument("--rows", default="1000,10000,100000")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for truth in given.truths.split(","):
        for n_rows in given.rows.split(","):
            compared(truth, int(n_rows), given.seed, given.methods.split(","))


if __name__ == "__main__":
    main()
