"""Scores study by study, from a shell."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from .terminal import run_many

pytestmark = pytest.mark.slow

BY_STUDY = ["--labels", "site", "--splits", "leave-one-group-out"]
STUDIES = np.repeat(["Lyon", "Oslo", "Riga"], 24)


@pytest.fixture(scope="module")
def cohorts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohorts")
    rng = np.random.default_rng(0)
    sick = np.arange(STUDIES.size) % 2 == 0
    bins = rng.poisson(5 + 6 * sick[:, None] * (np.arange(5) < 1), (sick.size, 5))
    table = pd.DataFrame(bins, columns=list("abcde")).assign(site=np.where(sick, "gut", "skin"), study=STUDIES)
    table.to_csv(folder / "cohorts.csv", index=False)
    table.assign(study="Lyon").to_csv(folder / "one.csv", index=False)
    table.assign(site=np.where(STUDIES == "Riga", table.site, "gut")).to_csv(folder / "apart.csv", index=False)
    table.assign(site=np.where(STUDIES == "Riga", "gut", table.site)).to_csv(folder / "lonely.csv", index=False)
    table.iloc[[0, 1, 2, 24, 25, 26]].to_csv(folder / "few.csv", index=False)
    fit = ["fit", "cohorts.csv", "--labels", "site", "--exclude", "study", "--kernel", "exp-chi2", "-o", "a.model"]
    assert run_many([fit], folder)[0].code == 0
    return folder


def test_each_study_is_scored_by_models_of_the_others(cohorts):
    told, counted, lonely = run_many(
        [
            [
                "evaluate",
                "a.model",
                "cohorts.csv",
                *BY_STUDY,
                "--groups",
                "study",
                "--permutations",
                "19",
                "--table",
                "studies.csv",
                "-o",
                "page.html",
            ],
            ["evaluate", "a.model", "cohorts.csv", *BY_STUDY, "--groups", "study", "--json"],
            ["evaluate", "a.model", "lonely.csv", *BY_STUDY, "--groups", "study", "--json"],
        ],
        cohorts,
    )
    assert told.code == counted.code == lonely.code == 0, told.err + counted.err + lonely.err
    assert "by study" in told.out
    assert "19 permutations within studies (one factor for all)" in " ".join(told.out.split())
    page = (cohorts / "page.html").read_text(encoding="utf-8")
    assert "Study by study" in page
    assert "p = 0.05" in page
    found = counted.json["by_study"]
    assert [row["study"] for row in found["studies"]] == ["Lyon", "Oslo", "Riga"]
    assert found["measure"] == "roc_auc"
    assert found["mean"] > 0.8
    assert found["permutations"] is None
    table = pd.read_csv(cohorts / "studies.csv", float_precision="round_trip")
    assert [*table.columns] == ["machine", "study", "rows", "measure", "across", "within"]
    assert table.across.tolist() == [row["across"] for row in found["studies"]]
    assert table.within.tolist() == [row["within"] for row in found["studies"]]
    assert lonely.json["by_study"]["studies"][2]["across"] is None
    assert lonely.json["by_study"]["notes"] == ["Riga: all labels are gut, so neither score is defined"]


def test_bad_input(cohorts):
    wrong = {
        r"--splits leave-one-group-out needs groups: name their column with --groups": [*BY_STUDY],
        r"--groups study: all rows are in one group, Lyon": ["one.csv", *BY_STUDY, "--groups", "study"],
        r"without study Riga all labels are gut": ["apart.csv", *BY_STUDY, "--groups", "study"],
        r"--permutations must be a whole number of at least 1": [*BY_STUDY, "--groups", "study", "--permutations", "0"],
        r"--permutations permutes labels within groups: add --splits leave-one-group-out": ["--permutations", "9"],
        r"--table holds a line for each group: add --splits leave-one-group-out": ["--table", "x.csv"],
        r"--table must end in .csv; got 'x.xls'": [*BY_STUDY, "--groups", "study", "--table", "x.xls"],
        r"only 9 permutations .* too few for --permutations 99. Give --permutations 8": [
            "few.csv",
            *BY_STUDY,
            "--groups",
            "study",
            "--permutations",
            "99",
        ],
        r"1 or more, or leave-one-group-out, forward, or forward:3 for three cuts; got studies": [
            "--splits",
            "studies",
        ],
    }
    commands = [
        ["evaluate", "a.model", *(flags if flags[0].endswith(".csv") else ["cohorts.csv", *flags])]
        for flags in wrong.values()
    ]
    for message, result in zip(wrong, run_many(commands, cohorts), strict=True):
        assert result.code == 2, (message, result.out)
        assert re.search(message, " ".join(result.err.split())), result.err
