"""Average precision against scikit-learn, against the definitions of PASCAL VOC, and by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn import metrics as sk

from chimap._validation import DataError
from chimap.reports import average_precision, precision_recall, ranking_metrics


def draws(n=200, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.2
    scores = rng.normal(size=n) + y
    return y, np.round(scores) if ties else scores


def voc(y, scores, method):
    """The definition of the development kits, row by row."""
    order = np.argsort(-scores)
    hits = np.cumsum(y[order])
    recall, precision = hits / y.sum(), hits / np.arange(1, y.size + 1)
    if method == "11-point":
        best = [precision[recall >= t].max(initial=0) for t in np.linspace(0, 1, 11) - 1e-12]
        return sum(best) / 11
    mrec, mpre = np.r_[0, recall, 1], np.r_[0, precision, 0]
    for i in range(mpre.size - 2, -1, -1):
        mpre[i] = max(mpre[i], mpre[i + 1])
    steps = np.flatnonzero(mrec[1:] != mrec[:-1]) + 1
    return ((mrec[steps] - mrec[steps - 1]) * mpre[steps]).sum()


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_steps_are_scikit_learns(seed, ties):
    y, scores = draws(seed=seed, ties=ties)
    assert average_precision(y, scores, "steps") == pytest.approx(sk.average_precision_score(y, scores))


@pytest.mark.parametrize("method", ["11-point", "area"])
@pytest.mark.parametrize("seed", range(4))
def test_definitions_of_voc(seed, method):
    y, scores = draws(seed=seed)
    assert average_precision(y, scores, method) == pytest.approx(voc(y, scores, method), abs=1e-12)


@pytest.mark.parametrize(
    ("method", "expected"),
    # ranks of the class: 1, 3, 4 of 5; precisions there 1, 2/3, 3/4
    [("steps", (1 + 2 / 3 + 3 / 4) / 3), ("area", (1 + 3 / 4 + 3 / 4) / 3), ("11-point", (4 * 1 + 7 * 3 / 4) / 11)],
)
def test_by_hand(method, expected):
    assert average_precision([1, -1, 1, 1, -1], [9, 7, 5, 3, 1], method) == pytest.approx(expected)


@pytest.mark.parametrize("method", ["steps", "area", "11-point"])
def test_perfect_and_worst_ranking(method):
    y = np.repeat([True, False], [3, 7])
    assert average_precision(y, -np.arange(10), method) == 1
    assert average_precision(y, np.arange(10), method) < 0.35
    assert average_precision(y, np.zeros(10), method) == pytest.approx(0.3)


def test_rows_that_do_not_count():
    assert average_precision([1, 0, -1, 1], [4, 3, 2, 1]) == average_precision([1, -1, 1], [4, 2, 1])


def test_interpolation_is_the_best_at_a_recall_or_beyond():
    y, scores = draws()
    curve = precision_recall(y, scores)
    for t in (0, 0.1, 0.5, 0.99, 1):
        assert curve.interpolated(np.array([t]))[0] == curve.precision[curve.recall >= t - 1e-12].max()
    assert curve.interpolated(np.array([1.1])) == 0


@pytest.mark.parametrize(
    ("y", "scores", "message"),
    [
        ([-1, -1], [0, 1], "none of the 2 rows is of the class"),
        ([1, -1], [0, np.nan], "row 1: not a finite number"),
        ([1, -1], [0, 1, 2], "one entry per row"),
    ],
)
def test_what_cannot_be_ranked(y, scores, message):
    with pytest.raises(DataError, match=message):
        precision_recall(y, scores)


def test_each_class_against_the_rest():
    rng = np.random.default_rng(1)
    names = np.array(["ant", "bee", "cat"])
    y = rng.choice(names[:2], 60)
    scores = rng.normal(size=(60, 3)) + (y[:, None] == names)
    found = ranking_metrics(y, scores, names.tolist(), "steps")
    expected = [sk.average_precision_score(y == name, scores[:, k]) for k, name in enumerate(names[:2])]
    np.testing.assert_allclose(found.average_precision, [*expected, np.nan])
    assert found.mean_average_precision == pytest.approx(np.mean(expected))
    assert [names[k] for k in found.ordered()] == sorted(names[:2], key=lambda n: -expected[list(names).index(n)])
    plain = found.as_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["average_precision"]["cat"] is None


def test_several_classes_a_row():
    y = np.array([[1, -1], [1, 1], [-1, 0], [-1, 1]])
    scores = np.array([[3.0, 1.0], [2.0, 4.0], [1.0, 9.0], [0.0, 0.5]])
    found = ranking_metrics(y, scores, ["a", "b"])
    np.testing.assert_allclose(found.average_precision, [1, (1 + 2 / 3) / 2])


def test_mean_curve():
    y = np.repeat(["a", "b"], 5)
    scores = np.stack([np.arange(10)[::-1], np.arange(10)], axis=1)
    curve = ranking_metrics(y, scores, ["a", "b"]).mean_curve
    assert (curve.precision == 1).all()
    assert curve.recall[[0, -1]].tolist() == [0, 1]


def test_shapes_that_do_not_fit():
    with pytest.raises(DataError, match=r"\(rows, classes\) = \(2, 2\)"):
        ranking_metrics(["a", "b"], [[1.0], [2.0]], ["a", "b"])
    with pytest.raises(DataError, match="no row is of any"):
        ranking_metrics(["c", "c"], np.zeros((2, 2)), ["a", "b"])
    with pytest.raises(ValueError, match="method must be one of"):
        ranking_metrics(["a"], [[1.0]], ["a"], "12-point")
