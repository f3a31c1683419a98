"""Comparisons to draw and to judge, made of numbers by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

from chimap.reports import Comparison
from chimap.reports.comparison import Entrant, Run


def entrant(kernel="exp-chi2", value=0.9, **given) -> Entrant:
    """By default it ran two rounds; ``error`` is the standard error of its score, which it has by itself."""
    n_rows, error, us = given.pop("n_rows", 3000), given.pop("error", 0.01), given.pop("us", 10.0)
    settings = {"kernel": kernel, "normalize": None, "features": "exact", **given.pop("settings", {})}
    runs = tuple(Run(n, value - 0.02 * (n < n_rows), error, n / 1000, us * 1e-6) for n in (n_rows // 2, n_rows))
    place = given.pop("place", 0)  # of the deviation: entrants of different places are wrong on different rows
    deviations = tuple(error if i == place else 0.0 for i in range(10))
    name = given.pop("name", f"{kernel}, {settings['normalize'] or 'raw'} rows")
    usual = {"fit_settings": settings}
    return Entrant(name, settings, given.pop("runs", runs), deviations, **(usual | given))


def comparison(*entrants: Entrant, **given) -> Comparison:
    usual = {
        "measure": "accuracy",
        "floor": 0.1,
        "n_held_out": 2000,
        "data": {
            "file": "flowers.npz",
            "rows": 60_000,
            "training rows": 3000,
            "held-out rows": 2000,
            "bins": 64,
            "groups": None,
        },
        "settings": {"kernel": "all"},
        "stages": {"race": 2.0},
        "versions": {"chimap": "0.1.0"},
        "fit_seconds": {entrants[0].name: 38.2},
        "created": datetime(2025, 3, 4, 12, 30, tzinfo=UTC),
    }
    return Comparison(entrants, **(usual | given))


@cache
def many(kernels: int = 12) -> Comparison:
    """More kernels than colours, of several rounds, with all that may stand beside them."""
    found = [
        entrant(f"kernel-{i}", 0.8 + 0.01 * i, us=3.0 + i, n_rows=3000 if i % 3 else 1500, place=i % 10)
        for i in range(kernels)
    ]
    landmarks = {"features": "landmarks", "n_components": 1959}
    found.append(entrant("exp-jensen_shannon", 0.97, name="final", settings=landmarks, place=3))
    found.append(entrant("linear", 0.82, is_linear=True, us=0.5, name="linear ridge, raw rows"))
    found.append(entrant("chi2", 0.84, settings={"loss": "hinge", "normalize": "l1"}, fit_settings=None))
    found.append(Entrant("pq, raw rows", {"kernel": "pq"}, (), error="negative bins"))
    return comparison(*found, data={**comparison(found[0]).data, "groups": 31}, fit_seconds={"final": 38.2})


def regression() -> Comparison:
    found = (entrant("chi2", 0.712), entrant("exp-chi2", 0.734, place=1), entrant("linear", 0.5, is_linear=True))
    return comparison(*found, measure="R2", floor=0.0)


def one_round() -> Comparison:
    found = entrant("chi2", 0.7)
    return comparison(Entrant(found.name, found.settings, found.runs[-1:], (), fit_settings=found.settings))


CASES = {
    "many": many,
    "regression": regression,
    "one round": one_round,
    "another score": lambda: comparison(entrant(), measure="balanced_accuracy", floor=None),
}
