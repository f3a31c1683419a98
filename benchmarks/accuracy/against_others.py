"""Do the default settings win? chimap without settings, against what users would use instead.

The benchmark compares scores, seconds and memory. Official splits, at most 10 000 training rows, all test rows. Boosting
goes on until rows that are held out gain nothing for fifty rounds; other rivals have their strength tuned on a fifth of
the rows. Each fit runs in its own process.

python -m benchmarks.accuracy.against_others                             # all sets and methods, three seeds: hours
python -m benchmarks.accuracy.against_others --sets newsgroups,hmp --methods "chimap,linear-svm sqrt" --seeds 1
python -m benchmarks.accuracy.against_others --draw                      # no fits: docs/assets/accuracy.png, README's table
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, Normalizer
from sklearn.svm import LinearSVC

from benchmarks.accuracy import STYLE
from benchmarks.sets import SETS, LabelledSet

TOP = Path(__file__).resolve().parents[2]
RESULTS = TOP / "benchmarks" / "results" / "against_others.jsonl"
README, PICTURE = TOP / "README.md", TOP / "docs" / "assets" / "accuracy.png"
SVC_ROWS = 5_000  # rows that the exact machine of LIBSVM can fit in about a minute
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
MOST_ROUNDS = 10**6  # of boosting, which no fit reaches: each ends when held-out rows stop gaining
PATIENCE = 50  # rounds without a gain after which boosting ends
BEGIN, END = "<!-- scores -->", "<!-- end of scores -->"  # markers around the table of the README
NAMES = {
    "mnist": "MNIST, pixels",
    "fashion_mnist": "Fashion-MNIST, pixels",
    "cifar words": "CIFAR-10, visual words",
    "caltech words": "Caltech-101, visual words",
    "newsgroups": "20 newsgroups, words",
    "hmp": "body sites, microbes",
    "hiv": "HIV, molecules (ROC AUC)",
    "moses logP": "logP, molecules (R²)",
}
MEASURES = {"accuracy": "accuracy", "roc_auc": "ROC AUC", "r2": "R²"}
SECONDS = (0.03, 1000.0)  # range of seconds in every panel, so that panels can be compared
# The methods shown. The linear SVM is the best of three: raw rows, rows divided by their sums, and square roots.
SHOWN = {
    "chimap": ("chimap", "o", "tab:red"),
    "linear-svm": ("linear SVM", "s", "tab:blue"),
    "lightgbm": ("LightGBM", "^", "tab:green"),
    "random-forest": ("random forest", "v", "tab:olive"),
    "exact-svm": ("exact SVM", "D", "tab:purple"),
}


def rows_as(kind: str) -> Any:
    """Return raw rows divided by their largest value, or rows in another form.

    The division changes no score of a tuned C, but lets LIBLINEAR converge.
    """
    if kind == "raw":
        return MaxAbsScaler()
    if kind == "l1":
        return make_pipeline(Normalizer("l1"), MaxAbsScaler())
    return make_pipeline(Normalizer("l1"), FunctionTransformer(np.sqrt, accept_sparse=True))


def tuned(models: list[Any], data: LabelledSet, seed: int) -> Any:
    """Return the model that scores best on a held-out fifth of the rows, fitted on all rows."""
    stratify = data.y if data.scoring != "r2" else None
    X, X_held, y, y_held = train_test_split(data.X, data.y, test_size=0.2, random_state=seed, stratify=stratify)
    scorer = get_scorer(data.scoring)
    scores = [scorer(clone(model).fit(X, y), X_held, y_held) for model in models]
    return models[int(np.argmax(scores))].fit(data.X, data.y)


def linear(kind: str, make: Callable[[float], Any]) -> Callable[[LabelledSet, int], Any]:
    """Return a linear model with tuned C; ridge if there are no classes."""

    def fit(data: LabelledSet, seed: int) -> Any:
        models = [Ridge(1 / c) if data.scoring == "r2" else make(c) for c in COSTS]
        return tuned([make_pipeline(rows_as(kind), model) for model in models], data, seed)

    return fit


def chi2_sampler(data: LabelledSet, seed: int) -> Any:
    models = [Ridge(1 / c) if data.scoring == "r2" else LinearSVC(C=c, random_state=seed) for c in COSTS]
    return tuned(
        [make_pipeline(rows_as("l1"), AdditiveChi2Sampler(sample_steps=2), model) for model in models], data, seed
    )


def forest(data: LabelledSet, seed: int) -> Any:
    make = RandomForestRegressor if data.scoring == "r2" else RandomForestClassifier
    return make(500, n_jobs=-1, random_state=seed).fit(data.X, data.y)


def hist_boosting(data: LabelledSet, seed: int) -> Any:
    make = HistGradientBoostingRegressor if data.scoring == "r2" else HistGradientBoostingClassifier
    dense = FunctionTransformer(lambda X: X.toarray() if hasattr(X, "toarray") else X, accept_sparse=True)
    model = make(early_stopping=True, max_iter=MOST_ROUNDS, n_iter_no_change=PATIENCE, random_state=seed)
    return make_pipeline(dense, model).fit(data.X, data.y)


def lightgbm(data: LabelledSet, seed: int) -> Any:
    import lightgbm as lgb

    stratify = data.y if data.scoring != "r2" else None
    X, X_held, y, y_held = train_test_split(data.X, data.y, test_size=0.1, random_state=seed, stratify=stratify)
    make = lgb.LGBMRegressor if data.scoring == "r2" else lgb.LGBMClassifier
    model = make(n_estimators=MOST_ROUNDS, learning_rate=0.1, random_state=seed, verbose=-1)
    return model.fit(X, y, eval_set=[(X_held, y_held)], callbacks=[lgb.early_stopping(PATIENCE, verbose=False)])


def catboost(data: LabelledSet, seed: int) -> Any:
    from catboost import CatBoostClassifier, CatBoostRegressor

    stratify = data.y if data.scoring != "r2" else None
    X, X_held, y, y_held = train_test_split(data.X, data.y, test_size=0.1, random_state=seed, stratify=stratify)
    make = CatBoostRegressor if data.scoring == "r2" else CatBoostClassifier
    model = make(
        iterations=MOST_ROUNDS,
        random_seed=seed,
        early_stopping_rounds=PATIENCE,
        verbose=False,
        allow_writing_files=False,
    )
    return model.fit(X, y, eval_set=(X_held, y_held))


def boosted_bins(data: LabelledSet, seed: int) -> Any:
    """Fit the explainable boosting machine of the package interpret, which takes dense rows."""
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    make = ExplainableBoostingRegressor if data.scoring == "r2" else ExplainableBoostingClassifier
    dense = FunctionTransformer(lambda X: X.toarray() if hasattr(X, "toarray") else X, accept_sparse=True)
    return make_pipeline(dense, make(random_state=seed)).fit(data.X, data.y)


def tf_idf_svm(data: LabelledSet, seed: int) -> Any:
    """Fit LIBLINEAR on tf-idf with logarithms of counts, as is usual for words."""
    models = [make_pipeline(TfidfTransformer(sublinear_tf=True), LinearSVC(C=c, random_state=seed)) for c in COSTS]
    return tuned(models, data, seed)


def xrfm(data: LabelledSet, seed: int) -> Any:
    from xrfm import xRFM

    X = data.X.toarray() if hasattr(data.X, "toarray") else data.X
    stratify = data.y if data.scoring != "r2" else None
    parts = train_test_split(X, data.y, test_size=0.2, random_state=seed, stratify=stratify)
    X, X_held, y, y_held = parts
    return xRFM(tuning_metric="mse" if data.scoring == "r2" else "accuracy").fit(X, y, X_held, y_held)


def exact_svm(data: LabelledSet, seed: int) -> Any:
    """Fit LIBSVM on the exponential chi-square kernel, with gamma = 1 / mean distance and C chosen by three folds.

    It gets as many rows as it can hold.
    """
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    from chimap import Exponential, chi2

    some = data.some(SVC_ROWS, seed)
    kernel = Exponential("chi2", float(1 / chi2.distance(some.X[:2000]).mean()))
    return GridSearchCV(SVC(kernel=kernel), {"C": [1.0, 10.0, 100.0]}, cv=3).fit(some.X, some.y)


def chimap(**settings: Any) -> Callable[[LabelledSet, int], Any]:
    """Return chimap, with these settings and no others."""

    def fit(data: LabelledSet, seed: int) -> Any:
        from chimap import HistogramClassifier, HistogramRegressor

        make = HistogramRegressor if data.scoring == "r2" else HistogramClassifier
        return make(**settings, random_state=seed).fit(data.X, data.y, groups=data.groups)

    return fit


METHODS: dict[str, Callable[[LabelledSet, int], Any]] = {
    "chimap": chimap(),
    "8000 landmarks": chimap(features="landmarks", n_components=8000, memory="2GiB"),
    **{f"linear-svm {kind}": linear(kind, lambda c: LinearSVC(C=c)) for kind in ("raw", "l1", "sqrt")},
    **{f"logistic {kind}": linear(kind, lambda c: LogisticRegression(C=c, max_iter=1000)) for kind in ("raw", "sqrt")},
    "chi2-sampler + svm": chi2_sampler,
    "random-forest": forest,
    "hist-boosting": hist_boosting,
    "lightgbm": lightgbm,
    "tf-idf + svm": tf_idf_svm,
    "xrfm": xrfm,
    "ebm": boosted_bins,
    "catboost": catboost,
    "exact-svm": exact_svm,
}


def measure(set_name: str, method: str, n_rows: int, seed: int) -> dict[str, Any]:
    """Run one fit and return its test score, seconds and peak memory beyond the data."""
    warnings.filterwarnings("ignore")
    data = SETS[set_name]().some(n_rows, seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, processor_began = time.perf_counter(), time.process_time()
    model = METHODS[method](data, seed)
    fitted, processor_fitted = time.perf_counter(), time.process_time()
    scorer = get_scorer(data.scoring)
    score = scorer(model, data.X_test, data.y_test)
    done = time.perf_counter()
    return {
        "set": set_name,
        "method": method,
        "seed": seed,
        "rows": int(data.X.shape[0]),
        "scoring": data.scoring,
        "score": round(float(score), 4),
        "fit_seconds": round(fitted - began, 2),
        "processor_seconds": round(
            processor_fitted - processor_began, 2
        ),  # of all threads: other work on the machine adds less to them
        "predict_seconds": round(done - fitted, 2),
        "mib": round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024),
        "classifier": bool(is_classifier(model)),
        "chosen": getattr(getattr(model, "race_", None), "winner", None) and model.race_.winner.name,
        "rounds": getattr(model, "best_iteration_", None),
    }


def in_a_process(arguments: list[str], limit: float) -> dict[str, Any] | None:
    """Run one fit in its own process and return the last line it prints; None if it fails or takes too long."""
    command = [sys.executable, "-m", "benchmarks.accuracy.against_others", "--one", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        print(f"{' '.join(arguments)}: longer than {limit:.0f} s", flush=True)
        return None
    if done.returncode:
        print(f"{' '.join(arguments)}: {done.stderr.strip().splitlines()[-1:]}", flush=True)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def table(lines: list[dict[str, Any]]) -> str:
    """Return a Markdown table of the mean score (deviation) and seconds of each method on each set, best score in bold."""
    sets = list(dict.fromkeys(line["set"] for line in lines))
    methods = [m for m in METHODS if any(line["method"] == m for line in lines)]
    rows = [f"| set | {' | '.join(methods)} |", "|---" * (len(methods) + 1) + "|"]
    for name in sets:
        cells, means = [], {}
        for method in methods:
            of = [line for line in lines if (line["set"], line["method"]) == (name, method)]
            if of:
                means[method] = float(np.mean([line["score"] for line in of]))
        for method in methods:
            of = [line for line in lines if (line["set"], line["method"]) == (name, method)]
            if not of:
                cells.append("-")
                continue
            spread = f" ±{np.std([line['score'] for line in of], ddof=1):.4f}" if len(of) > 1 else ""
            score = f"{means[method]:.4f}"
            score = f"**{score}**" if means[method] == max(means.values()) else score
            cells.append(f"{score}{spread}, {np.mean([line['fit_seconds'] for line in of]):.0f} s")
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def kept_lines(path: Path = RESULTS) -> list[dict]:
    """Return the kept lines, one per fit."""
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]


def points(lines: list[dict]) -> dict[str, tuple[float, float]]:
    """Return seconds and score of each shown method on one data set, as means over the seeds."""
    by_method = defaultdict(list)
    for line in lines:
        by_method[line["method"]].append((line["fit_seconds"], line["score"]))
    means = {method: tuple(np.mean(values, axis=0)) for method, values in by_method.items()}
    best = {}
    for method, (seconds, score) in means.items():
        family = "linear-svm" if method.startswith("linear-svm") else method
        if family in SHOWN and (family not in best or score > best[family][1]):
            best[family] = (max(seconds, 0.01), score)
    return best


def readme_table(lines: list[dict]) -> str:
    """Return score and seconds of the shown methods by data set, in Markdown, with the best score in bold."""
    by_set = {name: points([line for line in lines if line["set"] == name]) for name in NAMES}
    shown = [method for method in SHOWN if any(method in of for of in by_set.values())]
    rows = [["data set", *(SHOWN[method][0] for method in shown)], ["---"] * (len(shown) + 1)]
    for name, of in by_set.items():
        scores = {method: f"{score:.3f}" for method, (_, score) in of.items()}
        best = max(scores.values()) if len(scores) > 1 else None
        cells = []
        for method in shown:
            if method not in of:
                cells.append("-")
                continue
            seconds = of[method][0]
            score = f"**{scores[method]}**" if scores[method] == best else scores[method]
            cells.append(f"{score}, {seconds:.{0 if seconds >= 1 else 1}f} s")
        rows.append([NAMES[name], *cells])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def with_table(readme: str, lines: list[dict]) -> str:
    """Return the README with the table of these lines."""
    before, _, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, f"README.md has no table between {BEGIN} and {END}"
    return f"{before}{BEGIN}\n{readme_table(lines)}{END}{after}"


@contextmanager
def panels(names: list[str], columns: int, size: tuple[float, float], output: Path) -> Iterator[dict[str, Any]]:
    """Yield axes by name, in rows of panels, then add one legend for all of them and save the picture."""
    columns = min(columns, len(names))
    n_rows = -(-len(names) // columns)
    size = (size[0] * columns + 0.4, size[1] * n_rows + 0.8)
    plt.style.use(STYLE)
    figure, axes = plt.subplots(n_rows, columns, figsize=size, layout="constrained", squeeze=False)
    for ax in axes.flat[len(names) :]:
        ax.axis("off")
    yield dict(zip(names, axes.flat, strict=False))
    for ax in axes.flat[: len(names)]:
        ax.grid(alpha=0.3)
    handles = {label: h for ax in axes.flat for h, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), frameon=False)
    for ax in axes[:-1].flat:
        ax.set_xlabel("")
    figure.savefig(output, dpi=130)
    plt.close(figure)


def draw(lines: list[dict], output: Path) -> None:
    """Draw one panel per data set."""
    sets = [name for name in NAMES if any(line["set"] == name for line in lines)]
    with panels(sets, 4, (3.1, 2.5), output) as axes:
        for name, ax in axes.items():
            of = [line for line in lines if line["set"] == name]
            for method, (seconds, score) in points(of).items():
                label, marker, colour = SHOWN[method]
                ax.plot(seconds, score, marker, color=colour, label=label, markersize=8)
            title = f"{NAMES[name].partition(',')[0]}, {of[0]['rows']} rows"
            ax.set(title=title, xscale="log", xlim=SECONDS, ylabel=MEASURES[of[0]["scoring"]])
            ax.set_xlabel("seconds of the fit")
            ax.margins(0.15)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs=4, metavar=("SET", "METHOD", "ROWS", "SEED"), help=argparse.SUPPRESS)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=1800, help="time limit of one fit, in seconds")
    parser.add_argument("--keep", action="store_true", help=f"add the lines to {RESULTS.name}")
    parser.add_argument("--draw", action="store_true", help="only draw the kept lines, and write the README's table")
    options = parser.parse_args()
    if options.draw:
        kept = kept_lines()
        draw(kept, PICTURE)
        README.write_text(with_table(README.read_text(encoding="utf-8"), kept), encoding="utf-8")
        return
    if options.one:
        name, method, rows, seed = options.one
        print(json.dumps(measure(name, method, int(rows), int(seed))))
        return
    for given, known in ((options.sets, SETS), (options.methods, METHODS)):
        if unknown := [name for name in given.split(",") if name not in known]:
            parser.error(f"{unknown[0]!r} is none of {', '.join(known)}")
    lines = []
    for name in options.sets.split(","):
        for method in options.methods.split(","):
            for seed in range(options.seeds):
                line = in_a_process([name, method, str(options.rows), str(seed)], options.limit)
                if line is not None:
                    lines.append(line)
                    print(json.dumps(line), flush=True)
    print(table(lines))
    if options.keep:
        kept = kept_lines() if RESULTS.exists() else []
        fresh = {(line["set"], line["method"], line["seed"]) for line in lines}
        kept = [line for line in kept if (line["set"], line["method"], line["seed"]) not in fresh]
        RESULTS.write_text("".join(json.dumps(line) + "\n" for line in kept + lines))


if __name__ == "__main__":
    main()
