"""Are rows of a class that the fit has not seen told from rows of the others?

Each class of a table in turn (every third newsgroup) is left out of the fit, and ``unassigned_at`` ranks the rows of this class against other
rows of the seen classes. For each class the benchmark prints the area under the ROC curve, and, of ``predict(...,
unassigned=.05)``, the shares of unseen and of seen rows that are unassigned; beside it the area under the curve of the
largest probability alone. A race chooses the settings once for each table, on rows of all classes, and every fit takes
them. A line of the results is one class; a run that is stopped goes on where it was.

python -m benchmarks.accuracy.unseen                              # three tables, some twenty minutes on two cores
python -m benchmarks.accuracy.unseen --tables cell_seg
python -m benchmarks.accuracy.unseen --figure docs/assets/unseen.png
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score, roc_curve

from benchmarks.accuracy import STYLE
from benchmarks.measure import csr_of, data_file
from chimap import HistogramClassifier

RESULTS = Path(__file__).resolve().parents[1] / "results" / "unseen.jsonl"
FEWEST = 20  # rows of a class that is left out
MOST = 1500  # rows that are ranked, of the unseen class and of the others
EVERY = {"newsgroups": 3}  # classes are left out one in so many, where a fit takes half a minute
GRID = np.linspace(0, 1, 101)  # shares of seen rows at which curves are kept
SHARE = 0.05
TITLES = {"cell_seg": "cells of the pancreas", "cell_pbmc68k": "cells of the blood", "newsgroups": "20 newsgroups"}


class Table(NamedTuple):
    """Rows, labels, and which rows are learned from."""

    X: sp.csr_matrix
    y: np.ndarray
    is_train: np.ndarray


def cells(name: str) -> Table:
    """Return a table of cells with the first of its splits, and the names of its types."""
    with np.load(data_file(f"domains/{name}.npz")) as z:
        return Table(csr_of(z), z["class_names"].astype(str)[z["y"]], z["is_test"][0] == 0)


def newsgroups() -> Table:
    """Return 20 Newsgroups, of which random six tenths are learned from: its own split is by date."""
    with np.load(data_file("newsgroups20_counts.npz")) as z:
        X, y = csr_of(z), z["y"]
        names = z["target_names"].astype(str)
    return Table(X, names[y], np.random.default_rng(0).random(y.size) < 0.6)


TABLES = {
    "cell_seg": lambda: cells("cell_seg"),
    "cell_pbmc68k": lambda: cells("cell_pbmc68k"),
    "newsgroups": newsgroups,
}


def chosen_settings(table: Table) -> dict[str, Any]:
    """Return what the race chooses on a sample of the rows of all classes."""
    rows = np.flatnonzero(table.is_train)
    rows = np.random.default_rng(0).permutation(rows)[:3000]
    model = HistogramClassifier(random_state=0).fit(table.X[rows], table.y[rows])
    settings: dict[str, Any] = dict(model.chosen_)
    names = ("kernel", "normalize", "features", "loss")
    return {name: settings[name] for name in names if name in settings}


def measured(table: Table, unseen: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of one class that is left out."""
    is_unseen = table.y == unseen
    train = table.is_train & ~is_unseen
    began = time.perf_counter()
    model = HistogramClassifier(random_state=0, **settings).fit(table.X[train], table.y[train])
    seconds = time.perf_counter() - began
    rng = np.random.default_rng(0)
    seen, rows = (
        np.sort(rng.permutation(np.flatnonzero(some))[:MOST]) for some in (~table.is_train & ~is_unseen, is_unseen)
    )
    parts = [table.X[seen], table.X[rows]]
    shares = [model.unassigned_at(part) for part in parts]
    truth = np.repeat([0, 1], [seen.size, rows.size])
    falsely, rightly, _ = roc_curve(truth, -np.concatenate(shares))
    largest = np.concatenate([model.predict_proba(part).max(axis=1) for part in parts])
    right = model.predict(parts[0]) == table.y[seen]
    return {
        "class": unseen,
        "rows": int(rows.size),
        "auc": float(roc_auc_score(truth, -np.concatenate(shares))),
        "auc_probability": float(roc_auc_score(truth, -largest)),
        "seen_unassigned": float(np.mean(shares[0] <= SHARE)),
        "unseen_unassigned": float(np.mean(shares[1] <= SHARE)),
        "accuracy": float(right.mean()),
        "accuracy_assigned": float(right[shares[0] > SHARE].mean()),
        "curve": np.interp(GRID, falsely, rightly).round(4).tolist(),
        "seconds": round(seconds, 1),
    }


def done() -> list[dict[str, Any]]:
    """Return the lines of the results."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.is_file() else []


def report(lines: Sequence[dict[str, Any]]) -> None:
    """Print a line for each class, and the means of each table."""
    head = f"{'table':14} {'class left out':32} {'rows':>5} {'AUC':>6} {'of prob.':>8} {'unseen':>7} {'seen':>6}"
    print(f"{head}   (unassigned at {SHARE:g})")
    for name in TABLES:
        own = [line for line in lines if line["table"] == name and "class" in line]
        for line in own:
            print(
                f"{name:14} {line['class']:32} {line['rows']:5} {line['auc']:6.3f} {line['auc_probability']:8.3f} "
                f"{line['unseen_unassigned']:7.1%} {line['seen_unassigned']:6.1%}"
            )
        if own:
            keys = ("auc", "auc_probability", "unseen_unassigned", "seen_unassigned")
            auc, probability, unseen, seen = (np.mean([line[key] for line in own]) for key in keys)
            print(f"{name:14} {'mean':32} {'':5} {auc:6.3f} {probability:8.3f} {unseen:7.1%} {seen:6.1%}")


def draw(lines: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the curve of each class, and their mean, for each table."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.style.use(STYLE)
    figure, axes = plt.subplots(1, len(TABLES), figsize=(10, 3.8), layout="constrained", sharey=True)
    for axis, name in zip(axes, TABLES, strict=True):
        curves = np.array([line["curve"] for line in lines if line["table"] == name and "class" in line])
        axis.plot(GRID, curves.T, color="0.8", linewidth=0.8)
        auc = np.mean([line["auc"] for line in lines if line["table"] == name and "class" in line])
        axis.plot(GRID, curves.mean(axis=0), color="C0", linewidth=2)
        axis.plot([0, 1], [0, 1], color="0.5", linestyle=":")
        axis.set(title=f"{TITLES[name]}: {auc:.2f}", xlabel="share of seen rows unassigned", xlim=(0, 1), ylim=(0, 1))
    axes[0].set_ylabel("share of the unseen class unassigned")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--figure", type=Path, help="file of the picture; measures nothing")
    parser.add_argument("--report", action="store_true", help="print what has been measured")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.figure:
        draw(done(), options.figure)
        return
    for name in [] if options.report else options.tables.split(","):
        table, before = TABLES[name](), [line for line in done() if line["table"] == name]
        if not before:
            before = [{"table": name, "settings": chosen_settings(table)}]
            _write(before[0])
        labels, sizes = np.unique(table.y, return_counts=True)
        every = slice(None, None, EVERY.get(name, 1))
        for label, n_rows in zip(labels[every], sizes[every], strict=True):
            if n_rows >= FEWEST and all(line.get("class") != label for line in before):
                _write({"table": name} | measured(table, str(label), before[0]["settings"]))
    report(done())


def _write(line: dict[str, Any]) -> None:
    with RESULTS.open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
