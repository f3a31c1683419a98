"""``chimap forget`` from a shell."""

from __future__ import annotations

import numpy as np
import pytest

import chimap

from .terminal import run_many

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table with ids, a model of it, and ids to forget."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("forget")
    sick = np.arange(60) % 2 == 1
    counts = rng.poisson(np.where(sick[:, None], [9, 3, 5, 5], [3, 9, 5, 5]))
    lines = [f"r{i},{'sick' if sick[i] else 'well'},{','.join(map(str, row))}" for i, row in enumerate(counts)]
    (folder / "samples.csv").write_text("\n".join(["id,disease,a,b,c,d", *lines]) + "\n")
    (folder / "gone.txt").write_text("r3\nr10\n\nr59\n")
    (folder / "wrong.txt").write_text("r3\nnobody\n")
    settings = ["--kernel", "gaussian", "--gamma", "0.01", "--features", "exact", "--alpha", "0.1"]
    roles = ["--labels", "disease", "--id", "id", "--precision", "float64"]
    (done,) = run_many([["fit", "samples.csv", *roles, *settings, "-o", "my.model"]], folder)
    assert done.code == 0, done.err
    return folder


def test_a_model_without_rows_and_a_receipt(table, tmp_path):
    new, again = tmp_path / "new.model", tmp_path / "again.model"
    command = ["forget", "my.model", "samples.csv", "--ids", "gone.txt"]
    shown, json, predicted, about = run_many(
        [
            [*command, "-o", new],
            [*command, "-o", again, "--choose-again", "--json"],
            ["predict", new, "samples.csv", "-o", tmp_path / "answers.csv"],
            ["info", new],
        ],
        table,
    )
    assert shown.code == 0, shown.err
    assert "3 rows; 57 are left" in shown.out
    assert "chosen with them  kernel:" in shown.out
    assert "--choose-again" in shown.out
    assert "my.model still holds the rows" in shown.out
    assert json.json["forgotten"] == 3
    assert "alpha" not in json.json["chosen_with_them"]
    assert predicted.code == 0, predicted.err
    assert ["rows", "57"] in [line.split() for line in about.out.splitlines()]
    assert "; 3 forgotten" in about.out
    assert chimap.load(new).n_rows_ == 57


def test_what_cannot_be_forgotten_is_said(table, tmp_path):
    new = tmp_path / "new.model"
    (table / "none.txt").write_text("\n")
    unknown, none, missing = run_many(
        [
            ["forget", "my.model", "samples.csv", "--ids", "wrong.txt", "-o", new],
            ["forget", "my.model", "samples.csv", "--ids", "none.txt", "-o", new],
            ["forget", "my.model", "samples.csv", "--ids", "nowhere.txt", "-o", new],
        ],
        table,
    )
    assert [done.code for done in (unknown, none, missing)] == [2, 2, 2]
    assert "1 of 2 are no ids of samples.csv: 'nobody'" in unknown.err
    assert "names no row" in none.err
    assert "nowhere.txt" in missing.err
    assert not new.exists()
