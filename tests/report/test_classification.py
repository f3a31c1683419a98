"""Metrics of classifications against scikit-learn, and values worked out by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn import metrics as sk

from chimap.report import (
    accuracy,
    classification_metrics,
    most_confused,
)


@pytest.fixture
def labels() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y_true = rng.choice(["ant", "bee", "cat", "dog"], 200, p=[0.4, 0.3, 0.2, 0.1])
    return y_true, np.where(rng.random(200) < 0.7, y_true, rng.choice(["ant", "bee", "cat"], 200))


def test_classification_agrees_with_scikit_learn(labels):
    found = classification_metrics(*labels)
    assert found.classes == ("ant", "bee", "cat", "dog")
    assert accuracy(*labels) == found.accuracy == sk.accuracy_score(*labels)
    assert found.balanced_accuracy == pytest.approx(sk.balanced_accuracy_score(*labels))
    assert found.macro_f1 == pytest.approx(sk.f1_score(*labels, average="macro"))
    np.testing.assert_array_equal(found.confusion, sk.confusion_matrix(*labels))
    np.testing.assert_array_equal(found.confusion.sum(axis=1), found.support)


def test_ranking_of_two_classes():
    y, scores = ["a", "b", "b", "a"], np.array([-1.0, 0.5, -0.2, -0.1])
    found = classification_metrics(y, ["a", "b", "a", "a"], scores=scores)
    assert found.auc == found.as_dict()["auc"] == 0.75  # of four pairs one is out of order
    assert classification_metrics(y, y).auc is None
    one_sided = classification_metrics(["a", "a"], ["a", "b"], scores=scores[:2])
    assert one_sided.auc is None


def test_classification_by_hand():
    found = classification_metrics([0, 0, 0, 1], [0, 0, 1, 1])
    assert found.confusion.tolist() == [[2, 1], [0, 1]]
    np.testing.assert_allclose(found.precision, [1, 1 / 2])
    np.testing.assert_allclose(found.recall, [2 / 3, 1])
    np.testing.assert_allclose(found.f1, [4 / 5, 2 / 3])
    assert (found.n_correct, found.n_rows, found.accuracy) == (3, 4, 0.75)


@pytest.mark.filterwarnings("error")
def test_undefined_ratios_are_nan_and_none_in_json():
    found = classification_metrics(["a", "a"], ["a", "a"], classes=["a", "b"])
    assert np.isnan(found.recall[1])
    assert np.isnan(found.precision[1])
    assert found.balanced_accuracy == 1.0
    plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert plain["per_class"][1] == {
        "class": "b",
        "precision": None,
        "recall": None,
        "f1": None,
        "support": 0,
    }


def test_most_confused_pairs_come_first():
    y_true = ["a"] * 5 + ["b"] * 2 + ["c"] * 3
    y_pred = ["a", "b", "b", "c", "a", "a", "a", "c", "c", "b"]
    pairs = most_confused(classification_metrics(y_true, y_pred), n=3)
    assert pairs == [("b", "a", 2, 1.0), ("a", "b", 2, 0.4), ("c", "b", 1, 1 / 3)]


def test_bad_labels_are_refused():
    with pytest.raises(ValueError, match="All 3 rows are of one class, cat"):
        classification_metrics(["cat"] * 3, ["cat"] * 3)
    with pytest.raises(ValueError, match="Label dog occurs"):
        classification_metrics(["cat", "dog"], ["cat", "cat"], classes=["cat", "cow"])
    with pytest.raises(ValueError, match="same kind of label"):
        classification_metrics(["1", "2"], [1, 2])
