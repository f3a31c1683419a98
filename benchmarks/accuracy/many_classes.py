"""How should a race on few rows of many classes choose: by the accuracy of left-out rows, or by their squared error?

Samples of the shared sets with more than two classes. Each way takes a machine and its strength and gamma from the same
left-out rows; the machine is fitted on the sample and scored on the test rows of the set. The table has what each way
gains in points of accuracy over the first, with the standard error over sets.

python -m benchmarks.accuracy.many_classes                               # an hour
python -m benchmarks.accuracy.many_classes --sets mnist,webkb --rows 200,1000 --seeds 1
"""

from __future__ import annotations

import argparse
import json
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.accuracy.fields import Table
from benchmarks.sets import SETS, LabelledSet
from chimap import HistogramClassifier
from chimap.data import ArraySource
from chimap.engines import Progress
from chimap.fit.fit import fit_candidate
from chimap.models.race_result import Candidate
from chimap.race.candidates import kernels_worth_trying
from chimap.race.rounds import ERRORS_TO_DROP_BEFORE_LAST_ROUND, preferred
from chimap.race.runner import Race
from chimap.race.shared import BestSetting
from chimap.race.trials import Outcome
from chimap.recipe import Recipe
from chimap.recipe.task import Task

BEFORE = "accuracy, order of the list"
WAYS = (BEFORE, "accuracy", "error, order of the list", "error, accuracy", "error, near the best accuracy")
FIELDS = {"pbmc68k": "cell_pbmc68k", "webkb": "text_webkb", "ohsumed": "text_ohsumed"}


@dataclass(frozen=True)
class Way:
    """A candidate at the setting that its left-out rows chose."""

    candidate: Candidate
    best: BestSetting
    outcome: Outcome

    def fitted(self, X: Any, y: np.ndarray) -> HistogramClassifier:
        """Return the machine, fitted on all rows."""
        gamma = {} if self.best.gamma is None else {"gamma": self.best.gamma}
        settings = self.candidate.settings | gamma
        return HistogramClassifier(**settings, alpha=self.best.alpha, random_state=0).fit(X, y)


def table_of(name: str) -> LabelledSet:
    """Return the first split of a table of the fields."""
    table = Table.read(name)
    test = table.tests[0]
    return LabelledSet(name, table.X[~test], table.y[~test], table.X[test], table.y[test])


ALL = {name: SETS[name] for name in ("newsgroups", "mnist", "fashion_mnist", "cifar words", "hmp")} | {
    name: partial(table_of, table) for name, table in FIELDS.items()
}


def ways_of(X: Any, y: np.ndarray) -> dict[str, Way]:
    """Return what each way chooses from a sample."""
    recipe = Recipe.of(HistogramClassifier(random_state=0))
    task, source, groups = Task.of(ArraySource(X, y), recipe)
    running = Race.on(recipe, source, task, groups, fit_candidate)
    machines = running.shared
    assert machines is not None
    entered = [spec.candidate(recipe) for spec in kernels_worth_trying(running.traits)]
    ran = {trial.candidate.name for trial in running.run(entered, Progress()).trials if not trial.error}
    every = np.arange(running.rows.shape[0])
    found: dict[bool, list[Way]] = {False: [], True: []}
    for candidate in entered:
        for by_error, ways in found.items():
            if candidate.name in ran:
                best = machines.best_left_out(candidate.recipe, running.left_out, None, by_error=by_error)
                ways.append(Way(candidate, best, running.outcome_of(best, [(every, every)])))

    def of_order(ways: list[Way]) -> Way:
        return ways[preferred([way.outcome for way in ways], ERRORS_TO_DROP_BEFORE_LAST_ROUND)]

    def error(way: Way) -> float:
        return next(trial.error for trial in way.best.tried if trial.outputs is way.best.outputs)

    chosen = (
        of_order(found[False]),
        max(found[False], key=lambda way: way.outcome.score),
        of_order(found[True]),
        max(found[True], key=lambda way: way.outcome.score),
        of_order(sorted(found[True], key=error)),
    )
    return dict(zip(WAYS, chosen, strict=True))


def measured(data: LabelledSet) -> dict[str, float]:
    """Return the test accuracy of what each way chooses."""
    scores: dict[tuple[str, tuple[int, int]], float] = {}
    found = {}
    for way, chosen in ways_of(data.X, data.y).items():
        key = chosen.candidate.name, chosen.best.setting
        if key not in scores:
            scores[key] = float(chosen.fitted(data.X, data.y).score(data.X_test, data.y_test))
        found[way] = scores[key]
    return found


def report(gains: dict[str, list[dict[str, float]]]) -> str:
    """Return a Markdown table of the points that each way gains over the first, by set."""
    lines = [f"| set | samples | {' | '.join(WAYS[1:])} |", "|---|--:" + "|--:" * len(WAYS[1:]) + "|"]
    means = []
    for name, samples in gains.items():
        means.append([100 * np.mean([s[way] - s[BEFORE] for s in samples]) for way in WAYS[1:]])
        lines.append(f"| {name} | {len(samples)} | {' | '.join(f'{mean:+.2f}' for mean in means[-1])} |")
    mean = np.mean(means, axis=0)
    error = np.std(means, axis=0, ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.full(len(mean), np.nan)
    both = [f"{m:+.2f} ± {e:.2f}" for m, e in zip(mean, error, strict=True)]
    return "\n".join([*lines, f"| mean | {sum(map(len, gains.values()))} | {' | '.join(both)} |"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(ALL))
    parser.add_argument("--rows", default="200,500,1000,1900")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    gains: dict[str, list[dict[str, float]]] = {}
    for name in options.sets.split(","):
        whole = ALL[name]()
        sizes = {min(int(n), whole.X.shape[0]) for n in options.rows.split(",")}
        for n, seed in [(n, seed) for n in sorted(sizes) for seed in range(options.seeds)]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scores = measured(whole.some(n, seed))
            gains.setdefault(name, []).append(scores)
            print(json.dumps({"set": name, "rows": n, "seed": seed} | scores), flush=True)
    print(report(gains))


if __name__ == "__main__":
    main()
