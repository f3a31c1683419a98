"""``chimap suggest`` as a user has it."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from chimap import HistogramClassifier

from .terminal import run, run_here


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suggest")
    X, y = load_digits(return_X_y=True)
    names = [f"p{i}" for i in range(64)]
    frame = pd.DataFrame(X, columns=names)
    HistogramClassifier("exp-chi2", features="exact", alpha=0.1).fit(frame[:80], y[:80]).save(folder / "a.model")
    HistogramClassifier("chi2", features="additive", alpha=0.1).fit(frame[:80], y[:80]).save(folder / "sums.model")
    more = frame[80:200].assign(sheet=np.repeat(["a", "b", "c", "d"], 30), minutes=np.tile([1, 50], 60))
    more.index = pd.Index([f"s{i}" for i in range(120)], name="sample")
    more.to_csv(folder / "pool.csv")
    frame[:80].to_csv(folder / "known.csv", index=False)
    return folder


COLUMNS = ("--exclude", "sheet,minutes")


@pytest.mark.slow
def test_rows_with_ids_a_file_and_a_page(pool):
    asked = ["--n", "4", "--cost", "minutes", "--exclude", "sheet", "--output", "next.csv", "--report", "next.html"]
    found = run("suggest", "a.model", "pool.csv", *asked, cwd=pool)
    assert found.code == 0, found.err
    assert "4 rows remove" in found.out
    with (pool / "next.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 4
    assert all(int(line["row"].removeprefix("s")) % 2 == 0 for line in lines)  # an odd one costs fifty minutes
    assert "<svg" in (pool / "next.html").read_text()


def test_groups_and_labelled_rows(pool):
    found = run_here(
        "suggest", "a.model", "pool.csv", "--n", 2, "--groups", "sheet", "--exclude", "minutes", "--json", cwd=pool
    )
    assert set(found.json["chosen"]) < set("abcd")
    found = run_here("suggest", "sums.model", "pool.csv", *COLUMNS, "--labelled", "known.csv", "--json", cwd=pool)
    assert len(found.json["chosen"]) == 20


def test_rows_to_sequence_deeper(pool):
    asked = ["--n", 3, "--deeper", 2, "--report", "deeper.html", "--output", "deeper.csv"]
    found = run_here("suggest", "sums.model", "pool.csv", *COLUMNS, *asked, cwd=pool)
    assert found.code == 0, found.err
    assert "of the answers expected to differ at full depth" in found.out
    assert len((pool / "deeper.csv").read_text().splitlines()) == 4
    assert "What to sequence deeper" in (pool / "deeper.html").read_text()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["sums.model", "pool.csv", "--deeper", "1"], "--deeper must be above 1"),
        (["a.model", "pool.csv", "--n", 0], "--n"),
        (["a.model", "pool.csv", "--n", 200], "120 rows to choose from"),
        (["a.model", "pool.csv", "--cost", "price"], "price"),
        (["a.model", "pool.csv", "--output", "next.txt"], "--output must end in .csv"),
        (["sums.model", "pool.csv"], "--labelled"),
    ],
)
def test_errors_name_flags(pool, asked, message):
    found = run_here("suggest", *asked, *COLUMNS, cwd=pool)
    assert found.code == 2
    assert message in found.err
