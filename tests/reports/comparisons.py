"""Comparisons to draw and to judge, made of numbers by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

from chimap.models.race_result import Candidate, RaceResult, Trial
from chimap.recipe import Recipe
from chimap.reports import Comparison
from chimap.reports.comparison import RacedCandidate

ASKED = Recipe("HistogramClassifier", True)


def rival(name="exp-chi2, raw rows", value=0.9, **given) -> RacedCandidate:
    """By default it ran two rounds. ``raced_rows`` are those of its last, ``error`` the standard error of its score."""
    n_rows, error = given.pop("raced_rows", 3000), given.pop("error", 0.01)
    recipe = ASKED.with_raced(kernel="linear" if given.pop("is_linear", False) else "exp-chi2")
    candidate = Candidate(name, recipe)
    trial = Trial(candidate, n_rows // 1500 - 1, n_rows, value, n_rows / 1000, deviations=(error,))
    usual = {"machine": "blocks of rows", "seconds": 38.2, "n_bytes": 2**30, "n_rows": 60_000}
    return RacedCandidate(trial, candidate.settings, **(usual | given))


def failing(name="pq, raw rows", error="negative bins") -> RacedCandidate:
    return RacedCandidate(Trial(Candidate(name, ASKED), 0, 1500, float("-inf"), 0.1, error=error))


def comparison(*rivals: RacedCandidate, measure="accuracy", expected=None, **given) -> Comparison:
    trials = [each.trial for each in rivals]
    first = [
        Trial(t.candidate, 0, 1500, t.score - 0.02, 1.0)
        for t in trials
        if t.n_rows == 3000 and given.get("rounds", 2) > 1
    ]
    given.pop("rounds", None)
    usual = {
        "data": {
            "file": "flowers.npz",
            "rows": 60_000,
            "training rows": 3000,
            "held-out rows": 2000,
            "bins": 64,
            "groups": None,
        },
        "settings": {"memory": "auto"},
        "versions": {"chimap": "0.1.0"},
        "created": datetime(2025, 3, 4, 12, 30, tzinfo=UTC),
    }
    result = RaceResult(trials, measure, 2000, 2.0, [*first, *trials], expected)
    return Comparison(tuple(rivals), result, **(usual | given))


@cache
def many(kernels: int = 12) -> Comparison:
    """More kernels than colours, of several rounds, with all that may stand beside them."""
    last = [rival(f"kernel-{i}, raw rows", 0.95 - 0.01 * i) for i in range(kernels)]
    early = [rival(f"early-{i}, l1 rows", 0.8 - 0.01 * i, raced_rows=1500) for i in range(3)]
    linear = rival("linear ridge, raw rows", 0.6, is_linear=True, machine="", seconds=float("nan"))
    data = {**comparison(last[0]).data, "groups": 31}
    return comparison(*last, linear, *early, failing(), data=data)


CASES = {
    "many": many,
    "regression": lambda: comparison(rival("exp-chi2", 0.734), rival("linear", 0.5, is_linear=True), measure="R2"),
    "one round": lambda: comparison(rival("chi2", 0.7), rounds=1),
    "another score": lambda: comparison(rival(), measure="balanced_accuracy", expected=(0.88, 0.02)),
}
