"""Regressions of counts and of quantiles on the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from .terminal import run_many

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("counts"), np.random.default_rng(0)
    X = rng.dirichlet(np.ones(6), size=160)
    table = pd.DataFrame(X, columns=list("abcdef"))
    table["seen"] = rng.poisson(np.exp(1 + 2 * X[:, 0]))
    table["size"] = X[:, 0] + 0.1 * rng.normal(size=160)
    table.to_csv(folder / "plots.csv", index=False)
    table.assign(seen=-table["seen"]).to_csv(folder / "bad.csv", index=False)
    return folder


FIT = ["--kernel", "exp-chi2", "--columns", "a:f", "--test-fraction", "0.25", "--verbose"]
OF_SIZE = ["fit", "plots.csv", "--labels", "size", "--loss", "quantile", *FIT]


def test_fits_evaluations_and_predictions(folder):
    fits = run_many(
        [
            ["fit", "plots.csv", "--labels", "seen", "--loss", "poisson", *FIT, "-o", "counts.model"],
            [*OF_SIZE, "--quantile", "0.9", "-o", "one.model"],
            [*OF_SIZE, "--quantile", "0.1,0.5,0.9", "-o", "some.model"],
        ],
        folder,
    )
    assert [fit.code for fit in fits] == [0, 0, 0]
    assert "regression (--loss poisson is for numbers)" in fits[0].out
    assert "D²" in fits[0].out
    assert "Poisson deviance" in fits[0].out
    assert "share below" in fits[1].out
    assert "quantile 0.1, 0.5, 0.9" in fits[2].out
    counts, one, some, *_ = run_many(
        [
            ["evaluate", "counts.model", "plots.csv", "--labels", "seen", "--json"],
            ["evaluate", "one.model", "plots.csv", "--labels", "size", "--json"],
            ["evaluate", "some.model", "plots.csv", "--labels", "size"],
            ["predict", "counts.model", "plots.csv", "--intervals", "-o", "counts.csv"],
            ["predict", "some.model", "plots.csv", "--intervals", "-o", "some.csv"],
            ["evaluate", "counts.model", "plots.csv", "--labels", "seen", "--output", "counts.html"],
            ["evaluate", "some.model", "plots.csv", "--labels", "size", "--output", "some.html"],
        ],
        folder,
    )
    assert {"d2", "mean_poisson_deviance"} <= json.loads(counts.out)["metrics"].keys()
    assert 0.6 < json.loads(one.out)["metrics"]["share_below"] <= 1
    assert "quantile_0.5" in some.out
    predicted = pd.read_csv(folder / "counts.csv")
    assert (predicted["prediction"] > 0).all()
    assert (predicted["low"] >= 0).all()
    quantiles = pd.read_csv(folder / "some.csv")
    assert quantiles.columns.tolist() == ["quantile_0.1", "quantile_0.5", "quantile_0.9", "low", "high"]
    assert (quantiles["quantile_0.1"] <= quantiles["quantile_0.9"]).all()
    assert (folder / "counts.html").stat().st_size > 1000
    assert (folder / "some.html").stat().st_size > 1000


def test_what_is_refused(folder):
    fit = ["fit", "plots.csv", "--labels", "size", "-o", "no.model"]
    refused = run_many(
        [
            [*fit, "--quantile", "0.9"],
            [*fit, "--loss", "quantile", "--quantile", "90"],
            ["fit", "plots.csv", "--labels", "seen", "--loss", "poisson", "--task", "classify", "-o", "no.model"],
            ["fit", "bad.csv", "--labels", "seen", "--exclude", "size", "--loss", "poisson", "-o", "no.model"],
        ],
        folder,
    )
    assert all(one.code != 0 for one in refused)
    assert "--quantile 0.9 is for --loss quantile; got --loss square" in refused[0].err
    assert "--quantile must be a number between 0 and 1, or several that ascend" in refused[1].err
    assert "--loss" in refused[2].err
    assert "is negative, and --loss poisson takes counts" in refused[3].err
