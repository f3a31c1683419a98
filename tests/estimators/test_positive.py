"""The positive one of two classes: which one scores and thresholds are about, whatever its name."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, precision_score, recall_score

import chimap
from chimap import HistogramClassifier
from chimap.recipe.codecs import ClassCodec, with_positive
from chimap.selection.scoring import HeldOutScore

RNG = np.random.default_rng(0)
SICK = RNG.random(300) < 0.25
X = RNG.poisson(np.where(SICK[:, None], [4, 2, 2, 2], [2, 2, 2, 4])).astype(float)
NAMES = {
    "first": np.where(SICK, "case", "control"),
    "second": np.where(SICK, "tumour", "normal"),
    "numbers": np.where(SICK, -1, 1),
    "objects": np.where(SICK, "case", "control").astype(object),
}
SETTINGS = {"kernel": "exp-chi2", "features": "exact", "precision": "float64", "random_state": 0}


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("scoring", ["f1", "precision", "recall", "average_precision"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_scores_are_those_of_scikit_learn_for_the_positive_class(names, scoring, is_weighted):
    y, classes = NAMES[names], np.unique(NAMES[names])
    outputs = RNG.standard_normal((300, 1)) + 0.7 * (y == classes[1])[:, None]
    weights = RNG.random(300) if is_weighted else None
    for place, label in enumerate(classes):
        f = outputs[:, 0] if place == 1 else -outputs[:, 0]
        by_name = {"f1": f1_score, "precision": precision_score, "recall": recall_score}
        expected = (
            average_precision_score(y == label, f, sample_weight=weights)
            if scoring == "average_precision"
            else by_name[scoring](y == label, f > 0, sample_weight=weights)
        )
        score = HeldOutScore(y, classes, scoring, weights, place)
        assert score(outputs) == pytest.approx(expected, abs=1e-12)
        assert score.name == f"{scoring} of {label}"
    assert HeldOutScore(y, classes, scoring, weights)(outputs) == score(outputs)  # the second by default


@pytest.mark.parametrize("threshold", ["f1", "balanced", 5.0])
def test_the_name_of_the_positive_class_changes_no_answer(threshold):
    settings = SETTINGS | {"threshold": threshold, "scoring": "f1"}
    answers, measures = [], []
    for names, positive in (("first", "case"), ("second", None), ("second", "tumour"), ("numbers", -1)):
        y = NAMES[names]
        model = HistogramClassifier(positive=positive, **settings).fit(X, y)
        answers.append(model.predict(X) == y[SICK][0])
        measures.append(model.selection_.means[model.selection_.chosen])
        assert model.positive_ == positive
        assert model.selection_.measure == f"f1 of {y[SICK][0]}"
    for other in answers[1:]:
        np.testing.assert_array_equal(other, answers[0])
    np.testing.assert_allclose(measures, measures[0], rtol=1e-9)


def test_the_threshold_is_the_best_for_the_positive_class():
    reached = {}
    for positive in ("case", "control"):
        model = HistogramClassifier(positive=positive, threshold="f1", alpha=1.0, **SETTINGS).fit(X, NAMES["first"])
        found = model.classes_[(model.held_out_[:, 0] > model.threshold_).astype(int)]
        reached[positive] = [f1_score(NAMES["first"], found, pos_label=label) for label in ("case", "control")]
    assert reached["case"][0] > reached["control"][0]
    assert reached["control"][1] > reached["case"][1]


def test_a_race_is_run_for_the_positive_class():
    by_class = [
        HistogramClassifier(positive=p, scoring="f1", normalize="l1", random_state=0).fit(X, NAMES["first"])
        for p in ("case", "control")
    ]
    assert [model.race_.measure for model in by_class] == ["f1 of case", "f1 of control"]
    assert all(
        np.isfinite(row["score"]) for model in by_class for row in model.race_.rows() if row["score"] is not None
    )


def test_files_keep_it(tmp_path):
    model = HistogramClassifier("chi2", positive="case", alpha=1.0).fit(X, NAMES["objects"])
    for name, one in (("a", model), ("b", model.compile())):
        one.save(tmp_path / name)
        assert chimap.load(tmp_path / name).positive_ == "case"
    assert HistogramClassifier("chi2", alpha=1.0).fit(X, NAMES["first"]).positive_ is None


def test_labels_are_compared_as_text_where_one_side_is_text():
    assert with_positive(ClassCodec(np.array([0, 1])), "0").positive == 0
    assert with_positive(ClassCodec(np.array(["0", "1"])), 1).positive == 1


@pytest.mark.parametrize(
    ("settings", "y", "message"),
    [
        ({"positive": "cse"}, NAMES["first"], "positive='cse' is none of the classes 'case' and 'control'"),
        ({"positive": 0}, X[:, 0] % 3, "positive=0 names one of two classes, but y has 3"),
        ({"positive": 1}, X[:, :2] > 2, "positive=1 names one of two classes, but y has numbers or several tasks"),
        ({"scoring": "f1"}, X[:, 0] % 3, "scoring='f1' is of the positive one of two classes, and y has 3"),
    ],
)
def test_what_cannot_be_positive(settings, y, message):
    with pytest.raises(ValueError, match=message):
        HistogramClassifier("chi2", **settings).fit(X, y)
