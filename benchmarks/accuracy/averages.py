"""Would several machines of a race do better than its winner? Means of their outputs, and sums of their kernels.

On few rows, a race compares some two dozen machines, many of which score alike. The benchmark fits the best of them
with the strength and gamma that the race found, on the tables and splits of ``benchmarks.accuracy.fields``, and prints
what each field gains over the winner: by the mean of the outputs of the winner and the next two by score; by one
machine of the sum of the winner's kernel and the next one, or two, on the same rows, whose strength left-out rows
choose; and by the machine of the best score, where the race prefers another that is as good within the error.

python -m benchmarks.accuracy.averages                               # all tables of fewer than 2000 rows, every split
python -m benchmarks.accuracy.averages --tables deepmicro,cell --splits 2
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from benchmarks.accuracy.fields import Table, gain, score_of
from benchmarks.measure import data_file
from chimap import HistogramClassifier, HistogramRegressor
from chimap.kernels import Kernel, as_kernel
from chimap.race import Trial
from chimap.race.rows import FEW

MEMBERS = 3  # machines whose outputs are averaged
SUMS = {"sum of two kernels": 2, "sum of three kernels": 3}
WAYS = ("mean of three", *SUMS, "best score")


@dataclass(frozen=True)
class Mean:
    """Machines whose outputs are averaged."""

    models: Sequence[Any]

    def decision_function(self, X: Any) -> np.ndarray:
        return np.mean([model.decision_function(X) for model in self.models], axis=0)

    def predict(self, X: Any) -> np.ndarray:
        if not hasattr(self.models[0], "classes_"):
            return np.mean([model.predict(X) for model in self.models], axis=0)
        return self.models[0].classes_[self.decision_function(X).argmax(axis=1)]


def ranked(model: Any) -> list[Trial]:
    """Return the machines of the race: its winner, then the others by score; none with learned weights of bins."""
    equal = [t for t in model.race_.trials if not t.error and "bin_weights" not in t.candidate.settings]
    winner = model.race_.winner.name.removesuffix(", learned bins")
    return sorted(equal, key=lambda t: (t.candidate.name != winner, -t.score))


def kernel_of(trial: Trial) -> Kernel:
    """Return the kernel of a trial at the gamma that it chose."""
    return as_kernel(trial.candidate.settings["kernel"], trial.learned.get("gamma"))


def compared(table: Table, split: int) -> dict[str, float]:
    """Return the test score of the winner and of each way, by name."""
    test = table.tests[split]
    X, y = table.X[~test], table.y[~test]
    groups = {} if table.groups is None else {"groups": table.groups[~test]}
    make = HistogramRegressor if table.scoring == "r2" else HistogramClassifier
    trials = ranked(make(random_state=0).fit(X, y, **groups))

    def alone(trial: Trial) -> Any:
        settings = trial.candidate.settings | {"kernel": kernel_of(trial), "gamma": "mean"}
        return make(**settings, alpha=trial.learned["alpha"], random_state=0).fit(X, y, **groups)

    def summed(kernels: Sequence[Kernel]) -> Any:  # a list of normalisations has a race, which chooses the strength
        return make(reduce(add, kernels), normalize=[rows], random_state=0).fit(X, y, **groups)

    winner, rows = trials[0], trials[0].candidate.settings["normalize"]
    # Kernels of which every row has the value 1 with itself need no weights in a sum.
    of_ones = ("exp-", "gaussian", "minmax")
    alike = [
        kernel_of(trial)
        for trial in trials
        if trial.candidate.settings["normalize"] == rows and trial.candidate.settings["kernel"].startswith(of_ones)
    ]
    models = {"winner": alone(winner), "mean of three": Mean([alone(trial) for trial in trials[:MEMBERS]])}
    if winner.candidate.settings["kernel"].startswith(of_ones):
        for way, size in SUMS.items():
            if len(alike) >= size:
                models[way] = summed(alike[:size])
    models["best score"] = alone(max(trials, key=lambda trial: trial.score))
    return {way: score_of(model, table, test) for way, model in models.items()}


def report(found: dict[str, dict[str, dict[int, dict[str, float]]]]) -> str:
    """Return a Markdown table of the points that each way gains over the winner, by field."""
    rows = [f"| field | tables | {' | '.join(WAYS)} |", "|---" * (len(WAYS) + 2) + "|"]
    for field, tables in found.items():
        cells = []
        for way in WAYS:
            pairs = [
                [{split: scores[name] for split, scores in of.items() if way in scores} for name in (way, "winner")]
                for of in tables.values()
            ]
            pairs = [pair for pair in pairs if pair[0]]
            cells.append(gain([ours for ours, _ in pairs], [theirs for _, theirs in pairs]) if pairs else "")
        rows.append(f"| {field} | {len(tables)} | {' | '.join(cells)} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default="", help="names of tables, or how they begin; all if empty")
    parser.add_argument("--splits", type=int, default=100, help="at most so many splits of a table")
    options = parser.parse_args()
    found: dict[str, dict[str, dict[int, dict[str, float]]]] = {}
    for path in sorted(data_file("domains/README.md").parent.glob("*.npz")):
        if options.tables and not any(path.stem.startswith(name) for name in options.tables.split(",")):
            continue
        table = Table.read(path.stem)
        for split, test in enumerate(table.tests[: options.splits]):
            if (~test).sum() < FEW:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    scores = compared(table, split)
                found.setdefault(table.field, {}).setdefault(table.name, {})[split] = scores
                print(json.dumps({"table": table.name, "split": split} | scores), flush=True)
    print(report(found))


if __name__ == "__main__":
    main()
