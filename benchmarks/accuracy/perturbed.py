"""Do answers about microbes hold where the rows to answer are not quite like those learned from?

Models are fitted on the training rows as they are, and scored on test rows that are perturbed in one of four ways. A
tenth of the taxa, those that tell the classes of the training rows apart best one by one, are protected: they keep
their share of the row relative to each other. Of the others

    more zeros      a half of the entries above zero, at random, become zero
    fewer zeros     a tenth of the zeros, at random, get a value that the taxon has in a training row
    dropped taxa    the tenth of the taxa with the largest mean share in training rows become zero
    sharper shares  every share is raised to the power 3/2, that of protected taxa too, as amplification does

and shares add up to what they did before, as they do where less was found of everything else; counts stay as they are.
The protocol is that of Perciballi et al., Are tabular foundation models robust to realistic query distribution shifts
in microbiome data? (arXiv 2606.24995, 2026); how much is changed, and which taxa are protected, is our choice.

Every method sees the same perturbed rows. Scores are ROC AUC, as means over the splits of a table, then over tables;
below each rival's stands what chimap has more, in points, with the standard error over tables.

python -m benchmarks.accuracy.perturbed                                # ten tables, five splits: a quarter of an hour
python -m benchmarks.accuracy.perturbed --tables deepmicro --splits 2
python -m benchmarks.accuracy.perturbed --methods "minmax log-cpm,minmax log-z"   # single machines: two minutes
python -m benchmarks.accuracy.perturbed --report                       # only the table of what has been measured
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata

from benchmarks.accuracy.fields import RIVALS, Table, fitted, gain, score_of
from benchmarks.measure import data_file
from chimap import HistogramClassifier

RESULTS = Path(__file__).resolve().parents[1] / "results" / "perturbed.jsonl"
METHODS = ("chimap", "forest", "clr + logistic")
MACHINES = {f"minmax {name}": {"normalize": name} for name in ("log-cpm", "log-z")}
PROTECTED, ZEROED, FILLED, DROPPED = 0.1, 0.5, 0.1, 0.1
POWER = 1.5
_OF_SHARES = "deepmicro"  # tables of shares; the others hold counts

Line = dict[str, Any]


def protected(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return which taxa tell two classes of training rows apart best, (taxa,): by the area under their ROC curve."""
    ranks = rankdata(X, axis=0)
    second = y == y.max()
    n, m = second.sum(), (~second).sum()
    areas = (ranks[second].sum(axis=0) - n * (n + 1) / 2) / (n * m)
    chosen = np.zeros(X.shape[1], dtype=bool)
    chosen[np.argsort(-np.abs(areas - 0.5), kind="stable")[: int(PROTECTED * X.shape[1])]] = True
    return chosen


def more_zeros(X: np.ndarray, train: np.ndarray, kept: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where((rng.random(X.shape) < ZEROED) & ~kept, 0, X)


def fewer_zeros(X: np.ndarray, train: np.ndarray, kept: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return rows with values that the taxa have elsewhere; a taxon that no training row has stays empty."""
    out = X.copy()
    for taxon in np.flatnonzero(~kept):
        values = train[train[:, taxon] > 0, taxon]
        filled = (X[:, taxon] == 0) & (rng.random(X.shape[0]) < FILLED)
        if values.size:
            out[filled, taxon] = rng.choice(values, filled.sum())
    return out


def dropped_taxa(X: np.ndarray, train: np.ndarray, kept: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    shares = train / np.maximum(train.sum(axis=1, keepdims=True), 1e-12)
    order = np.argsort(-np.where(kept, -1.0, shares.mean(axis=0)), kind="stable")
    out = X.copy()
    out[:, order[: int(DROPPED * X.shape[1])]] = 0
    return out


def sharper_shares(X: np.ndarray, train: np.ndarray, kept: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    sums = X.sum(axis=1, keepdims=True)
    powers = (X / np.maximum(sums, 1e-12)) ** POWER
    return np.asarray(powers * sums / np.maximum(powers.sum(axis=1, keepdims=True), 1e-300))


WAYS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray, np.random.Generator], np.ndarray]] = {
    "as they are": lambda X, train, kept, rng: X,
    "more zeros": more_zeros,
    "fewer zeros": fewer_zeros,
    "dropped taxa": dropped_taxa,
    "sharper shares": sharper_shares,
}


def perturbed(table: Table, split: int, way: str) -> Table:
    """Return the table with the test rows of a split perturbed; the seed is the split."""
    test = table.tests[split]
    X = table.X.toarray().astype(np.float64)
    kept = protected(X[~test], table.y[~test])
    rows = WAYS[way](X[test], X[~test], kept, np.random.default_rng(split))
    if table.name.startswith(_OF_SHARES):
        sums = rows.sum(axis=1, keepdims=True)
        rows = rows * np.where(sums > 0, X[test].sum(axis=1, keepdims=True) / np.where(sums > 0, sums, 1), 0)
    X[test] = rows
    return replace(table, X=sp.csr_matrix(X.astype(np.float32)))


def measure(table: Table, split: int, method: str) -> Iterator[Line]:
    """Fit once, and yield the score of each way."""
    test = table.tests[split]
    if method in MACHINES:
        model = HistogramClassifier("minmax", features="exact", random_state=0, **MACHINES[method])
        model.fit(table.X[~test], table.y[~test], groups=None if table.groups is None else table.groups[~test])
    else:
        model = fitted(method, table, ~test)
    for way in WAYS:
        score = score_of(model, perturbed(table, split, way), test)
        yield {"table": table.name, "split": split, "method": method, "way": way, "score": round(score, 5)} | (
            {"chosen": model.race_.winner.name} if method == "chimap" else {}
        )


def report(lines: Sequence[Line]) -> str:
    """Return a Markdown table of the scores, and of what chimap has more."""
    head = [f"| method | {' | '.join(WAYS)} |", "|---" + "|--:" * len(WAYS) + "|"]
    by: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    for line in lines:
        by.setdefault((line["method"], line["way"]), {}).setdefault(line["table"], {})[line["split"]] = line["score"]
    for method in dict.fromkeys(line["method"] for line in lines):
        cells = []
        for way in WAYS:
            theirs, ours = by.get((method, way), {}), by.get(("chimap", way), {})
            shared = [name for name in theirs if name in ours]
            if not theirs:
                cells.append("-")
                continue
            mean = np.mean([np.mean(list(of.values())) for of in theirs.values()])
            more = gain([ours[n] for n in shared], [theirs[n] for n in shared]) if shared else "-"
            cells.append(f"{mean:.3f}" + ("" if method == "chimap" else f" ({more})"))
        head.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(head)


def described(lines: Sequence[Line]) -> str:
    """Return the report below a line that says of which tables and splits it is."""
    tables = {line["table"] for line in lines}
    splits = max(line["split"] for line in lines) + 1
    shown = f"{splits} split{'s' if splits > 1 else ''} of {len(tables)} tables"
    return f"On the shared tables of DeepMicro and MLRepo, {shown}; in brackets what chimap has more, in points:\n\n{report(lines)}"


def kept_lines() -> list[Line]:
    return [json.loads(text) for text in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default="deepmicro,mlrepo", help="names of tables, or how they begin")
    parser.add_argument("--methods", default=",".join(METHODS), help=f"chimap, {', '.join([*MACHINES, *RIVALS])}")
    parser.add_argument("--splits", type=int, default=5, help="at most so many splits of a table")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    options = parser.parse_args()
    lines, chosen = kept_lines(), tuple(options.tables.split(","))
    done = {(line["table"], line["split"], line["method"]) for line in lines}
    names = sorted(path.stem for path in data_file("domains/README.md").parent.glob("*.npz"))
    for name in [] if options.report else [name for name in names if name.startswith(chosen)]:
        table = Table.read(name)
        for split in range(min(options.splits, len(table.tests))):
            for method in options.methods.split(","):
                if (name, split, method) in done:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    new = list(measure(table, split, method))
                with RESULTS.open("a") as out:
                    out.write("".join(json.dumps(line) + "\n" for line in new))
                lines += new
                print(json.dumps(new[-1]), flush=True)
    print(report([line for line in lines if line["table"].startswith(chosen)]))


if __name__ == "__main__":
    main()
