"""What a fit prints: five lines, the answer first, and what the user has to heed; all else by --verbose and info."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pandas as pd
import pytest

import chimap
from chimap.reports.linear import LinearRival

from .terminal import run_many


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lines")
    rng = np.random.default_rng(0)
    counts = rng.poisson(4, (60, 5)) + 3 * np.eye(5, dtype=int)[np.arange(60) % 3]
    table = pd.DataFrame(counts, columns=list("abcde"))
    table[:18].assign(kind=np.tile(["bog", "meadow", "wood"], 6)).to_csv(folder / "few.csv", index=False)
    labelled = table.assign(kind=np.tile(["bog", "meadow", "wood"], 20), plot=np.repeat(np.arange(20), 3))
    labelled.loc[:1, "kind"] = ""
    labelled.to_csv(folder / "plots.csv", index=False)
    table.assign(mass=counts[:, 0] + rng.normal(size=60)).to_csv(folder / "mass.csv", index=False)
    named, fifth = ["--kernel", "chi2"], ["--test-fraction", "0.2"]
    kind = ["--labels", "kind"]
    commands = {
        "few": ["fit", "few.csv", *kind, *fifth, "-o", "few.model"],
        "few, again": ["fit", "few.csv", *kind, *fifth, "-o", "again.model", "--verbose"],
        "raced": ["fit", "few.csv", *kind, "-o", "raced.model"],
        "groups": ["fit", "plots.csv", *kind, *fifth, *named, "--groups", "plot", "-o", "g.model"],
        "numbers": ["fit", "mass.csv", "--labels", "mass", *fifth, *named, "-o", "m.model"],
        "not scored": ["fit", "mass.csv", "--labels", "mass", *named, "--alpha", "1", "-o", "n.model"],
        "info": ["info", "again.model"],
        "evaluate": ["evaluate", "g.model", "plots.csv", "--output", "page.html"],
        "evaluate, no page": ["evaluate", "g.model", "plots.csv", "--json"],
    }
    return folder, dict(zip(commands, run_many(list(commands.values()), folder), strict=True))


def names_of(result):
    assert result.code == 0, result.err
    return [re.split(r"\s{2,}", line)[0] for line in result.out.splitlines()]


def test_five_lines_the_answer_first_and_the_next_command_last(results):
    _, found = results
    assert names_of(found["few"]) == ["accuracy", "best linear", "chosen", "fitted", "next"]
    first, linear, chosen, fitted, following = found["few"].out.splitlines()
    score = re.fullmatch(
        r"accuracy +([\d.]+) % \(([\d.]+) to ([\d.]+) %\) on 4 rows kept apart; guessing [\d.]+ %", first
    )
    value, low, high = map(float, score.groups())
    assert low <= value <= high
    assert high - low > 20
    assert re.match(r"best linear +(linear|logistic)", linear)
    assert re.search(r", of \d+ machines$", chosen)
    assert re.fullmatch(r"fitted +14 rows, 5 columns, 3 classes in .*s", fitted)
    assert shlex.split(following)[1:4] == ["chimap", "evaluate", "few.model"]
    assert all(len(line) <= 80 for line in (first, linear, chosen, fitted))


def test_without_rows_kept_apart_the_score_is_that_of_rows_left_out(results):
    _, found = results
    assert names_of(found["raced"]) == ["accuracy", "best linear", "chosen", "fitted", "next"]
    assert re.search(r"% \([\d.]+ to [\d.]+ %\) on 18 rows left out; guessing 33.3 %", found["raced"].out)
    assert "OTHER.csv" in found["raced"].out.splitlines()[-1]


def test_all_else_is_told_when_asked_and_by_info(results):
    _, found = results
    told = found["few, again"].out.partition("All of it\n")
    assert names_of(found["few, again"])[:5] == names_of(found["few"])
    details = {line[2:].partition("  ")[0] for line in told[2].splitlines() if line[2] != " "}
    assert {"rows", "task", "race", "kernel", "features", "alpha", "held out", "time", "peak memory"} <= details
    shown = found["info"].out
    for name in {"accuracy", "best linear", "chosen", *details} - {"data", "bins"}:
        assert re.search(rf"^  {name}  ", shown, re.MULTILINE), name


def test_groups_and_rows_without_labels(results):
    _, found = results
    assert names_of(found["groups"]) == ["accuracy", "best linear", "chosen", "left out", "fitted", "next"]
    assert re.search(r"on \d+ rows of \d+ groups; guessing", found["groups"].out)
    assert "2 without a label" in found["groups"].out


def test_numbers(results):
    _, found = results
    assert names_of(found["numbers"])[:2] == ["R²", "best linear"]
    told = found["numbers"].out
    assert re.match(r"R² +[\d.]+ \(−?[\d.]+ to [\d.]+\) on 12 rows kept apart; guessing 0.000\n", told)
    assert "48 rows, 5 columns, numbers in" in found["numbers"].out
    assert "not measured; --test-fraction 0.2 keeps rows apart" in found["not scored"].out


def test_one_linear_model_in_the_fit_the_evaluation_and_the_page(results):
    folder, found = results
    known = LinearRival.of(chimap.load(folder / "g.model").training_["linear"])
    page = (folder / "page.html").read_text(encoding="utf-8")
    for text in (found["groups"].out, found["evaluate"].out, page):
        assert known.line in " ".join(text.split())
    assert found["evaluate, no page"].json["linear"] == known.as_dict()
