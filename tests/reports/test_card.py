"""Model cards: facts of the model, and nothing of what it does not hold."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from chimap import AnchorMap, HistogramClassifier, HistogramRegressor, LookupClassifier
from chimap._errors import InputError
from chimap.reports.card import card
from chimap.reports.tasks import task_metrics

RNG = np.random.default_rng(0)
Y = np.repeat(["bog", "fen", "a|b"], [30, 40, 14])
X = RNG.poisson(np.where(Y[:, None] == "fen", [9, 2, 4, 0], [2, 9, 4, 0])).astype(float)


def header(text):
    """The YAML header, whose values are JSON."""
    lines = text.splitlines()
    assert lines[0] == "---"
    return {
        key: json.loads(value) for key, _, value in (line.partition(": ") for line in lines[1 : lines.index("---", 1)])
    }


def test_a_model_without_a_file_tells_what_it_holds():
    frame = pd.DataFrame(X, columns=["oak", "fir|pine", "elm", "never"])
    model = HistogramClassifier("chi2", random_state=0).fit(frame, Y)
    text = model.card("trees")
    assert header(text) == {
        "library_name": "chimap",
        "pipeline_tag": "tabular-classification",
        "tags": ["tabular-classification", "chimap", "kernel-machine", "histograms"],
    }
    assert "# trees\n\nA classifier of 3 classes (a|b, bog, fen), by the kernel chi2 on rows of 4 bins." in text
    assert "- Rows learned from: 84\n" in text
    assert f"- Strength alpha: {model.alpha_:.4g}\n" in text
    assert "1 bin of 4 were empty" in text
    assert "- Entries were whole numbers." in text
    best = model.importance(kind="variance")
    assert f"| {str(best.names[0]).replace('|', chr(92) + '|')} | " in text
    assert not any(word in text for word in ("None", "nan", "NaN", "Date", "File"))


def test_a_model_that_is_not_shown_to_beat_guessing_says_so():
    model = HistogramClassifier("minmax", alpha=1.0, random_state=0).fit(X, Y).fitted
    held = {"rows": 9, "accuracy": 0.6, "accuracy_interval": [0.3, 0.8], "confidence": 0.95}
    for guess, is_said in ((0.4, True), (0.2, False)):
        baseline = {"name": "always answering “fen”", "value": guess}
        kept = {"file": "trees.csv", "held_out": {**held, "baseline": baseline}}
        rival = {"name": "linear on raw rows", "score": 0.5, "measure": "accuracy", "is_own": False, "ties": True}
        learned = replace(model.learned, training=kept | {"linear": rival})
        text = card(replace(model, learned=learned))
        assert ("not shown to be more accurate than always answering “fen”" in text) == is_said
        assert f"always answering “fen”: accuracy {100 * guess:.1f} %." in text
        assert "linear on raw rows: accuracy 50.0 %; a tie within the error." in text
        assert "`chimap explain MODEL DATA` measures" in text


def test_scores_of_several_tasks_have_intervals_and_a_table_of_their_own():
    targets = np.column_stack([Y == "bog", Y == "fen"]).astype(float)
    model = HistogramClassifier("linear", alpha=1.0, random_state=0).fit(X, targets).fitted
    measured = task_metrics(targets, np.column_stack([X[:, 1], -X[:, 1]]), ["bog", "a|b"])
    kept = {"held_out": {**measured.as_dict(), "baseline": {"name": "guessing", "value": 0.5}}, "file": "trees.csv"}
    text = card(replace(model, learned=replace(model.learned, training=kept)))
    low, high = measured.interval
    assert f"| ROC AUC | {measured.mean('ROC AUC'):.3f} | {low:.3f} to {high:.3f} |" in text
    low, high = measured.intervals[1]
    assert f"| a\\|b | 84 | {measured.measures['ROC AUC'][1]:.3f} | {low:.3f} to {high:.3f} |" in text


@pytest.mark.parametrize("kernel", ["linear", "exp-chi2", "minmax"])
def test_cards_of_numbers_tasks_and_tables(kernel):
    numbers = HistogramRegressor(kernel, alpha=1.0, random_state=0).fit(X, X[:, 0] / 3)
    assert "A regression, by the kernel" in numbers.card()
    assert header(numbers.card())["pipeline_tag"] == "tabular-regression"
    tasks = HistogramClassifier(kernel, alpha=1.0, random_state=0).fit(X, np.column_stack([Y == "bog", Y == "fen"]))
    assert "A classifier of two classes for each of 2 tasks (task_0, task_1)" in tasks.card()
    for text in (numbers.card(), tasks.card()):
        assert "None" not in text


def test_compiled_models_are_described_by_the_model_that_they_were_made_from():
    model = HistogramClassifier("chi2", features="additive", alpha=1.0, random_state=0).fit(X, Y)
    assert card(model.compile().fitted, "a") == model.card("a")
    codes = LookupClassifier(AnchorMap("chi2", n_anchors=5)).fit(X, Y).compile()
    with pytest.raises(InputError, match="a model of codes says nothing of its fit"):
        card(codes.fitted)
