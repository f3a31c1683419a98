"""Explanations from the command line: the page, arrays, JSON, and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

import chimap

from .terminal import run_many

pytestmark = pytest.mark.slow

BAD = {
    "ending": (["digits.model", "-o", "why.pdf"], r"--output must end in .html \(a page\) or .npz"),
    "kind": (["digits.model", "--kind", "shap"], r"--kind must be one of|--kind must be"),
    "shape": (["digits.model", "--shape", "8"], r"--shape must be HEIGHTxWIDTH"),
    "pixels": (["digits.model", "--shape", "8x9"], r"has 72 pixels, but a row has 64 bins"),
    "rows without data": (["digits.model", "--rows", "1"], r"--rows and --labels need DATA"),
    "unknown row": (["digits.model", "digits.npz", "--rows", "x7"], r"has no row 'x7'"),
    "no labels": (["digits.model", "unlabelled.npz", "--kind", "permutation"], r"needs rows with labels"),
    "counterfactuals without data": (["digits.model", "--counterfactuals"], r"name it after MODEL"),
    "stability without data": (["digits.model", "--stability", "10"], r"name it after MODEL"),
    "stability without labels": (["digits.model", "unlabelled.npz", "--stability", "10"], r"labels"),
    "groups alone": (["digits.model", "digits.npz", "--groups", "x"], r"give both"),
    "movable alone": (["digits.model", "digits.npz", "--movable", "p1"], r"give both"),
    "input": (["digits.model", "-o", "digits.model"], r"must end in"),
}


def test_a_page_arrays_json_and_the_terminal(folder):
    page, arrays, told, alone, ink, removed, flipped, stable = run_many(
        [
            ["explain", "digits.model", "digits.npz", "--output", "why.html"],
            ["explain", "names.model", "sparse.npz", "--labels", "names.csv", "--rows", "3,5", "-o", "why.npz"],
            ["explain", "names.model", "sparse.npz", "--labels", "names.csv", "--json"],
            ["explain", "digits.model"],
            ["explain", "ink.model", "ink.npz", "--json", "--kind", "permutation"],
            ["explain", "names.model", "sparse.npz", "--kind", "removal", "--output", "removed.html"],
            ["explain", "digits.model", "digits.npz", "--counterfactuals", "--json"],
            ["explain", "digits.model", "digits.npz", "--stability", "10", "--output", "stable.html"],
        ],
        folder,
    )
    for result in (page, arrays, told, alone, ink, removed, flipped, stable):
        assert result.code == 0, result.err
    text = (folder / "why.html").read_text()
    assert "Bin importance" in text
    assert text.count("data:image/png") == 1 + 2 * 5  # digits are known to be pictures
    found = np.load(folder / "why.npz")
    model = chimap.load(folder / "names.model")
    rows = np.load(folder / "rows.npy")[[3, 5]]
    sums = found["base"] + found["contributions"].sum(axis=1)
    np.testing.assert_allclose(sums, model.decision_function(rows), atol=1e-6)
    assert found["output_names"].tolist() == model.classes_.tolist()
    assert found["rows"].tolist() == ["3", "5"]
    plain = told.json
    assert plain["additive"]
    assert len(plain["importance"]["bins"]) == 20
    assert plain["rows"][0]["truth"] != plain["rows"][0]["predicted"]
    for row in flipped.json["rows"]:
        assert row["counterfactual"]["after"] != row["counterfactual"]["before"] == row["predicted"]
    assert "10 halves of the rows" in " ".join(stable.out.split())
    assert "Would other rows choose the same bins?" in (folder / "stable.html").read_text()
    assert "Next, write a page" in alone.out
    assert ["ranked", "by", "removal"] in [line.split() for line in removed.out.splitlines()]
    assert "all bins above it are emptied" in (folder / "removed.html").read_text()
    assert set(range(20, 30)) & {one["bin"] for one in ink.json["importance"]["bins"][:5]}


def test_what_cannot_be_explained_is_refused(folder):
    results = run_many([["explain", *arguments] for arguments, _ in BAD.values()], folder)
    for result, (_, message) in zip(results, BAD.values(), strict=True):
        assert result.code == 2
        assert re.search(message, result.err)
