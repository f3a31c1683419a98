"""Counts beside covariates: what covariates of pure noise cost, and what covariates that tell of the labels gain.

Each table of the domains is fitted with its counts alone, with covariates of noise (numbers, categories, gaps), and with
the same and one that is larger by a deviation where the label is. Differences are of the same splits.

python -m benchmarks.accuracy.covariates                          # three tables of microbes, five splits: four minutes
python -m benchmarks.accuracy.covariates --tables mol_bbbp --splits 2
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from benchmarks.accuracy.fields import Table
from chimap import HistogramClassifier, HistogramRegressor, with_covariates
from chimap.recipe.codecs import ClassCodec
from chimap.selection.scoring import HeldOutScore

TABLES = "deepmicro_cirrhosis,mlrepo_gevers_ileum,mlrepo_sokol_uc"


def noise(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return covariates that say nothing."""
    numbers = {f"number {j}": rng.standard_normal(n) for j in range(4)}
    numbers["number 0"][rng.random(n) < 0.2] = np.nan
    return numbers | {f"category {j}": rng.choice(list("abcd"), n) for j in range(2)}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--tables", default=TABLES)
    asked.add_argument("--splits", type=int, default=5)
    given = asked.parse_args()
    warnings.simplefilter("ignore")
    for name in given.tables.split(","):
        table = Table.read(name)
        is_real = table.scoring == "r2"
        scores: dict[str, list[float]] = {"counts": [], "noise": [], "informative": []}
        used = {"noise": 0, "informative": 0}
        for split, is_test in enumerate(table.tests[: given.splits]):
            rng = np.random.default_rng(split)
            beside = noise(table.y.size, rng)
            label = table.y if is_real else ClassCodec.of_classes(table.y).classes.searchsorted(table.y)
            told = {"telling": (label - label.mean()) / label.std() + rng.standard_normal(label.size)}
            for kind, covariates in (("counts", None), ("noise", beside), ("informative", beside | told)):
                make = HistogramRegressor if is_real else HistogramClassifier
                train = {} if covariates is None else {key: v[~is_test] for key, v in covariates.items()}
                model = make(scoring=table.scoring, random_state=0, covariates=train or None)
                groups = None if table.groups is None else table.groups[~is_test]
                model.fit(table.X[~is_test], table.y[~is_test], groups=groups)
                rows = table.X[is_test]
                if covariates is not None:
                    rows = with_covariates(rows, {key: v[is_test] for key, v in covariates.items()})
                    used[kind] += model.covariates_.weight > 0
                outputs = model.predict(rows) if is_real else model.decision_function(rows)
                score = HeldOutScore(table.y[is_test], getattr(model, "classes_", None), table.scoring)
                scores[kind].append(score(outputs.reshape(is_test.sum(), -1)))
        counts = np.array(scores["counts"])
        print(f"{name}: {table.scoring} of the counts {counts.mean():.3f}, {counts.size} splits")
        for kind in used:
            gain = np.array(scores[kind]) - counts
            error = gain.std(ddof=1) / np.sqrt(gain.size) if gain.size > 1 else float("nan")
            print(f"  {kind:12} {gain.mean():+.4f} +- {error:.4f}, covariates used in {used[kind]} splits", flush=True)


if __name__ == "__main__":
    main()
