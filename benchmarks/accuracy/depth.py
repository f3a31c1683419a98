"""Are intervals for deeper samples right, and what do answers lose where rows have fewer counts?

Coverage: test rows of a table are thinned to a quarter of their counts, without replacement. ``model.depth`` sees these
alone, and gives for each an interval of its margin at four times the depth; the row before it was thinned says whether
that holds. Moments: the same rows at 10^5 draws, beside the exact mean and variance of an additive machine.

Loss: test rows are thinned to a quarter and to a sixteenth. Single machines, without and with ``depth_robust``, and
a forest of 500 trees answer the same rows, fitted on training rows as they are. ROC AUC, or accuracy of cells, as means over splits;
``--methods`` also takes chimap, for the default, and what else ``benchmarks.accuracy.fields`` knows.

python -m benchmarks.accuracy.depth --splits 6             # everything: a quarter of an hour of one core
python -m benchmarks.accuracy.depth --parts loss --methods chimap,forest
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.accuracy.fields import Table, fitted, score_of
from chimap import HistogramClassifier
from chimap.data.depth import thinned, totals_of
from chimap.diagnostics.depth import Samples, depth, margins_of

COVERED = ("mlrepo_gevers_ileum", "mlrepo_claesson", "cell_pbmc68k")
LOST = ("mlrepo_gevers_ileum", "mlrepo_claesson", "mlrepo_sokol_uc", "cell_pbmc68k")
MACHINES = {
    "minmax, log-cpm": {"kernel": "minmax", "normalize": "log-cpm", "features": "exact"},
    "jensen_shannon, l1": {"kernel": "jensen_shannon", "normalize": "l1"},
}
SINGLE = {
    f"{kernel} {name}{' robust' if robust else ''}": {
        "kernel": kernel,
        "normalize": name,
        "features": features,
        "depth_robust": robust,
    }
    for kernel, name, features in (
        ("minmax", "log-cpm", "exact"),
        ("minmax", "log-z", "exact"),
        ("chi2", "l1", "additive"),
        ("hellinger", "l1", "additive"),
        ("hellinger", "log-cpm", "additive"),
    )
    for robust in (False, True)
}
TIMES = 4

Line = dict[str, Any]


def counts_of(table: Table) -> sp.csr_matrix:
    return table.X.astype(np.float64)


def coverage(name: str, splits: int) -> Iterator[Line]:
    """Yield the share of test rows whose margin lies within the interval of their thinned row, by machine."""
    table = Table.read(name)
    X = counts_of(table)
    for machine, settings in MACHINES.items():
        inside, widths, stable, held = [], [], [], []
        for split, test in enumerate(table.tests[:splits]):
            model = HistogramClassifier(**settings, random_state=split).fit(X[~test].astype(np.float32), table.y[~test])
            whole = X[test]
            few = thinned(whole, totals_of(whole) // TIMES, np.random.default_rng(split))
            rows = totals_of(few) > 0
            whole, few = whole[rows], few[rows]
            found = depth(model.fitted, few, times=TIMES, has_curve=False, random_state=split)
            there, now = (Samples.read(model.fitted, each.astype(np.float32))[0].outputs for each in (whole, few))
            margins = margins_of(model.fitted.answers, there, now)
            inside.append((found.low <= margins) & (margins <= found.high))
            widths.append(found.width)
            stable.append(found.stability)
            held.append((margins > 0).all(axis=1))
        covered = np.concatenate(inside)
        yield {
            "table": name,
            "machine": machine,
            "rows": covered.size,
            "splits": len(inside),
            "covered": round(float(covered.mean()), 3),
            "between splits": round(float(np.std([each.mean() for each in inside]) / np.sqrt(len(inside))), 3),
            "half width in deviations": round(float(np.mean(widths)), 2),
            "stability": round(float(np.mean(np.concatenate(stable))), 3),
            "answers that held": round(float(np.mean(np.concatenate(held))), 3),
        }


def moments(name: str, n_rows: int = 3, n_draws: int = 100_000) -> Iterator[Line]:
    """Yield how far means and variances of 10^5 draws are from the exact ones, in their own standard errors."""
    table = Table.read(name)
    X, test = counts_of(table), table.tests[0]
    model = HistogramClassifier(**MACHINES["jensen_shannon, l1"]).fit(X[~test].astype(np.float32), table.y[~test])
    rows = Samples.read(model.fitted, X[test].astype(np.float32))[0]
    for place in np.argsort(rows.totals)[:: max(1, rows.totals.size // n_rows)][:n_rows]:
        depth, rng = int(TIMES * rows.totals[place]), np.random.default_rng(int(place))
        asked = np.array([place]), np.array([depth]), np.ones(1)
        mean, deviation = rows.exact.margins(rows, *asked)
        drawn = np.concatenate([rows._drawn(*asked, 2000, rng)[0, :, 0] for _ in range(n_draws // 2000)])
        squares = np.square(drawn - mean[0, 0])
        yield {
            "table": name,
            "row": int(place),
            "counts": int(rows.totals[place]),
            "deviation": round(float(deviation[0, 0]), 5),
            "mean, errors": round(float((drawn.mean() - mean[0, 0]) / drawn.std() * np.sqrt(n_draws)), 2),
            "variance, errors": round(
                float((squares.mean() - deviation[0, 0] ** 2) / squares.std() * np.sqrt(n_draws)), 2
            ),
        }


def loss(name: str, splits: int, methods: list[str]) -> Iterator[Line]:
    """Yield the scores of methods on test rows as they are, and with a quarter and a sixteenth of their counts."""
    table = Table.read(name)
    X = counts_of(table)
    for method in methods:
        scores: dict[int, list[float]] = {1: [], 4: [], 16: []}
        for split, test in enumerate(table.tests[:splits]):
            if method in SINGLE:
                model = HistogramClassifier(random_state=0, **SINGLE[method])
                groups = None if table.groups is None else table.groups[~test]
                model.fit(table.X[~test], table.y[~test], groups=groups)
            else:
                model = fitted(method, table, ~test)
            for factor, kept in scores.items():
                few = X.copy()
                if factor > 1:
                    drawn = thinned(X[test], np.maximum(1, totals_of(X[test]) // factor), np.random.default_rng(split))
                    few = few.tolil()
                    few[np.flatnonzero(test)] = drawn
                kept.append(score_of(model, replace(table, X=few.tocsr().astype(np.float32)), test))
        means = {factor: float(np.mean(kept)) for factor, kept in scores.items()}
        yield {
            "table": name,
            "method": method,
            "splits": min(splits, len(table.tests)),
            "as they are": round(means[1], 4),
            "a quarter": round(means[4], 4),
            "a sixteenth": round(means[16], 4),
            "lost": round(means[1] - (means[4] + means[16]) / 2, 4),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="coverage,moments,loss")
    parser.add_argument("--splits", type=int, default=20, help="at most so many splits of a table")
    parser.add_argument("--methods", default=",".join([*SINGLE, "forest"]))
    options = parser.parse_args()
    methods = options.methods.split(",")
    for part in options.parts.split(","):
        for name in {"coverage": COVERED, "moments": COVERED[:1], "loss": LOST}[part]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                lines = {
                    "coverage": lambda name=name: coverage(name, options.splits),
                    "moments": lambda name=name: moments(name),
                    "loss": lambda name=name: loss(name, options.splits, methods),
                }[part]()
                for line in lines:
                    print(json.dumps({"part": part} | line), flush=True)


if __name__ == "__main__":
    main()
