"""OrderedClasses classes: medians, intervals, and scores, against definitions and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, mean_absolute_error

from chimap._errors import InputError
from chimap.selection.ordered import OrderedClasses, mean_steps, medians, weighted_kappa
from chimap.selection.scoring import HeldOutScore, best_temperature, probabilities

RNG = np.random.default_rng(0)


def test_no_answer_has_a_smaller_expected_distance_than_the_median():
    p = RNG.dirichlet(np.full(6, 0.5), size=500)
    place = np.arange(6)
    expected = p @ np.abs(place[:, None] - place)
    np.testing.assert_allclose(expected[np.arange(500), medians(p)], expected.min(axis=1), atol=1e-12)
    assert medians(np.array([[0.5, 0.0, 0.5], [0.1] * 3, [0.0, 0.2, 0.8]])).tolist() == [0, 2, 2]


def test_a_class_is_as_unlike_as_the_least_probable_between_it_and_the_median():
    p = RNG.dirichlet(np.full(5, 0.7), size=100)
    unlike = OrderedClasses(np.arange(5)).unlikeness(np.log(p))
    for row, middle, found in zip(p, medians(p), unlike, strict=True):
        for k in range(5):
            assert found[k] == pytest.approx(-np.log(row[min(k, middle) : max(k, middle) + 1].min()))


def test_closed_sets_are_intervals():
    sets = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 1]], dtype=bool)
    closed = OrderedClasses(np.arange(4)).closed(sets)
    assert closed.astype(int).tolist() == [[1, 1, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1]]


@pytest.mark.parametrize("weights", [None, RNG.random(300)])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_scores_are_those_of_scikit_learn(weights, n_classes):
    truth, outputs = RNG.integers(n_classes, size=300), RNG.normal(size=(300, n_classes if n_classes > 2 else 1))
    answers = medians(probabilities(outputs, best_temperature(outputs, truth, weights)))
    expected = {
        "neg_mean_absolute_error": -mean_absolute_error(truth, answers, sample_weight=weights),
        "weighted_kappa": cohen_kappa_score(truth, answers, weights="quadratic", sample_weight=weights),
    }
    for name, value in expected.items():
        classes = np.arange(n_classes)
        score = OrderedClasses(classes).score(HeldOutScore(truth, classes, name, weights))
        assert score(outputs) == pytest.approx(value, abs=1e-12)


def test_measures_without_rows_and_of_one_class_are_not_numbers():
    assert np.isnan(mean_steps(np.zeros((3, 3))))
    assert np.isnan(weighted_kappa(np.diag([0, 5, 0])))


@pytest.mark.parametrize(
    ("ordered", "said"),
    [
        ("low", "two or more classes"),
        (["low"], "two or more classes"),
        ([["low", "high"]], "two or more classes"),
        (["low", "high", "low"], "'low' twice"),
    ],
)
def test_orders_that_are_none_are_refused(ordered, said):
    with pytest.raises(InputError, match=said):
        OrderedClasses.of(ordered)


def test_an_order_that_lacks_a_class_is_refused():
    with pytest.raises(InputError, match="lacks the class 'medium': it orders low, high"):
        OrderedClasses.of(["low", "high"]).arranged(np.array(["high", "medium"]))
