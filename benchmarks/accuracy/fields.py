"""Small real tables of the fields whose people use chimap: the default settings against what those fields use.

Every table has its own splits. A line of the results is one fit; a run that is stopped goes on where it was.

python -m benchmarks.accuracy.fields                                   # all tables and methods, every split: hours
python -m benchmarks.accuracy.fields --tables deepmicro,cell_seg --methods chimap,forest
python -m benchmarks.accuracy.fields --report                          # only the table of what has been measured
python -m benchmarks.accuracy.fields --figures docs/assets             # and the pictures of the guides
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler
from sklearn.svm import SVC, SVR, LinearSVC

from benchmarks.accuracy import STYLE
from benchmarks.accuracy.against_others import MOST_ROUNDS, PATIENCE
from benchmarks.measure import csr_of, data_file

RESULTS = Path(__file__).resolve().parents[1] / "results" / "fields.jsonl"
COSTS = np.logspace(-3, 3, 7)


@dataclass(frozen=True)
class Table:
    """A table with its splits.

    field: the suite that it belongs to. X, y, groups: rows (n, bins) as CSR, labels or targets, what is held out
    together. tests: for each split, whether a row is a test row. scoring: "roc_auc" (the mean of several tasks),
    "accuracy" or "r2".
    """

    name: str
    field: str
    X: sp.csr_matrix
    y: np.ndarray
    groups: np.ndarray | None
    tests: np.ndarray
    scoring: str

    @classmethod
    def read(cls, name: str) -> Table:
        """Read a table of the shared domains."""
        with np.load(data_file(f"domains/{name}.npz")) as z:
            X, y = csr_of(z), z["y"]
            tests = z["is_test"].astype(bool) if "is_test" in z.files else ~z["is_train"].astype(bool)[None]
            keys = [key for key in ("groups", "subject") if key in z.files]
            groups = z[keys[0]] if keys else None
            is_regression = "is_regression" in z.files
        if groups is not None and np.unique(groups).size == groups.size:
            groups = None
        if not is_regression and not (y.dtype.kind == "f" and np.isnan(y).any()):
            y = y.astype(int)
        return cls(name, FIELDS[name.split("_")[0]], X, y, groups, tests, _scoring(name, y, is_regression))


FIELDS = {
    "deepmicro": "microbes, DeepMicro",
    "mlrepo": "microbes, MLRepo",
    "text": "text",
    "pep": "peptides",
    "mol": "molecules",
    "cell": "cells",
}


def _scoring(name: str, y: np.ndarray, is_regression: bool) -> str:
    if is_regression:
        return "r2"
    return "roc_auc" if y.ndim == 2 or np.unique(y).size == 2 else "accuracy"


# --- what the fields use: functions of training rows, labels and the score that return a fitted model


def _splitter(y: np.ndarray, scoring: str) -> Any:
    if scoring == "r2":
        return KFold(5, shuffle=True, random_state=0)
    return StratifiedKFold(int(max(2, min(5, np.bincount(y).min()))), shuffle=True, random_state=0)


def forest(X: Any, y: np.ndarray, scoring: str) -> Any:
    make = RandomForestRegressor if scoring == "r2" else RandomForestClassifier
    return make(500, random_state=0).fit(X, y)


def lightgbm(X: Any, y: np.ndarray, scoring: str) -> Any:
    """Fit LightGBM on all rows, with as many rounds as are best in the mean of folds, each of which stops by itself."""
    import lightgbm as lgb

    make = lgb.LGBMRegressor if scoring == "r2" else lgb.LGBMClassifier
    settings = {"verbose": -1, "random_state": 0, "n_jobs": 1}
    rounds = []
    for train, held in _splitter(y, scoring).split(X, y):
        model, stop = make(n_estimators=MOST_ROUNDS, **settings), lgb.early_stopping(PATIENCE, verbose=False)
        model.fit(X[train], y[train], eval_set=[(X[held], y[held])], callbacks=[stop])
        rounds.append(model.best_iteration_)
    return make(n_estimators=max(1, round(np.mean(rounds))), **settings).fit(X, y)


def logistic(rows: Callable[[Any], Any]) -> Callable[[Any, np.ndarray, str], Any]:
    """Return logistic regression on transformed rows; five folds choose its strength."""

    def fit(X: Any, y: np.ndarray, scoring: str) -> Any:
        model = LogisticRegressionCV(
            Cs=COSTS,
            cv=_splitter(y, scoring),
            scoring=scoring,
            max_iter=300,
            l1_ratios=(0,),
            use_legacy_attributes=False,
        )
        return make_pipeline(FunctionTransformer(rows, accept_sparse=True), MaxAbsScaler(), model).fit(X, y)

    return fit


def clr(X: Any) -> np.ndarray:
    """Return centred log ratios; zeros become half of the smallest value of the row."""
    x = X.toarray().astype(np.float64)
    least = np.where(x > 0, x, np.inf).min(axis=1, initial=np.inf)
    logs = np.log(np.where(x > 0, x, np.where(np.isfinite(least), least, 1.0)[:, None] / 2))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def presence(X: Any) -> np.ndarray:
    return np.asarray((X > 0).toarray().astype(np.float64))


def log_cp10k(X: Any) -> np.ndarray:
    x = X.toarray().astype(np.float64)
    return np.log1p(1e4 * x / np.maximum(x.sum(axis=1, keepdims=True), 1e-12))


def tf_idf_svm(X: Any, y: np.ndarray, scoring: str) -> Any:
    """Fit LIBLINEAR on tf-idf with logarithms of counts; five folds choose its C."""
    pipeline = make_pipeline(TfidfTransformer(sublinear_tf=True), LinearSVC(random_state=0))
    grid = {"linearsvc__C": [0.03, 0.1, 0.3, 1, 3, 10]}
    return GridSearchCV(pipeline, grid, scoring=scoring, cv=_splitter(y, scoring)).fit(X, y)


def tanimoto(A: Any, B: Any) -> np.ndarray:
    """Return sum min / sum max of rows of counts."""
    from chimap.kernels import MinMax

    return np.asarray(MinMax()(sp.csr_matrix(A), sp.csr_matrix(B)))


class TanimotoMachine:
    """A support vector machine on Tanimoto similarities; five folds choose its C."""

    def __init__(self, X: Any, y: np.ndarray, scoring: str):
        machine = SVR(kernel="precomputed") if scoring == "r2" else SVC(kernel="precomputed")
        self.X = X
        search = GridSearchCV(machine, {"C": [0.1, 1, 10, 100]}, scoring=scoring, cv=_splitter(y, scoring))
        self.machine = search.fit(tanimoto(X, X), y)

    def decision_function(self, X: Any) -> np.ndarray:
        return np.asarray(self.machine.decision_function(tanimoto(X, self.X)))

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(self.machine.predict(tanimoto(X, self.X)))


class CellTypist:
    """CellTypist with its usual settings; 1.7 needs scikit-learn before 1.8."""

    def __init__(self, X: Any, y: np.ndarray, scoring: str):
        import celltypist

        self.names = [f"gene {i}" for i in range(X.shape[1])]
        self.model = celltypist.train(log_cp10k(X), labels=y.astype(str), genes=self.names)

    def predict(self, X: Any) -> np.ndarray:
        import celltypist
        from anndata import AnnData

        cells = AnnData(log_cp10k(X))
        cells.var_names = self.names
        found = celltypist.annotate(cells, model=self.model).predicted_labels["predicted_labels"]
        return found.to_numpy().astype(int)


RIVALS: dict[str, Callable[[Any, np.ndarray, str], Any]] = {
    "forest": forest,
    "lightgbm": lightgbm,
    "clr + logistic": logistic(clr),
    "presence + logistic": logistic(presence),
    "tf-idf + svm": tf_idf_svm,
    "log-cp10k + logistic": logistic(log_cp10k),
    "tanimoto svm": TanimotoMachine,
    "celltypist": CellTypist,
}
MICROBES = ("forest", "lightgbm", "clr + logistic", "presence + logistic")
RIVALS_OF = {
    "microbes, DeepMicro": MICROBES,
    "microbes, MLRepo": MICROBES,
    "text": ("tf-idf + svm",),
    "peptides": ("forest", "lightgbm", "tanimoto svm"),
    "molecules": ("forest", "lightgbm", "tanimoto svm"),
    "cells": ("forest", "lightgbm", "log-cp10k + logistic", "celltypist"),
}


class EachTask:
    """A model for every task, fitted on the rows whose label is known."""

    def __init__(self, fit: Callable[[Any, np.ndarray, str], Any], X: Any, Y: np.ndarray, scoring: str):
        known = [~np.isnan(y) for y in Y.T]
        self.models = [fit(X[rows], y[rows].astype(int), scoring) for rows, y in zip(known, Y.T, strict=True)]

    def decision_function(self, X: Any) -> np.ndarray:
        return np.column_stack([_scores(model, X) for model in self.models])


def _scores(model: Any, X: Any) -> np.ndarray:
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X))
    return np.asarray(model.predict_proba(X))[:, 1]


def fitted(method: str, table: Table, train: np.ndarray) -> Any:
    """Return a model of a method, fitted on some rows of a table."""
    X, y = table.X[train], table.y[train]
    if method != "chimap":
        fit = RIVALS[method]
        return fit(X, y, table.scoring) if y.ndim == 1 else EachTask(fit, X, y, table.scoring)
    from chimap import HistogramClassifier, HistogramRegressor

    model = HistogramRegressor(random_state=0) if table.scoring == "r2" else HistogramClassifier(random_state=0)
    return model.fit(X, y) if table.groups is None else model.fit(X, y, groups=table.groups[train])


def score_of(model: Any, table: Table, test: np.ndarray) -> float:
    """Return the test score of a fitted model."""
    X, y = table.X[test], table.y[test]
    if table.scoring == "r2":
        return float(r2_score(y, model.predict(X)))
    if table.scoring == "accuracy":
        return float(accuracy_score(y, model.predict(X)))
    scores = _scores(model, X).reshape(test.sum(), -1)
    columns = y.reshape(test.sum(), -1).T
    areas = []
    for labels, task in zip(columns, scores.T, strict=True):
        known = ~np.isnan(labels)
        if np.unique(labels[known]).size == 2:
            areas.append(roc_auc_score(labels[known], task[known]))
    return float(np.mean(areas))


def measure(table: Table, split: int, method: str) -> dict[str, Any]:
    """Fit once; return the test score, the seconds, and for chimap what it chose and what it promised."""
    test, began = table.tests[split], time.perf_counter()
    model = fitted(method, table, ~test)
    seconds = time.perf_counter() - began
    line = {
        "table": table.name,
        "field": table.field,
        "split": split,
        "method": method,
        "scoring": table.scoring,
        "rows": int((~test).sum()),
        "score": round(score_of(model, table, test), 5),
        "seconds": round(seconds, 2),
    }
    if method == "chimap":
        winner = model.race_.trials[0]
        line |= {"chosen": winner.candidate.name, "promised": round(float(winner.score), 4)}
    return line


def means(lines: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table: for each field, the mean score of each method over tables and splits, and its difference.

    Scores of a table are averaged over its splits, then over tables. Below each rival's score stands what chimap has
    more, in points, with the standard error over tables where there are several, else over splits.
    """
    rows = ["| field | tables | method | score | chimap has more |", "|---" * 5 + "|"]
    for field in dict.fromkeys(line["field"] for line in lines):
        of_field = [line for line in lines if line["field"] == field]
        scores = {m: _by_table(of_field, m, "score") for m in dict.fromkeys(line["method"] for line in of_field)}
        for method, by_table in scores.items():
            shared = [name for name in by_table if name in scores.get("chimap", {})]
            mean = np.mean([np.mean(list(each.values())) for each in by_table.values()])
            more = (
                ""
                if method == "chimap" or not shared
                else gain([scores["chimap"][name] for name in shared], [by_table[name] for name in shared])
            )
            rows.append(f"| {field} | {len(by_table)} | {method} | {mean:.4f} | {more} |")
    return "\n".join(rows)


PAGES = {
    "microbes": ("microbes, DeepMicro", "microbes, MLRepo"),
    "cells": ("cells",),
    "molecules": ("molecules", "peptides"),
    "text": ("text",),
}
"""Fields of the guide of each name."""


def draw(lines: Sequence[dict[str, Any]], path: Path) -> None:
    """Write a picture with a line for each table: the mean score of each method, and its standard error over splits."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.style.use(STYLE)
    tables = list(dict.fromkeys(line["table"] for line in lines))
    methods = list(dict.fromkeys(line["method"] for line in lines))
    figure, axes = plt.subplots(figsize=(8, 1.6 + 0.34 * len(tables)), layout="constrained")
    colours = dict(zip(methods, ["tab:red", *(f"C{i}" for i in (0, 2, 1, 4, 5))], strict=False))
    for shift, method in zip(np.linspace(0.2, -0.2, len(methods)), methods, strict=True):
        by_table = _by_table(lines, method, "score")
        places = [i for i, name in enumerate(tables) if name in by_table]
        values = [list(by_table[tables[i]].values()) for i in places]
        means = [np.mean(v) for v in values]
        errors = [np.std(v, ddof=1) / np.sqrt(len(v)) if len(v) > 1 else 0.0 for v in values]
        axes.errorbar(
            means,
            np.array(places) + shift,
            xerr=errors,
            fmt="o" if method == "chimap" else "s",
            label=method,
            color=colours[method],
            markersize=7 if method == "chimap" else 4,
            linewidth=1,
        )
    axes.set_yticks(range(len(tables)), tables)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    measures = {"roc_auc": "ROC AUC", "accuracy": "accuracy", "r2": "R²"}
    axes.set_xlabel(" or ".join(measures[each] for each in dict.fromkeys(line["scoring"] for line in lines)))
    figure.legend(loc="outside upper center", ncols=len(methods), frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _by_table(lines: Sequence[dict[str, Any]], method: str, key: str) -> dict[str, dict[int, float]]:
    """Return the numbers of a method by table and split."""
    found: dict[str, dict[int, float]] = {}
    for line in lines:
        if line["method"] == method:
            found.setdefault(line["table"], {})[line["split"]] = line[key]
    return found


def gain(ours: Sequence[dict[int, float]], theirs: Sequence[dict[int, float]]) -> str:
    """Return the mean paired difference in points, and its standard error."""
    differences = [
        [100 * (one[split] - other[split]) for split in one if split in other]
        for one, other in zip(ours, theirs, strict=True)
    ]
    each = [float(np.mean(of_table)) for of_table in differences if of_table]
    units = each if len(each) > 1 else differences[0]
    error = f" ± {np.std(units, ddof=1) / np.sqrt(len(units)):.1f}" if len(units) > 1 else ""
    return f"{np.mean(each):+.1f}{error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default="", help="names of tables, or how they begin; all if empty")
    parser.add_argument("--methods", default="", help="chimap and rivals; each field's own if empty")
    parser.add_argument("--splits", type=int, default=100, help="at most so many splits of a table")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where lines are kept, and found again")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--figures", type=Path, help="folder of the pictures; measures nothing")
    options = parser.parse_args()
    lines = [json.loads(text) for text in options.results.read_text().splitlines()] if options.results.exists() else []
    done = {(line["table"], line["split"], line["method"]) for line in lines}
    names = sorted(path.stem for path in data_file("domains/README.md").parent.glob("*.npz"))
    chosen = [n for n in names if not options.tables or any(n.startswith(t) for t in options.tables.split(","))]
    for name in [] if options.report or options.figures else chosen:
        table = Table.read(name)
        methods = options.methods.split(",") if options.methods else ["chimap", *RIVALS_OF[table.field]]
        for method in methods:
            for split in range(min(options.splits, len(table.tests))):
                if (name, split, method) in done:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    lines.append(measure(table, split, method))
                print(json.dumps(lines[-1]), flush=True)
                with options.results.open("a") as out:
                    out.write(json.dumps(lines[-1]) + "\n")
    print(means([line for line in lines if line["table"] in chosen]))
    for page, fields in PAGES.items() if options.figures else ():
        draw([line for line in lines if line["field"] in fields], options.figures / f"fields_{page}.png")


if __name__ == "__main__":
    main()
