"""``chimap audit`` from a shell."""

from __future__ import annotations

import numpy as np
import pytest

from .terminal import run_many

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    """A table whose labels are depth, with studies and ages."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("audit")
    is_deep = rng.random(80) < 0.5
    counts = rng.poisson(np.where(is_deep, 60.0, 20.0)[:, None] * rng.dirichlet(np.ones(6)))
    head = "id,study,age,disease,a,b,c,d,e,f"
    lines = [
        f"r{i},S{i % 4},{20 + i % 37},{'sick' if is_deep[i] else 'well'},{','.join(map(str, row))}"
        for i, row in enumerate(counts)
    ]
    (folder / "samples.csv").write_text("\n".join([head, *lines]) + "\n")
    return folder


def test_the_first_line_says_what_tells_the_label(deep, tmp_path):
    roles = ["--labels", "disease", "--groups", "study", "--covariates", "age", "--id", "id"]
    named = ["--kernel", "chi2", "--alpha", "1"]
    page = tmp_path / "audit.html"
    shown, json, fitted = run_many(
        [
            ["audit", "samples.csv", *roles, *named, "--report", page],
            ["audit", "samples.csv", *roles, *named, "--json"],
            ["fit", "samples.csv", *roles[:4], "--exclude", "age", "--id", "id", *named, "-o", "my.model"],
        ],
        deep,
    )
    assert shown.code == 0, shown.err
    assert shown.out.startswith("Labels are told by totals alone: ROC AUC 1.000")
    assert "the counts, group taken out" in shown.out
    assert page.read_text().count("<svg") == 2
    assert json.json["command"] == "audit"
    assert json.json["shortcuts"][0]["name"] == "totals"
    assert json.json["data"]["groups"] == 4
    assert json.json["labels"]["doubtful"][0]["name"].startswith("r")
    assert fitted.code == 0, fitted.err
    assert "totals alone 1.000" in fitted.out
    (again,) = run_many([["audit", "samples.csv", *roles[:4], "--model", "my.model", "--json"]], deep)
    assert again.code == 0, again.err
    assert again.json["data"]["machine"] == "that of the model"


def test_what_cannot_be_audited_is_said(deep):
    (deep / "one.csv").write_text("".join(line for line in (deep / "samples.csv").open() if "sick" not in line))
    unlabelled, page, one = run_many(
        [
            ["audit", "samples.csv", "--labels", "nothing"],
            ["audit", "samples.csv", "--labels", "disease", "--report", "samples.csv"],
            ["audit", "one.csv", "--labels", "disease", "--exclude", "study"],
        ],
        deep,
    )
    assert [done.code for done in (unlabelled, page, one)] == [2, 2, 2]
    assert "one.csv: one class only: all labels are well" in one.err
    assert "Check --labels" in one.err
    assert "nothing" in unlabelled.err
    assert "samples.csv" in page.err
