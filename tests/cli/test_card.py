"""``chimap card``: the numbers on a card are those of ``chimap info --json`` and of the fit."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from chimap._formatting import interval_in_words

from .terminal import run_many

pytestmark = pytest.mark.slow


def percent(share):
    return f"{100 * share:.1f} %"


def told(held, measure):
    return f"{percent(held[measure])} | {interval_in_words(held[f'{measure}_interval'], measure)}"


FIT = ["--labels", "site", "--kernel", "chi2", "--json", "-o"]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model of classes, with groups and rows that were held out, and one of numbers, without; and their facts."""
    folder = tmp_path_factory.mktemp("cards")
    rng = np.random.default_rng(0)
    is_bog = np.arange(120) % 3 == 0
    table = pd.DataFrame(rng.poisson(np.where(is_bog[:, None], [8, 2, 3], [2, 8, 3])), columns=["a", "b", "c"])
    table.assign(site=np.where(is_bog, "bog", "fen"), plot=np.arange(120) // 4).to_csv(
        folder / "plots.csv", index=False
    )
    table.assign(site=rng.random(120)).to_csv(folder / "numbers.csv", index=False)
    results = run_many(
        [
            ["fit", "plots.csv", "--groups", "plot", "--test-fraction", "0.25", *FIT, "plots.model"],
            ["fit", "numbers.csv", *FIT, "numbers.model"],
        ],
        folder,
    )
    assert all(result.code == 0 for result in results), results[0].err + results[1].err
    return folder, results[0].json


def test_numbers_of_the_card_are_those_of_the_model(fitted):
    folder, fit = fitted
    written, printed, info, no_score, again, bad = run_many(
        [
            ["card", "plots.model"],
            ["card", "plots.model", "--output", "-"],
            ["info", "plots.model", "--json"],
            ["card", "numbers.model", "--json", "-o", "-"],
            ["card", "plots.csv", "-o", "other.md"],
            ["card", "numbers.model", "--output", "plots.csv"],
        ],
        folder,
    )
    assert written.out == "Wrote the card of plots.model to plots.md\n", written.err
    text = (folder / "plots.md").read_text()
    assert printed.out == text + "\n"
    facts, held = info.json, fit["held_out"]
    training = facts["training"]
    for line in (
        f"- File: {training['file']}",
        f"- Rows in it: {training['rows_in_file']}",
        f"- Rows learned from: {facts['rows']}",
        f"- Bins: {facts['bins']}",
        f"- Fitted on: {training['date']}",
        f"- Rows held out: {held['rows']}, whole groups of plot",
        "- Groups: plot",
        f"- Strength alpha: {facts['alpha']:.4g}",
        f"- chimap: {facts['version']}",
        *(f"| {name} | {count} |" for name, count in training["class_counts"]),
        *(f"| {measure.replace('_', ' ')} | {told(held, measure)} |" for measure in ("accuracy", "balanced_accuracy")),
        f"Without a model, {held['baseline']['name']}: accuracy {percent(held['baseline']['value'])}.",
    ):
        assert line in text.splitlines(), line
    index = json.loads(re.search("^model-index: (.*)$", text, re.MULTILINE)[1])
    [results] = index[0]["results"]
    assert index[0]["name"] == "plots"
    assert {"type": "accuracy", "value": held["accuracy"]} in results["metrics"]
    assert results["dataset"] == {"type": "tabular", "name": "plots.csv"}
    assert training["held_out"]["accuracy"] == held["accuracy"]
    assert no_score.json["card"] is None
    assert "model-index" not in no_score.json["text"]
    assert "None" not in text + no_score.json["text"]
    assert again.code != 0
    assert "plots.csv" in again.err
    assert bad.code != 0
    assert "--output plots.csv exists; choose another name, or add --overwrite" in " ".join(bad.err.split())
    second = run_many([["card", "plots.model"]], folder)[0]
    assert "plots.md exists" in second.err
