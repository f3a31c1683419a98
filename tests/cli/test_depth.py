"""``chimap depth`` and ``chimap predict --depth`` from a shell."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from .terminal import run_many

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    """A folder with counts of two sites, shallow ones, shares, and a model."""
    at, rng = tmp_path_factory.mktemp("depth"), np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(8), size=2)
    for name, depth in (("deep", 300), ("shallow", 24)):
        y = np.arange(80) % 2
        X = np.array([rng.multinomial(depth, rng.dirichlet(20 * shares[label] + 0.05)) for label in y])
        np.savez(at / f"{name}.npz", X=X, y=y)
    np.savez(at / "shares.npz", X=X / X.sum(axis=1, keepdims=True), y=y)
    fit = ["fit", "deep.npz", "-o", "sites.model", "--kernel", "chi2", "--normalization", "l1"]
    assert run_many([fit], at)[0].code == 0
    return at


def test_terminal_page_and_marks(counts, tmp_path):
    page, marked = tmp_path / "depth.html", tmp_path / "answers.csv"
    shown, json, predicted, arrays = run_many(
        [
            ["depth", "sites.model", "shallow.npz", "--labels", "y", "--report", page],
            ["depth", "sites.model", "deep.npz", "--json"],
            ["predict", "sites.model", "shallow.npz", "--depth", "--probabilities", "-o", marked],
            ["predict", "sites.model", "shallow.npz", "--depth", "-o", tmp_path / "answers.npz", "--json"],
        ],
        counts,
    )
    for each in (shown, json, predicted, arrays):
        assert each.code == 0, each.err
    assert "of 80 rows are too shallow to answer" in shown.out
    assert "answers that hold" in shown.out
    assert "<svg" in page.read_text()
    assert json.json["totals"] == [300] * 80
    assert json.json["curve"][-1]["depth"] == 150
    rows = list(csv.DictReader(marked.open()))
    assert [*rows[0]][-2:] == ["stability", "too_shallow"]
    marks = [float(row["too_shallow"]) for row in rows]
    assert marks == [float(float(row["stability"]) < 0.9) for row in rows]
    assert arrays.json["too_shallow"] == sum(marks)
    np.testing.assert_allclose(np.load(tmp_path / "answers.npz")["depth"][:, 1], marks)


def test_what_cannot_be_answered_is_said(counts, tmp_path):
    shares, few, array = run_many(
        [
            ["depth", "sites.model", "shares.npz"],
            ["depth", "sites.model", "deep.npz", "--times", "1"],
            ["predict", "sites.model", "deep.npz", "--depth", "-o", tmp_path / "answers.npy"],
        ],
        counts,
    )
    assert "is no count" in shares.err
    assert "give the counts" in shares.err
    assert "--times must be above 1" in few.err
    assert "cannot take --depth" in array.err
    assert all(each.code == 2 for each in (shares, few, array))
