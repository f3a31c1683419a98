"""Weights of rows and classes, thresholds, and what leads where classes are unequal, in the shell."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    precision_recall_fscore_support,
    roc_auc_score,
)

from chimap import HistogramClassifier, load

from ..histograms import classes
from .terminal import run_many

pytestmark = pytest.mark.slow

X, RARE = classes(1200, 8, 2)
keep = np.random.default_rng(0).permutation(
    np.concatenate([np.flatnonzero(RARE == 0)[:270], np.flatnonzero(RARE == 1)[:30]])
)
noise = np.random.default_rng(1).dirichlet(np.full(8, 0.5), keep.size)
X, KINDS = 0.3 * X[keep] + 0.7 * noise, np.where(RARE[keep] == 1, "active", "inactive")
TIMES = np.random.default_rng(2).integers(0, 4, keep.size)
PART = np.where(np.arange(keep.size) % 2, "test", "train")
LINEAR = ["--kernel", "linear", "--precision", "float64", "--alpha", "0.3"]


@pytest.fixture(scope="module")
def hits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hits")
    ids = np.array([f"m{i}" for i in range(keep.size)])
    bins = pd.DataFrame(X, columns=[f"b{i}" for i in range(8)])
    table = bins.assign(kind=KINDS, times=TIMES, part=PART)
    table.to_csv(folder / "hits.csv", index=False)
    table.drop(columns=["part", "times"]).iloc[np.repeat(np.arange(keep.size), TIMES)].to_csv(
        folder / "repeated.csv", index=False
    )
    bins.assign(kind=KINDS, id=ids).to_csv(folder / "bare.csv", index=False)
    about = pd.DataFrame({"id": ids[::-1], "times": TIMES[::-1]})
    about.to_csv(folder / "about.tsv", sep="\t", index=False)
    bad = np.where(np.arange(keep.size) == 7, -1, TIMES)
    table.assign(times=bad).to_csv(folder / "bad.csv", index=False)
    table.assign(times="often").to_csv(folder / "words.csv", index=False)
    np.savez(folder / "hits.npz", X=X, y=KINDS, times=TIMES)
    return folder


def fit(data, *flags, output="a.model"):
    labels = [] if data.endswith(".npz") else ["--labels", "kind"]
    return ["fit", data, *labels, *LINEAR, *flags, "-o", output, "--overwrite"]


def test_a_column_of_weights_is_repeated_rows(hits):
    weights = ["--sample-weight", "times"]
    ran = run_many(
        [
            fit("hits.csv", "--exclude", "part", *weights, "--json", output="column.model"),
            fit("bare.csv", "--id", "id", "--sample-weight", "about.tsv::times", "--verbose", output="joined.model"),
            fit("hits.npz", *weights, output="array.model"),
            fit("repeated.csv", output="repeated.model"),
            ["evaluate", "column.model", "hits.csv", "--labels", "kind", "--json"],
            ["evaluate", "column.model", "repeated.csv", "--labels", "kind", "--json"],
        ],
        hits,
    )
    for one in ran:
        assert one.code == 0, one.err
    assert ran[0].json["rows"] == np.count_nonzero(TIMES)
    assert (ran[0].json["rows_held_out"], ran[0].json["rows_of_weight_0"]) == (0, np.sum(TIMES == 0))
    assert f"; {np.sum(TIMES == 0)} of weight 0" in ran[1].out
    expected = load(hits / "repeated.model").decision_function(X)
    for name in ("column", "joined", "array"):
        model = load(hits / f"{name}.model")
        assert model.n_features_in_ == 8
        np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-6)


def test_bad_weights_name_the_row(hits):
    aside = ["--exclude", "part,times"]
    bad, words, missing, label = run_many(
        [
            fit("bad.csv", "--exclude", "part", "--sample-weight", "times"),
            fit("words.csv", "--exclude", "part", "--sample-weight", "times"),
            fit("hits.csv", *aside, "--sample-weight", "often"),
            fit("hits.csv", *aside, "--class-weight", "activ=3"),
        ],
        hits,
    )
    assert "bad.csv, times, row 7: -1; weights are finite and at least 0" in bad.err
    assert "words.csv, times must be numbers" in words.err
    assert "often" in missing.err
    assert "--class-weight names 'activ', which is none of the classes 'active', 'inactive'" in label.err
    assert all(one.code for one in (bad, words, missing, label))


def test_weights_of_classes_and_thresholds(hits):
    part, eight = ["--exclude", "times", "--split", "part"], ["--class-weight", "active=8,inactive=1"]
    rows = fit("hits.csv", *part)
    plain, weighed, given, cut = run_many(
        [
            [*rows, "--json"],
            [*rows, "--class-weight", "balanced", "--json"],
            fit("hits.csv", *part, *eight, "--threshold", "f1", "--verbose", output="both.model"),
            [*rows, "--threshold", "20", "--json"],
        ],
        hits,
    )
    train = PART == "train"
    model = HistogramClassifier("linear", alpha=0.3, class_weight="balanced", random_state=0)
    np.testing.assert_allclose(weighed.json["class_weight"], model.fit(X[train], KINDS[train]).class_weight_)
    assert plain.json["class_weight"] is plain.json["threshold"] is None
    assert "classes 8 (active), 1 (inactive)" in given.out
    assert "scores above it mean inactive (chosen by f1 on held-out rows)" in " ".join(given.out.split())
    assert load(hits / "a.model").threshold_ == pytest.approx(cut.json["threshold"])
    told, plainly = run_many([["info", "both.model"], ["info", "a.model", "--json"]], hits)
    assert "8 (active), 1 (inactive)" in told.out
    assert plainly.json["threshold"] == pytest.approx(cut.json["threshold"])
    assert plainly.json["class_weight"] is None


def test_the_positive_class_is_said_wherever_it_counts(hits):
    """Active is the first of two classes; the flag makes it the one that everything is about."""
    given = ["--exclude", "times", "--split", "part", "--positive", "active", "--threshold", "f1", "--scoring", "f1"]
    exact = ["fit", "hits.csv", "--labels", "kind", "--kernel", "exp-chi2", "--features", "exact", *given]
    fitted, found = run_many([[*exact, "-o", "p.model", "--verbose"], [*exact, "-o", "q.model", "--json"]], hits)
    assert fitted.code == found.code == 0, fitted.err + found.err
    told, shown, predicted, page, info = run_many(
        [
            ["evaluate", "p.model", "hits.csv", "--labels", "kind", "--split", "part"],
            ["evaluate", "p.model", "hits.csv", "--labels", "kind", "--split", "part", "--json"],
            ["predict", "p.model", "hits.csv", "--labels", "kind", "-o", "p.csv"],
            ["evaluate", "p.model", "hits.csv", "--labels", "kind", "--split", "part", "-o", "p.html"],
            ["info", "p.model"],
        ],
        hits,
    )
    line = "scores below it mean active (chosen by f1 of active on held-out rows)"
    assert line in " ".join(fitted.out.split())
    assert "scores below it mean active" in predicted.out
    assert "f1 of active" in fitted.out
    assert found.json["positive"] == shown.json["metrics"]["positive_class"] == "active"
    test = PART == "test"
    model = load(hits / "p.model")
    y, f = KINDS[test], model.decision_function(X[test])
    counted = precision_recall_fscore_support(y, model.predict(X[test]), labels=["active"])
    precision, recall, f1 = (float(100 * part[0]) for part in counted[:3])
    assert f"precision {precision:.1f} %, recall {recall:.1f} %, F1 {f1:.1f} %" in " ".join(told.out.split())
    assert f"{average_precision_score(y == 'active', -f):.3f}, for class active" in told.out
    assert "The positive class is active" in (hits / "p.html").read_text()
    assert re.search(r"positive +active", info.out)
    assert page.code == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--positive", "activ"], "--positive activ is none of the classes 'active' and 'inactive'"),
        (["--class-weight", "equal"], "--class-weight must be balanced, or labels with weights above 0"),
        (["--class-weight", "active=0"], "got 'active=0'"),
        (["--threshold", "best"], "--threshold must be f1, balanced, or the cost of a missed row"),
        (["--threshold", "-1"], "got '-1'"),
    ],
)
def test_flags_that_will_not_do(hits, flags, message):
    (found,) = run_many([fit("hits.csv", "--exclude", "times,part", *flags)], hits)
    assert found.code == 2
    assert message in " ".join(found.err.split())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--class-weight", "balanced"], "--class-weight is for classifiers: use --sample-weight to weight the rows"),
        (["--threshold", "f1"], "--threshold is for classifiers with two classes: leave it out of a regression"),
        (["--positive", "active"], "--positive is for classifiers with two classes: leave it out of a regression"),
    ],
)
def test_a_regression_has_no_flags_of_classes(hits, flags, message):
    data = ["hits.csv", "--labels", "times", "--exclude", "kind,part", "--task", "regress", *flags]
    commands = [["fit", *data, "--output", "r.model"]]
    if "--threshold" not in flags:  # which ``compare`` does not have
        commands.append(["compare", *data, "--output", "r.html"])
    for found in run_many(commands, hits):
        assert found.code == 2
        assert message in " ".join(found.err.split())


def test_what_leads_where_classes_are_unequal(hits):
    said, evaluated, plain = run_many(
        [
            fit("hits.csv", "--exclude", "times", "--split", "part", "--verbose", output="split.model"),
            ["evaluate", "split.model", "hits.csv", "--labels", "kind", "--output", "page.html"],
            ["evaluate", "split.model", "hits.csv", "--labels", "kind", "--json"],
        ],
        hits,
    )
    test = PART == "test"
    model = load(hits / "split.model")
    scores, answers = model.decision_function(X[test]), model.predict(X[test])
    of_rare = KINDS[test] == "active"
    metrics = plain.json["metrics"]
    assert metrics["auc"] == pytest.approx(roc_auc_score(~of_rare, scores), abs=1e-6)
    assert metrics["average_precision"] == pytest.approx(average_precision_score(of_rare, -scores), abs=1e-6)
    assert metrics["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(KINDS[test], answers))
    assert metrics["rarer_class"] == "active"
    found, alarms = np.sum(of_rare & (answers == "active")), np.sum(~of_rare & (answers == "active"))
    rare = f"{found} of {of_rare.sum()} rows of class active found"
    for text in (said.out[said.out.index("held out  ") :], evaluated.out):
        line = " ".join(text.split())
        places = [line.index(word) for word in ("ROC AUC", "average precision", "balanced", rare)]
        assert places == sorted(places)
        assert f"{alarms} false alarms" in line
    assert "ROC AUC on" in (hits / "page.html").read_text()
