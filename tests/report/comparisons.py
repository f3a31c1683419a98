"""Comparisons to draw and to judge, made of numbers by hand."""

from __future__ import annotations

from datetime import UTC, datetime

from chimap.report import Comparison
from chimap.report.comparison import LeftOut, Measured, Reference, Score


def score(value: float, error: float = 0.01) -> Score:
    return Score(value, (value - 2 * error, value + 2 * error), error)


def measured(family="OptimalMap", size=2, **given) -> Measured:
    value, seconds = given.pop("value", 0.9), given.pop("seconds", 1.0)
    usual = {
        "unit": "terms", "n_features": 64 * size, "error_mean": 0.001, "error_worst": 0.02, "error_relative": 0.005,
        "value_error": 0.004, "map_seconds": 1e-6, "dense_bytes": 256 * size, "sparse_bytes": None, "code_bytes": None,
        "score": None if value is None else score(value), "learn_seconds": None if value is None else seconds,
        "solved": None if value is None else "moments", "not_learned": None, "fit_bytes": 2**20,
        "fit_options": {"kernel": "chi2", "map": "optimal", "terms": size},
    }  # fmt: skip
    return Measured(family, size, **(usual | given))


def comparison(*candidates: Measured, **given) -> Comparison:
    usual = {
        "kernel": "chi2", "gamma": None, "task": "classify", "measured": candidates, "left_out": (), "references": (),
        "baseline": 0.1, "bounds": {1: 0.04, 2: 0.003}, "bound_of": "values", "n_gram_rows": 500, "memory": 2**30,
        "data": {"file": "flowers.npz", "rows in it": 12000, "rows to learn from": 5000, "rows to measure on": 2000,
                 "bins": 64},
        "settings": {"n_terms": [1, 2]}, "stages": {"learning": 2.0}, "versions": {"chimap": "0.1.0"},
        "created": datetime(2025, 3, 4, 12, 30, tzinfo=UTC),
    }  # fmt: skip
    return Comparison(**(usual | given))


def many(families: int = 10) -> Comparison:
    """More families than colours, of several sizes, with all that may stand beside them."""
    found = [
        measured(
            f"Map{i}",
            size,
            value=0.8 + 0.01 * i + 0.02 * size,
            seconds=0.1 * (i + size),
            value_error=0.1**size,
        )
        for i in range(families)
        for size in (1, 2)
    ]
    found.append(
        measured("PerBin", 2, value_error=None, solved="Gram matrix", fit_bytes=2**40, sparse_bytes=99.0)
    )
    found.append(measured("Huge", 5, value=None, not_learned="memory=1MiB is too small", fit_options=None))
    references = (
        Reference("exact chi2 SVM", 2000, score(0.95), 3.0),
        Reference("linear ridge on the raw rows", 5000, score(0.8), 0.1),
    )
    return comparison(*found, left_out=(LeftOut("Odd", 2, "must be odd"),), references=references)


def of_features() -> Comparison:
    """Of an exponential kernel: sizes are features in all."""
    found = [
        measured(
            f"FourierFeatures, {way}", size, unit="features", n_features=size, value_error=None, value=0.9
        )
        for way in ("iid", "orthogonal")
        for size in (256, 1024, 4096)
    ]
    return comparison(
        *found, kernel="exp-chi2", gamma=2.0, bound_of="gram", bounds={256: 0.01, 1024: 0.001, 4096: 0.0}
    )


def unlabelled() -> Comparison:
    return comparison(measured(value=None), measured("DirectMap", 3, value=None), task=None, baseline=None)


def regression() -> Comparison:
    found = (measured(value=0.71), measured("DirectMap", 3, value=0.72, seconds=3.0))
    return comparison(*found, task="regress", baseline=-0.001)


CASES = {
    "many": many,
    "features": of_features,
    "no labels": unlabelled,
    "regression": regression,
    "one": lambda: comparison(measured()),
}
