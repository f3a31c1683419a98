"""``chimap permanova`` as a user has it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from chimap.diagnostics.permanova import permanova

from .terminal import run, run_here


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("permanova")
    rng = np.random.default_rng(0)
    site = np.repeat(["gut", "skin"], 20)
    X = rng.poisson(rng.gamma(1, 6, (40, 8)))
    X[site == "skin", 2] += 7
    names = [f"otu_{i}" for i in range(8)]
    frame = pd.DataFrame(X, columns=names, index=pd.Index([f"s{i}" for i in range(40)], name="sample"))
    about = pd.DataFrame({"site": site, "subject": np.tile(np.arange(20), 2), "age": rng.random(40)}, index=frame.index)
    frame.join(about).to_csv(folder / "samples.csv")
    frame.to_csv(folder / "counts.csv")
    about.iloc[::-1].to_csv(folder / "meta.csv")
    return folder, X, about


def test_columns_of_the_data_or_of_a_table(samples):
    folder, X, about = samples
    expected = permanova(X, "site + age", about, strata="subject", permutations=99)
    asked = ["--formula", "site + age", "--strata", "subject", "--permutations", 99, "--json"]
    for data in (["samples.csv"], ["counts.csv", "--metadata", "meta.csv"]):
        found = run_here("permanova", *data, *asked, cwd=folder)
        assert found.code == 0, found.err
        assert [term["p"] for term in found.json["terms"]] == [term.p for term in expected.terms]
        assert found.json["terms"][0]["r2"] == pytest.approx(expected.terms[0].r2)
        assert found.json["data"]["bins"] == 8
        assert found.json["difference"]["bins"][0] == "otu_2"


@pytest.mark.slow
def test_it_prints_a_table_and_writes_a_page(samples):
    folder, _, _ = samples
    asked = ["--formula", "site", "--covariates", "age", "--exclude", "subject", "--report", "site.html"]
    found = run("permanova", "samples.csv", *asked, cwd=folder)
    assert found.code == 0, found.err
    lines = found.out.splitlines()
    assert [line.split()[0] for line in lines[2:7]] == ["terms", "age", "site", "residuals", "total"]
    assert "site explains" in found.out
    assert "given age" in found.out
    assert "spread of site" in found.out
    assert "otu_2:" in found.out
    assert (folder / "site.html").read_text(encoding="utf-8").count("<svg") == 2


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--formula", "sight"], "no column 'sight' for --formula: did you mean 'site'?"),
        (["--formula", "site", "--strata", "subjects"], "no column 'subjects' for --strata"),
        (["--formula", "site", "--strata", "site"], "every stratum of --strata has one value of 'site'"),
        (["--formula", "site", "--between", "gut"], "--between must name two groups"),
        (["--formula", "site", "--normalization", "l7"], "--normalization must be one of"),
        (["--formula", "site", "--report", "no/page.html"], "the folder no does not exist"),
        ([], "Missing option '--formula'"),
    ],
)
def test_errors_name_flags(samples, asked, message):
    found = run_here("permanova", "samples.csv", "--exclude", "site,subject,age", *asked, cwd=samples[0])
    assert found.code == 2
    assert message in found.err
