"""Covariates on the command line: columns of the table, or of another one that is joined by id."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest

from ..fit.test_covariates import AGE, SEX, N, X, Y
from .terminal import run_many

pytestmark = pytest.mark.slow

FIT = ["--kernel", "exp-chi2", "--normalization", "l1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("covariates")
    ids = pd.DataFrame({"sample": [f"s{i}" for i in range(N)]})
    about = ids.assign(age=AGE, sex=SEX, batch=[i % 3 for i in range(N)], site=Y)
    about.loc[::17, "age"] = None
    counts = pd.DataFrame(X, columns=[f"otu{i}" for i in range(20)])
    pd.concat([about.assign(age="NA"), counts], axis=1)[:1].to_csv(folder / "one.csv", index=False)
    pd.concat([about, counts], axis=1).to_csv(folder / "all.csv", index=False)
    pd.concat([ids, counts], axis=1).to_csv(folder / "counts.csv", index=False)
    about.sample(frac=1, random_state=0).to_csv(folder / "about.tsv", sep="\t", index=False, na_rep="NA")
    return folder


def test_a_fit_says_what_they_add_and_new_rows_bring_theirs(folder):
    columns = ["--labels", "site", "--covariates", "age,sex,C(batch)"]
    joined = ["--labels", "about.tsv::site", "--covariates", "age,sex,C(batch)", "--metadata", "about.tsv"]
    results = run_many(
        [
            ["fit", "all.csv", *columns, *FIT, "--test-fraction", "0.3", "-o", "a.model", "--json"],
            ["fit", "all.csv", *columns, *FIT, "-o", "c.model", "--verbose"],
            ["fit", "counts.csv", *joined, *FIT, "-o", "b.model", "--json"],
            ["predict", "a.model", "all.csv", "-o", "a.csv"],
            ["predict", "c.model", "all.csv", "-o", "c.csv"],
            ["predict", "b.model", "counts.csv", "-o", "b.csv"],
            ["predict", "a.model", "one.csv", "-o", "-"],
            ["evaluate", "a.model", "all.csv", "--splits", "2", "-o", "a.html"],
            ["explain", "a.model", "all.csv", "-o", "why.html"],
        ],
        folder,
    )
    assert [result.code for result in results] == [0] * 9, [result.err for result in results]
    assert "age in 1 of 1 rows" in results[6].err
    found = json.loads(results[0].out)["covariates"]
    assert found["names"] == ["age", "sex", "batch"]
    assert found["both"] > found["counts"]
    told = " ".join(results[1].out.split())
    assert "kernel exp-chi2 + " in told
    assert "rows left out: counts 0." in told
    assert "covariates add +0." in told
    assert "to counts, and counts +" in told
    for page in ("a.html", "why.html"):
        shown = re.sub(r">\s+<", "><", (folder / page).read_text(encoding="utf-8"))
        assert "The covariates are age, sex, batch." in shown
        for line in (f"<td>{found['counts']:.3f}</td><td>+", "covariates alone</th>", f"<td>{found['both']:.3f}</td>"):
            assert line in shown
    labels = [pd.read_csv(folder / name).iloc[:, -1].tolist() for name in ("b.csv", "c.csv")]
    assert labels[0] == labels[1]  # the same rows, from one table and from two


def test_bad_inputs(folder):
    fit = ["fit", "all.csv", "--labels", "site", *FIT, "-o", "x.model"]
    cases = {
        "no column 'Age' for --covariates: did you mean 'age'": [*fit, "--covariates", "Age,sex"],
        "'site' is --labels too": [*fit, "--covariates", "age,site"],
        "'batch' is --groups too": [*fit, "--covariates", "batch,sex", "--groups", "batch"],
        "200 levels in 200 rows": [*fit, "--covariates", "sample,age,sex,batch"],
        "--metadata is the table of --covariates": [*fit, "--metadata", "about.tsv"],
        "No such file: none.tsv": [*fit, "--covariates", "age", "--metadata", "none.tsv"],
        "no column 'bmi' for --covariates": [*fit, "--covariates", "bmi", "--metadata", "about.tsv"],
    }
    for message, result in zip(cases, run_many(cases.values(), folder), strict=True):
        assert result.code == 2 or result.code == 1, message
        assert message in result.err
        assert not (folder / "x.model").exists()
