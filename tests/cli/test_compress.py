"""``chimap compress`` from a shell."""

from __future__ import annotations

import re

import numpy as np
import pytest

import chimap

from .terminal import run_many

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def exact(folder):
    """A folder with an exact machine of 600 scans."""
    with np.load(folder / "digits.npz") as z:
        np.savez(folder / "few.npz", X=z["X"][:600], y=z["y"][:600])
    command = ["fit", "few.npz", "-o", "exact.model", "--kernel", "exp-chi2", "--features", "exact", "--alpha", "0.1"]
    assert run_many([command], folder)[0].code == 0
    return folder


def test_a_table_and_a_model(exact, tmp_path):
    small = tmp_path / "small.model"
    shown, wrote, json, predicted = run_many(
        [
            ["compress", "exact.model", "--rows", "100"],
            ["compress", "exact.model", "--rows", "100", "-o", small],
            ["compress", "exact.model", "--rows", "2", "--json"],
            ["predict", small, "unlabelled.npz", "-o", tmp_path / "answers.csv"],
        ],
        exact,
    )
    assert shown.code == 0, shown.err
    rows = re.findall(r"^\s*(\d+)\s.*\d\.\d+\s*$", shown.out, re.MULTILINE)
    assert rows == ["600", "25", "50", "100"]
    assert "chimap compress exact.model --rows 100 --output exact-small.model" in shown.out
    assert wrote.code == 0, wrote.err
    assert f"Wrote 100 of 600 rows to {small}" in wrote.out
    assert [one["rows"] for one in json.json["compressed"]] == [1, 2]
    assert json.json["exact"]["rows"] == 600
    assert json.json["output"] is None
    assert predicted.code == 0, predicted.err
    X = np.load(exact / "rows.npy")
    assert np.mean(chimap.load(small).predict(X) == chimap.load(exact / "exact.model").predict(X)) > 0.93


def test_what_cannot_be_compressed_is_said(exact, tmp_path):
    other, many, none, itself = run_many(
        [
            ["compress", "names.model", "--rows", "100"],
            ["compress", "exact.model", "--rows", "500"],
            ["compress", "exact.model", "--rows", "0"],
            ["compress", "exact.model", "--rows", "10", "-o", "exact.model", "--overwrite"],
        ],
        exact,
    )
    assert [done.code for done in (other, many, none, itself)] == [2, 2, 2, 2]
    assert "no exact machine" in other.err
    assert "--features exact" in other.err
    assert "--rows 500 is too many: the machine keeps 600 rows, of which 480" in many.err
    assert "--rows must be a whole number of at least 1; got 0" in none.err
    assert "is the input exact.model itself" in itself.err
